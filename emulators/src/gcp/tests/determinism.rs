//! The same seed and the same calls give the same responses, byte for byte.

use super::{Lab, ZONE, body};
use serde_json::Value;
use std::time::Duration;

fn story(seed: u64) -> Vec<String> {
    let mut lab = Lab::with(|knobs| {
        knobs.seed = seed;
        knobs.lag.reads = Duration::from_millis(300);
        knobs.lag.writes = Duration::from_millis(300);
    });
    lab.pass(1_000);
    let mut told = Vec::new();
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
            told.push(format!("{:?}", lab.call(&request, &body)));
        }
        lab.pass(70);
    }
    told
}

#[test]
fn same_seed_repeats_the_run() {
    let told = story(7);
    assert_eq!(told, story(7));
    assert_ne!(told, story(8));
    assert!(told.iter().any(|line| line.contains("notFound")));
}
