//! The invariants of a wait, for arbitrary timelines.

use std::{num::NonZeroU32, time::Duration};

use fleetwright::{
    Effect, InstanceId,
    wait::{self, WaitPolicy},
};
use proptest::{collection::vec, option::of, prelude::*};

use super::cause;
use crate::{
    arbitrary,
    fake::{Fake, Observation, id, poll, secs},
};

fn observation() -> impl Strategy<Value = Observation> {
    prop_oneof![
        12 => arbitrary::state().prop_map(Observation::from),
        2 => Just(poll().not_found(&id("i-0")).into()),
        2 => (0_u64..9).prop_map(|delay| poll().throttled(secs(delay)).into()),
        2 => Just(poll().unavailable(Effect::None, "down").into()),
        1 => Just(poll().forbidden("no").into()),
        1 => Just(Observation::Hang),
    ]
}

/// Arbitrary timelines of some instances.
fn timelines() -> impl Strategy<Value = Vec<[(u64, Observation); 4]>> {
    let timeline = (
        observation(),
        observation(),
        observation(),
        observation(),
        vec(1_u64..12, 3),
    );
    let timeline = timeline.prop_map(|(a, b, c, d, gaps)| {
        let [one, two, three] = [gaps[0], gaps[0] + gaps[1], gaps.iter().sum()];
        [(0, a), (one, b), (two, c), (three, d)]
    });
    vec(timeline, 0..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn waits_end_in_time_respect_delays_and_report_correctly(
        timelines in timelines(), goal in arbitrary::state(),
        (deadline, window, tick) in (0_u64..60, 0_u64..20, 0_u64..4),
        (first, max, seed) in (0_u64..3000, 0_u64..9000, any::<u64>()),
        budget in of(1_u32..20),
    ) {
        let clock = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        clock.block_on(async {
            let mut fake = Fake::new(secs(window));
            fake.capabilities.poll_interval = secs(tick);
            let ids: Vec<InstanceId> = (0..timelines.len()).map(|n| id(&format!("i-{n}"))).collect();
            for (id, timeline) in ids.iter().zip(timelines) {
                fake = fake.with_timeline(id.as_str(), timeline);
            }
            let mut policy = WaitPolicy::within(secs(deadline))
                .delays(Duration::from_millis(first), Duration::from_millis(max))
                .jitter_seed(seed);
            policy.max_polls = budget.and_then(NonZeroU32::new);
            let waited = wait::for_state(&fake, &ids, goal, &policy).await;

            prop_assert!(fake.elapsed() <= secs(deadline) + Duration::from_millis(1));
            let polls = fake.polls();
            prop_assert!(polls.windows(2).all(|two| two[1] - two[0] >= secs(tick)), "{:?}", polls);
            prop_assert!(budget.is_none_or(|limit| polls.len() <= limit as usize));
            match waited {
                Ok(observed) => {
                    prop_assert!(observed.iter().all(|status| status.state == goal));
                    prop_assert_eq!(observed.into_iter().map(|status| status.id).collect::<Vec<_>>(), ids);
                }
                Err(error) => {
                    prop_assert_eq!(error.polls as usize, polls.len());
                    prop_assert_eq!(error.reached.len() + error.not_reached.len(), ids.len());
                    prop_assert!(!error.not_reached.is_empty());
                    prop_assert!(error.reached.iter().all(|status| status.state == goal));
                    let mut last = error.not_reached.iter().filter_map(|one| one.last.as_ref());
                    prop_assert!(last.all(|status| status.state != goal));
                    let in_time = fake.elapsed() < secs(deadline);
                    prop_assert!(!in_time || cause(&error) != "deadline", "{}", error);
                }
            }
            Ok(())
        })?;
    }
}
