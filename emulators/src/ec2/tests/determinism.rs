//! The same seed and the same calls give the same answers, to the byte.

use super::{LAUNCH, Lab};
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
        let launch = format!("{LAUNCH}&MinCount=1&MaxCount=3&ClientToken=t{}", step % 7);
        for call in [
            launch.as_str(),
            "DescribeInstances",
            "DescribeVolumes",
            "DescribeNetworkInterfaces",
            "DescribeTags",
        ] {
            told.push(format!("{:?}", lab.call(call)));
        }
        let id = lab
            .engine
            .instances
            .values()
            .nth(step % 5)
            .map(|instance| instance.fixed.id.clone());
        if let Some(id) = id {
            told.push(format!(
                "{:?}",
                lab.call(&format!("TerminateInstances&InstanceId.1={id}"))
            ));
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
    assert!(
        told.iter()
            .any(|line| line.contains("InvalidInstanceID.NotFound"))
    );
}
