//! The same seed and the same calls give the same responses.

use super::*;

fn tell(seed: u64) -> Vec<String> {
    let mut fixture = Fixture::with(|knobs| {
        knobs.seed = seed;
        knobs.lag.reads = Duration::from_millis(80);
        knobs.lag.writes = Duration::from_millis(300);
    });
    let mut parsed = Vec::new();
    let mut tell = |fixture: &mut Fixture, text: &str, body: Value| {
        let response = fixture.call(text, body);
        parsed.push(match response {
            Ok(response) => format!("{response:?}"),
            Err(refusal) => format!("{refusal:?}"),
        });
    };
    for number in 0..4 {
        tell(&mut fixture, &format!("PUT {VMS}/vm{number}"), vm_body());
        fixture.advance(60);
        tell(
            &mut fixture,
            &format!("POST {VMS}/vm{number}/deallocate"),
            Value::Null,
        );
        tell(&mut fixture, &format!("GET {VMS}"), Value::Null);
        tell(
            &mut fixture,
            &format!("DELETE {VMS}/vm{}", number / 2),
            Value::Null,
        );
        tell(
            &mut fixture,
            &format!("GET {NETWORK}/networkInterfaces"),
            Value::Null,
        );
    }
    parsed
}

#[test]
fn randomness_comes_only_from_the_seed() {
    assert_eq!(tell(7), tell(7));
    assert_ne!(tell(7), tell(8));
}
