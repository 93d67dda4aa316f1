//! Random calls in random order: the invariants of the region hold after every call.

use super::{Fixture, LAUNCH};
use crate::ec2::knobs::Capacity;
use proptest::prelude::*;
use std::time::Duration;

/// One step of a scenario: the call, the instance, and a number for the call.
type Step = (u8, usize, u64);

fn perform(fixture: &mut Fixture, (what, which, much): Step) {
    let id = |fixture: &Fixture, which: usize| {
        let count = fixture.engine.instances.len().max(1);
        let instance = fixture.engine.instances.values().nth(which % count);
        instance.map_or("i-00000000000000bad".to_owned(), |i| i.fixed.id.clone())
    };
    let (one, other) = (id(fixture, which), id(fixture, which + 1));
    let both = format!("&InstanceId.1={one}&InstanceId.2={other}");
    let call = match what {
        0 | 1 => format!(
            "{LAUNCH}&MinCount=1&MaxCount={}&ClientToken=t{}",
            much % 4 + 1,
            which % 5
        ),
        2 => format!(
            "{LAUNCH}&MinCount=1&MaxCount=2&InstanceMarketOptions.MarketType=spot\
             &BlockDeviceMapping.1.DeviceName=/dev/sdf&BlockDeviceMapping.1.Ebs.VolumeSize=1"
        ),
        3 => format!("StopInstances{both}"),
        4 => format!("StartInstances{both}"),
        5 | 6 => format!("TerminateInstances{both}"),
        7 => format!("CreateTags&ResourceId.1={one}&Tag.1.Key=k&Tag.1.Value={much}"),
        8 => format!("ModifyInstanceAttribute&InstanceId={one}&InstanceType.Value=c5.large"),
        9 => format!(
            "ModifyInstanceAttribute&InstanceId={one}&DisableApiTermination.Value={}",
            much % 2 == 0
        ),
        10 => "DescribeInstances&Filter.1.Name=instance-state-name&Filter.1.Value.1=running"
            .to_owned(),
        _ => {
            fixture.advance(much);
            return;
        }
    };
    // Other tests check which calls are refused.
    let _ = fixture.call(&call);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn state_is_always_consistent(
        seed: u64, lag in 0_u64..300, machines in 3_u64..12,
        steps in proptest::collection::vec((0_u8..14, 0_usize..9, 0_u64..150), 1..60),
    ) {
        let mut fixture = Fixture::with(|knobs| {
            knobs.seed = seed;
            knobs.lag.reads = Duration::from_millis(lag);
            knobs.timing.terminated_visible = Duration::from_millis(200);
            knobs.timing.token_retention = Duration::from_millis(400);
            knobs.capacity = vec![Capacity { instance_type: None, zone: None, market: None, machines }];
        });
        for step in steps {
            perform(&mut fixture, step);
            fixture.engine.check_invariants();
        }
        // In the end every instance is terminated and removed.
        let remaining: Vec<String> = fixture.engine.instances.values().map(|i| i.fixed.id.clone()).collect();
        for id in remaining {
            let _ = fixture.call(&format!("ModifyInstanceAttribute&InstanceId={id}&DisableApiTermination.Value=false"));
            let _ = fixture.call(&format!("TerminateInstances&InstanceId.1={id}"));
        }
        for _ in 0..4 {
            fixture.advance(400);
        }
        fixture.engine.check_invariants();
        prop_assert!(fixture.engine.instances.is_empty() && fixture.engine.nics.is_empty());
        prop_assert!(fixture.engine.volumes.values().all(|volume| volume.attached_to.is_none()));
        let all_items = format!("{LAUNCH}&MinCount={machines}&MaxCount={machines}");
        prop_assert!(fixture.call(&all_items).is_ok());
    }
}
