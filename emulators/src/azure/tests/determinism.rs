//! The same seed and the same calls give the same responses.

use super::*;

fn tell(seed: u64) -> Vec<String> {
    let mut lab = Lab::with(|knobs| {
        knobs.seed = seed;
        knobs.lag.reads = Duration::from_millis(80);
        knobs.lag.writes = Duration::from_millis(300);
    });
    let mut told = Vec::new();
    let mut tell = |lab: &mut Lab, text: &str, body: Value| {
        let answer = lab.call(text, body);
        told.push(match answer {
            Ok(answer) => format!("{answer:?}"),
            Err(refusal) => format!("{refusal:?}"),
        });
    };
    for number in 0..4 {
        tell(&mut lab, &format!("PUT {VMS}/vm{number}"), order());
        lab.pass(60);
        tell(
            &mut lab,
            &format!("POST {VMS}/vm{number}/deallocate"),
            Value::Null,
        );
        tell(&mut lab, &format!("GET {VMS}"), Value::Null);
        tell(
            &mut lab,
            &format!("DELETE {VMS}/vm{}", number / 2),
            Value::Null,
        );
        tell(
            &mut lab,
            &format!("GET {NETWORK}/networkInterfaces"),
            Value::Null,
        );
    }
    told
}

#[test]
fn randomness_comes_only_from_the_seed() {
    assert_eq!(tell(7), tell(7));
    assert_ne!(tell(7), tell(8));
}
