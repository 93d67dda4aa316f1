//! Whether a failed attempt is repeated, and when: a pure function of the failure.

use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBuilder};

use crate::{Effect, Error, operation::Operation};

/// The delays between attempts, if the service names none: 200 ms, doubled, at most 5 s, with jitter.
pub(crate) fn delays(attempts: usize) -> impl Iterator<Item = Duration> + Send + use<> {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(200))
        .with_max_delay(Duration::from_secs(5))
        .with_max_times(attempts.saturating_sub(1))
        .with_jitter()
        .build()
}

/// Whether the same request can succeed later, without being carried out twice.
pub(crate) fn can_retry(operation: &Operation, error: &Error) -> bool {
    match error {
        // The service knows: it says after how long. A fault may have come after the change.
        Error::Problem {
            problem, effect, ..
        } => problem.retry_after.is_some() && *effect == Effect::None,
        Error::Connection { effect, .. } => *effect == Effect::None || operation.can_repeat(),
        // What a proxy in front of the service sends while the service is away.
        Error::Response { status, .. } => {
            matches!(status, 429 | 502 | 503 | 504) && operation.can_repeat()
        }
        Error::Deadline { .. } | Error::Invalid { .. } | Error::NeedsDecision { .. } => false,
    }
}

/// How long to wait before the next attempt: never less than the service says.
pub(crate) fn delay(error: &Error, next: Duration) -> Duration {
    error
        .retry_after()
        .map_or(next, |advised| advised.max(next))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation;

    fn connection(effect: Effect) -> Error {
        Error::Connection {
            operation: "x",
            problem: "the response was lost",
            effect,
            source: "reset".into(),
        }
    }

    #[test]
    fn a_lost_response_is_repeated_only_where_that_is_safe() {
        let lost = connection(Effect::Unknown);
        for operation in operation::OPERATIONS {
            let expected = matches!(operation.method, "GET" | "POST");
            assert_eq!(can_retry(operation, &lost), expected, "{operation:?}");
            assert!(can_retry(operation, &connection(Effect::None)));
        }
    }

    #[test]
    fn the_service_decides_whether_and_when() {
        let mut problem: fleetwright_api::Problem = serde_json::from_str(
            r#"{"type":"","title":"","status":409,"code":"conflict","detail":"","traceId":""}"#,
        )
        .unwrap_or_else(|error| unreachable!("{error}"));
        let error = |problem: &fleetwright_api::Problem| Error::Problem {
            operation: "x",
            problem: Box::new(problem.clone()),
            effect: Effect::None,
        };
        let short = Duration::from_millis(200);
        assert!(!can_retry(&operation::DELETE_INSTANCE, &error(&problem)));
        problem.retry_after = Some(7);
        assert!(can_retry(&operation::DELETE_INSTANCE, &error(&problem)));
        assert_eq!(delay(&error(&problem), short), Duration::from_secs(7));
        assert_eq!(delay(&connection(Effect::None), short), short);
        // It may have been carried out.
        let fault = error(&problem).after(Effect::Unknown);
        assert!(!can_retry(&operation::DELETE_INSTANCE, &fault));
    }

    #[test]
    fn the_number_of_attempts_is_bounded() {
        assert_eq!(delays(5).count(), 4);
        assert_eq!(delays(1).count(), 0);
        assert!(delays(20).all(|delay| delay <= Duration::from_secs(10)));
    }
}
