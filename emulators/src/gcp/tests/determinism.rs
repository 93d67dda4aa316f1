//! The same seed and the same calls give the same responses, byte for byte.

use super::{Fixture, ZONE, body};
use serde_json::Value;
use std::time::Duration;

fn run_scenario(seed: u64) -> Vec<String> {
    let mut fixture = Fixture::with(|knobs| {
        knobs.seed = seed;
        knobs.lag.reads = Duration::from_millis(300);
        knobs.lag.writes = Duration::from_millis(300);
    });
    fixture.advance(1_000);
    let mut responses = Vec::new();
    for step in 0..40 {
        let name = format!("vm-{}", step % 7);
        for (request, body) in [
            (format!("POST {ZONE}/instances"), body(&name)),
            (format!("GET {ZONE}/instances"), Value::Null),
            (format!("POST {ZONE}/instances/{name}/stop"), Value::Null),
            (format!("GET {ZONE}/operations"), Value::Null),
            (format!("GET {ZONE}/disks"), Value::Null),
            (
                format!("DELETE {ZONE}/instances/vm-{}", step % 5),
                Value::Null,
            ),
        ] {
            responses.push(format!("{:?}", fixture.call(&request, &body)));
        }
        fixture.advance(70);
    }
    responses
}

#[test]
fn same_seed_repeats_the_run() {
    let responses = run_scenario(7);
    assert_eq!(responses, run_scenario(7));
    assert_ne!(responses, run_scenario(8));
    assert!(responses.iter().any(|line| line.contains("notFound")));
}
