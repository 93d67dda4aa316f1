//! What goes wrong, at every call: the error tells the truth, and a repeat converges.

use fleetwright::{Effect, ErrorKind, ProvisionError, RetryAdvice};
use fleetwright_memory::{Fault, Phase, Refused, Rule, WireCall};
use tokio::time::timeout;

use crate::{
    calls::{self, Made, changes, make, outcome, picture, ready},
    support::{LONG, brisk, pass, seconds, virtually},
};

const PHASES: [Phase; 2] = [Phase::Before, Phase::After];

/// A fault, whether the call is carried out all the same, and the error that it is told by; none
/// where the call never ends.
type Case = (
    Fault,
    bool,
    Option<(ErrorKind, Effect, RetryAdvice, Option<&'static str>)>,
);

fn cases() -> Vec<Case> {
    let refused = |refused, kind, retry, code| {
        let told = Some((kind, Effect::None, retry, Some(code)));
        (Fault::Refused(refused), false, told)
    };
    let (never, again) = (RetryAdvice::Never, RetryAdvice::SameToken);
    let wait = RetryAdvice::After(seconds(7));
    let mut all = vec![
        refused(
            Refused::Throttled(seconds(7)),
            ErrorKind::Throttled,
            wait,
            "Throttling",
        ),
        refused(
            Refused::BadCredentials,
            ErrorKind::Unauthenticated,
            never,
            "BadCredentials",
        ),
        refused(
            Refused::AccessDenied,
            ErrorKind::Forbidden,
            never,
            "AccessDenied",
        ),
        refused(
            Refused::Capacity,
            ErrorKind::Capacity,
            never,
            "InsufficientCapacity",
        ),
        refused(
            Refused::Quota,
            ErrorKind::Quota,
            never,
            "AddressesExhausted",
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
    told: (ErrorKind, Effect, RetryAdvice, Option<&str>),
) {
    let is_read = error.operation().is_read();
    let effect = if is_read { Effect::None } else { told.1 };
    assert_eq!(
        (error.kind(), error.effect()),
        (told.0, effect),
        "{call}: {error}"
    );
    assert_eq!(
        (error.retry(), error.native_code()),
        (told.2, told.3),
        "{call}: {error}"
    );
    assert_eq!(error.provider(), "memory");
    assert!(error.request_id().unwrap().starts_with("req-"), "{error}");
    assert!(error.survivors().is_empty());
}

#[test]
fn every_fault_at_every_call_tells_the_truth_and_a_repeat_converges() {
    for call in calls::ALL {
        for (fault, carried_out, told) in cases() {
            virtually(async {
                let what = format!("{call} {fault:?}");
                let twin = ready(call, brisk()).await;
                make(call, &twin.provisioner, &twin.id).await.unwrap();
                pass(LONG).await;
                let Made {
                    cloud,
                    provisioner,
                    id,
                } = ready(call, brisk()).await;
                let before = picture(&cloud);
                cloud.faults().add(Rule::nth(call, 1, fault.clone()));
                let answer = timeout(LONG, make(call, &provisioner, &id)).await;
                match (answer, told) {
                    (Ok(answer), Some(told)) => check(call, &answer.unwrap_err(), told),
                    (answer, None) => assert!(answer.is_err(), "{what} ended"),
                    (answer, Some(_)) => panic!("{what}: {answer:?}"),
                }
                assert_eq!(cloud.faults().unused_rules(), [], "{what}");
                assert_eq!(
                    picture(&cloud) == before,
                    !carried_out || !changes(call),
                    "{what}"
                );
                // The same handle after an error, a new one where the call never ended.
                let handle = if told.is_some() {
                    provisioner
                } else {
                    cloud.provisioner()
                };
                pass(seconds(2)).await;
                make(call, &handle, &id).await.unwrap();
                pass(LONG * 2).await;
                assert_eq!(outcome(&cloud), outcome(&twin.cloud), "{what}");
            });
        }
    }
}

#[test]
fn what_was_carried_out_is_the_same_as_without_the_fault() {
    for call in calls::ALL {
        for (fault, carried_out, _) in cases() {
            virtually(async {
                let twin = ready(call, brisk()).await;
                let before = picture(&twin.cloud);
                make(call, &twin.provisioner, &twin.id).await.unwrap();
                let expected = if carried_out {
                    picture(&twin.cloud)
                } else {
                    before
                };
                let Made {
                    cloud,
                    provisioner,
                    id,
                } = ready(call, brisk()).await;
                cloud.faults().add(Rule::always(call, fault.clone()));
                // Zero, so that nothing settles before the picture is taken.
                let never = timeout(seconds(0), make(call, &provisioner, &id)).await;
                assert!(never.is_err() || never.unwrap().is_err());
                assert_eq!(picture(&cloud), expected, "{call} {fault:?}");
            });
        }
    }
}
