//! Property test of the whole stack: one token creates one instance, whatever the network loses.

use fleetwright::{
    InstanceProvisioner as _, LaunchRecord, Zone,
    layer::{Alternative, FallbackPolicy, Stack, TimeoutPolicy},
};
use fleetwright_memory::{Capacity, Fault, MemoryCloud, Phase, RefusalReason, Rule, WireCall};
use futures_util::future::join_all;
use proptest::{collection::vec, prelude::*, sample::select};
use tokio::time::timeout;

use super::{block_on_paused, live, millis, token, with_token};
use crate::fake::secs;

fn fault() -> impl Strategy<Value = Fault> {
    let mut faults = vec![
        Fault::Malformed,
        Fault::Refused(RefusalReason::Throttled(secs(3))),
        Fault::Refused(RefusalReason::Capacity),
        Fault::Refused(RefusalReason::Quota),
    ];
    for phase in [Phase::Before, Phase::After] {
        faults.extend([
            Fault::Lost(phase),
            Fault::ServerError(phase),
            Fault::Hang(phase),
        ]);
    }
    select(faults)
}

fn stack(cloud: &MemoryCloud) -> std::sync::Arc<dyn fleetwright::InstanceProvisioner> {
    let alternatives = ["mem-a", "mem-b"].map(|zone| Alternative::new(zone).zone(zone).unwrap());
    Stack::default()
        .fallback(
            FallbackPolicy::new(alternatives)
                .record_in_tag("alternative")
                .unwrap(),
        )
        .attempt_timeout(TimeoutPolicy::new(secs(5)))
        .wrap(cloud.provisioner())
}

proptest! {
    #[test]
    fn token_never_has_two_instances(
        faults in vec((select(&[WireCall::Launch, WireCall::FindLaunch][..]), 1_u64..6, fault()), 0..6),
        timeouts in vec(1_u64..40_000, 1..5), full in any::<bool>(),
    ) {
        block_on_paused(async {
            let builder = MemoryCloud::builder().latency(millis(20));
            let nothing = Capacity::of(0).in_zone(Zone::new("mem-a").unwrap());
            let cloud = if full { builder.capacity(nothing) } else { builder }.build();
            for (call, nth, fault) in faults {
                cloud.faults().add(Rule::nth(call, nth, fault));
            }
            let config = with_token("t-1");
            // Each is a separate process that dies after some time.
            let stacks: Vec<_> = timeouts.iter().map(|_| stack(&cloud)).collect();
            let launches = stacks.iter().zip(&timeouts).map(|(stack, limit)| {
                timeout(millis(*limit), stack.launch_instance(&config))
            });
            let results = join_all(launches).await;
            prop_assert!(live(&cloud) <= 1);
            cloud.faults().clear();
            cloud.external_actor().set_capacity(Vec::new());
            let last = stack(&cloud).launch_instance(&config).await.unwrap();
            prop_assert_eq!(&cloud.oracle().leftovers().instances, std::slice::from_ref(&last.id));
            for info in results.into_iter().flatten().flatten() {
                prop_assert_eq!(info.id, last.id.clone());
            }
            let found = cloud.provisioner().find_launch(&token("t-1")).await.unwrap();
            prop_assert!(matches!(found, LaunchRecord::Found(all) if all.len() == 1));
            Ok(())
        })?;
    }
}
