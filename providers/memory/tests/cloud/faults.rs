//! Every fault at every call: the error reports the effect, and repeating the call converges.

use fleetwright::{Effect, ErrorKind, ProvisionError, RetryAdvice};
use fleetwright_memory::{Fault, Phase, RefusalReason, Rule, WireCall};
use tokio::time::timeout;

use crate::{
    calls::{self, Prepared, changes, outcome, prepare, send, snapshot_state},
    support::{LONG, block_on_paused, brisk, pass, seconds},
};

const PHASES: [Phase; 2] = [Phase::Before, Phase::After];

/// A fault, whether the call takes effect, and the expected error; `None` if the call never returns.
type Case = (
    Fault,
    bool,
    Option<(ErrorKind, Effect, RetryAdvice, Option<&'static str>)>,
);

fn cases() -> Vec<Case> {
    let refused = |refused, kind, retry, code| {
        let expected = Some((kind, Effect::None, retry, Some(code)));
        (Fault::Refused(refused), false, expected)
    };
    let (never, again) = (RetryAdvice::Never, RetryAdvice::SameToken);
    let wait = RetryAdvice::After(seconds(7));
    let mut all = vec![
        refused(
            RefusalReason::Throttled(seconds(7)),
            ErrorKind::Throttled,
            wait,
            "Throttling",
        ),
        refused(
            RefusalReason::BadCredentials,
            ErrorKind::Unauthenticated,
            never,
            "BadCredentials",
        ),
        refused(
            RefusalReason::AccessDenied,
            ErrorKind::Forbidden,
            never,
            "AccessDenied",
        ),
        refused(
            RefusalReason::Capacity,
            ErrorKind::Capacity,
            never,
            "InsufficientCapacity",
        ),
        refused(
            RefusalReason::Quota,
            ErrorKind::Quota,
            never,
            "AddressesExhausted",
        ),
        refused(
            RefusalReason::AccountQuota,
            ErrorKind::Quota,
            never,
            "QuotaExceeded",
        ),
        refused(
            RefusalReason::DiskSize,
            ErrorKind::Invalid,
            never,
            "InvalidParameter",
        ),
        refused(
            RefusalReason::ChangeInProgress,
            ErrorKind::Conflict,
            RetryAdvice::After(seconds(1)),
            "ChangeInProgress",
        ),
        refused(
            RefusalReason::Unsupported,
            ErrorKind::Unsupported,
            never,
            "UnsupportedOperation",
        ),
        (
            Fault::Malformed,
            true,
            Some((ErrorKind::Unexpected, Effect::Unknown, again, None)),
        ),
    ];
    for phase in PHASES {
        let done = phase == Phase::After;
        let internal = Some("InternalError");
        all.extend([
            (
                Fault::Lost(phase),
                done,
                Some((ErrorKind::Timeout, Effect::Unknown, again, None)),
            ),
            (
                Fault::ServerError(phase),
                done,
                Some((ErrorKind::Unavailable, Effect::Unknown, again, internal)),
            ),
            (Fault::Hang(phase), done, None),
            (Fault::Crash(phase), done, None),
        ]);
    }
    all
}

fn check(
    call: WireCall,
    error: &ProvisionError,
    expected: (ErrorKind, Effect, RetryAdvice, Option<&str>),
) {
    let is_read = error.operation().is_read();
    let effect = if is_read { Effect::None } else { expected.1 };
    assert_eq!(
        (error.kind(), error.effect()),
        (expected.0, effect),
        "{call}: {error}"
    );
    assert_eq!(
        (error.retry(), error.native_code()),
        (expected.2, expected.3),
        "{call}: {error}"
    );
    assert_eq!(error.provider(), "memory");
    assert!(error.request_id().unwrap().starts_with("req-"), "{error}");
    assert!(error.survivors().is_empty());
}

#[test]
fn every_fault_at_every_call_reports_its_effect_and_a_repeat_converges() {
    for call in calls::ALL {
        for (fault, takes_effect, expected) in cases() {
            block_on_paused(async {
                let what = format!("{call} {fault:?}");
                let twin = prepare(call, brisk()).await;
                send(call, &twin.provisioner, &twin.id).await.unwrap();
                pass(LONG).await;
                let Prepared {
                    cloud,
                    provisioner,
                    id,
                } = prepare(call, brisk()).await;
                let before = snapshot_state(&cloud);
                cloud.faults().add(Rule::nth(call, 1, fault.clone()));
                let result = timeout(LONG, send(call, &provisioner, &id)).await;
                match (result, expected) {
                    (Ok(result), Some(expected)) => check(call, &result.unwrap_err(), expected),
                    (result, None) => assert!(result.is_err(), "{what} ended"),
                    (result, Some(_)) => panic!("{what}: {result:?}"),
                }
                assert_eq!(cloud.faults().unused_rules(), [], "{what}");
                assert_eq!(
                    snapshot_state(&cloud) == before,
                    !takes_effect || !changes(call),
                    "{what}"
                );
                // The same handle after an error, a new one if the call never returned.
                let handle = if expected.is_some() {
                    provisioner
                } else {
                    cloud.provisioner()
                };
                pass(seconds(2)).await;
                send(call, &handle, &id).await.unwrap();
                pass(LONG * 2).await;
                assert_eq!(outcome(&cloud), outcome(&twin.cloud), "{what}");
            });
        }
    }
}

#[test]
fn effect_of_a_faulty_call_equals_that_of_a_fault_free_call() {
    for call in calls::ALL {
        for (fault, takes_effect, _) in cases() {
            block_on_paused(async {
                let twin = prepare(call, brisk()).await;
                let before = snapshot_state(&twin.cloud);
                send(call, &twin.provisioner, &twin.id).await.unwrap();
                let expected = if takes_effect {
                    snapshot_state(&twin.cloud)
                } else {
                    before
                };
                let Prepared {
                    cloud,
                    provisioner,
                    id,
                } = prepare(call, brisk()).await;
                cloud.faults().add(Rule::always(call, fault.clone()));
                // Zero latency, so that no transition finishes before the comparison.
                let never = timeout(seconds(0), send(call, &provisioner, &id)).await;
                assert!(never.is_err() || never.unwrap().is_err());
                assert_eq!(snapshot_state(&cloud), expected, "{call} {fault:?}");
            });
        }
    }
}
