//! Dates in the future: a clock was set back since they were recorded. Pure.
//!
//! Every delay of the controller counts from a date in the record. If that date is in the future, the delay would last until the clock
//! has caught up, whatever the policy says. It starts again now instead.

use chrono::{DateTime, Utc};
use fleetwright_runtime::clock::{between, later};

use super::ControllerPolicy;
use crate::server::{RefusedValue, Retry, Server};

/// Replaces every date of the controller that is in the future, and shortens delays that exceed the policy. Returns whether any was.
pub(super) fn replace_future_dates(
    server: &mut Server,
    policy: &ControllerPolicy,
    now: DateTime<Utc>,
) -> bool {
    let mut changed = false;
    let mut past = |date: &mut DateTime<Utc>| {
        changed |= *date > now;
        *date = (*date).min(now);
    };
    if let Some(sent_at) = server.launch.as_mut().and_then(|one| one.sent_at.as_mut()) {
        past(sent_at);
    }
    if let Some(machine) = &mut server.machine {
        past(&mut machine.recorded_at);
        if let Some(last) = &mut machine.last_action {
            past(&mut last.at);
        }
        if let Some(sent_at) = &mut machine.unconfirmed.reimage_sent_at {
            past(sent_at);
        }
        let termination = machine.termination.as_mut();
        if let Some(accepted_at) = termination.and_then(|sent| sent.accepted_at.as_mut()) {
            past(accepted_at);
        }
        if let Some(withdrawn_at) = &mut machine.withdrawn_at {
            past(withdrawn_at);
        }
        let latest = later(now, policy.refused_backoff);
        changed |= shorten(machine.refused.flavor.as_mut(), latest);
        changed |= shorten(machine.refused.image.as_mut(), latest);
    }
    if let Some(retry) = &mut server.retry {
        let moved = moved_to_now(retry, policy, now);
        changed |= moved != *retry;
        *retry = moved;
    }
    changed
}

/// Moves the date of a refused value to `latest`, if it is later. Returns whether it was.
fn shorten<T>(refused: Option<&mut RefusedValue<T>>, latest: DateTime<Utc>) -> bool {
    match refused {
        Some(refused) if refused.retry_at > latest => {
            refused.retry_at = latest;
            true
        }
        Some(_) | None => false,
    }
}

/// Returns the delay after a failure, started again now if it began in the future.
pub(super) fn moved_to_now(retry: &Retry, policy: &ControllerPolicy, now: DateTime<Utc>) -> Retry {
    let mut moved = retry.clone();
    match retry.since {
        Some(since) if since > now => {
            moved.since = Some(now);
            moved.not_before = later(now, between(since, retry.not_before));
        }
        Some(_) => {}
        // A record from before the field: no delay of the policy is longer.
        None => moved.not_before = retry.not_before.min(later(now, policy.longest_delay())),
    }
    moved
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::controller::tests::arbitrary;

    proptest! {
        #[test]
        fn no_date_is_in_the_future_afterwards(index: usize, back in 0_u64..100_000_000) {
            let policy = ControllerPolicy::default();
            let shapes = arbitrary::every_shape();
            let mut server = shapes[index % shapes.len()].clone();
            let now = arbitrary::now() - Duration::from_secs(back);
            let changed = replace_future_dates(&mut server, &policy, now);
            let mut again = server.clone();
            prop_assert!(!replace_future_dates(&mut again, &policy, now), "{changed}");
            prop_assert_eq!(&again, &server);
            if let Some(retry) = &server.retry {
                prop_assert!(between(now, retry.not_before) <= policy.longest_delay());
            }
            if let Some(machine) = &server.machine {
                prop_assert!(machine.recorded_at <= now);
            }
        }
    }
}
