//! Random calls in random order: the region never contradicts itself, and no call takes it apart.

use super::{LAUNCH, Lab};
use crate::ec2::knobs::Capacity;
use proptest::prelude::*;
use std::time::Duration;

/// One step of a story: what is done, to which instance, and how much of it.
type Step = (u8, usize, u64);

fn play(lab: &mut Lab, (what, which, much): Step) {
    let id = |lab: &Lab, which: usize| {
        let count = lab.engine.instances.len().max(1);
        let instance = lab.engine.instances.values().nth(which % count);
        instance.map_or("i-00000000000000bad".to_owned(), |i| i.fixed.id.clone())
    };
    let (one, other) = (id(lab, which), id(lab, which + 1));
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
            lab.pass(much);
            return;
        }
    };
    // Whether it is refused is the other tests' business.
    let _ = lab.call(&call);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn state_is_always_consistent(
        seed: u64, lag in 0_u64..300, machines in 3_u64..12,
        steps in proptest::collection::vec((0_u8..14, 0_usize..9, 0_u64..150), 1..60),
    ) {
        let mut lab = Lab::with(|knobs| {
            knobs.seed = seed;
            knobs.lag.reads = Duration::from_millis(lag);
            knobs.timing.terminated_visible = Duration::from_millis(200);
            knobs.timing.token_retention = Duration::from_millis(400);
            knobs.capacity = vec![Capacity { instance_type: None, zone: None, market: None, machines }];
        });
        for step in steps {
            play(&mut lab, step);
            lab.engine.check_invariants();
        }
        // In the end everything is over.
        let going: Vec<String> = lab.engine.instances.values().map(|i| i.fixed.id.clone()).collect();
        for id in going {
            let _ = lab.call(&format!("ModifyInstanceAttribute&InstanceId={id}&DisableApiTermination.Value=false"));
            let _ = lab.call(&format!("TerminateInstances&InstanceId.1={id}"));
        }
        for _ in 0..4 {
            lab.pass(400);
        }
        lab.engine.check_invariants();
        prop_assert!(lab.engine.instances.is_empty() && lab.engine.nics.is_empty());
        prop_assert!(lab.engine.volumes.values().all(|volume| volume.attached_to.is_none()));
        let whole = format!("{LAUNCH}&MinCount={machines}&MaxCount={machines}");
        prop_assert!(lab.call(&whole).is_ok());
    }
}
