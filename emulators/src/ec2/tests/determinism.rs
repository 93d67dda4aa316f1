//! The same seed and the same calls give the same responses, byte for byte.

use super::{Fixture, LAUNCH};
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
        let launch = format!("{LAUNCH}&MinCount=1&MaxCount=3&ClientToken=t{}", step % 7);
        for call in [
            launch.as_str(),
            "DescribeInstances",
            "DescribeVolumes",
            "DescribeNetworkInterfaces",
            "DescribeTags",
        ] {
            responses.push(format!("{:?}", fixture.call(call)));
        }
        let id = fixture
            .engine
            .instances
            .values()
            .nth(step % 5)
            .map(|instance| instance.fixed.id.clone());
        if let Some(id) = id {
            responses.push(format!(
                "{:?}",
                fixture.call(&format!("TerminateInstances&InstanceId.1={id}"))
            ));
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
    assert!(
        responses
            .iter()
            .any(|line| line.contains("InvalidInstanceID.NotFound"))
    );
}
