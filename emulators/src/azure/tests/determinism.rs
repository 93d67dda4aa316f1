//! The same seed and the same calls give the same responses.

use super::*;

fn responses(seed: u64) -> Vec<String> {
    let mut fixture = Fixture::with(|knobs| {
        knobs.seed = seed;
        knobs.lag.reads = Duration::from_millis(80);
        knobs.lag.writes = Duration::from_millis(300);
    });
    let mut responses = Vec::new();
    let mut record = |fixture: &mut Fixture, text: &str, body: Value| {
        let response = fixture.call(text, body);
        responses.push(match response {
            Ok(response) => format!("{response:?}"),
            Err(refusal) => format!("{refusal:?}"),
        });
    };
    for number in 0..4 {
        record(&mut fixture, &format!("PUT {VMS}/vm{number}"), vm_body());
        fixture.advance(60);
        record(
            &mut fixture,
            &format!("POST {VMS}/vm{number}/deallocate"),
            Value::Null,
        );
        record(&mut fixture, &format!("GET {VMS}"), Value::Null);
        record(
            &mut fixture,
            &format!("DELETE {VMS}/vm{}", number / 2),
            Value::Null,
        );
        record(
            &mut fixture,
            &format!("GET {NETWORK}/networkInterfaces"),
            Value::Null,
        );
    }
    responses
}

#[test]
fn randomness_comes_only_from_the_seed() {
    assert_eq!(responses(7), responses(7));
    assert_ne!(responses(7), responses(8));
}
