//! Failures of two invented services, and the errors that they become.

use super::*;
use fleetwright::{ErrorKind, Operation};

#[derive(Clone, Debug)]
struct Cloud;

impl Service for Cloud {
    const NAME: &'static str = "Cloud";
    const RETRY_DELAY: Duration = Duration::from_secs(3);

    fn classify(failure: &Failure<Self>, _: &ErrorContext<'_>) -> Class {
        match failure.code() {
            "missing" => Class::NotFound,
            "reused" => Class::TokenConflict,
            "spent" => Class::TokenSpent,
            "slow" => Class::Throttled,
            "busy" => Class::Conflict,
            "image" => Class::Invalid("image"),
            _ => Class::Other,
        }
    }

    fn safe_message(message: &str) -> &str {
        message.split("secret").next().unwrap_or_default()
    }
}

#[derive(Clone, Debug)]
struct Undoing;

impl Service for Undoing {
    const NAME: &'static str = "Undoing";
    const RETRY_DELAY: Duration = Duration::ZERO;
    const UNDOES_FAILED_OPERATIONS: bool = true;

    fn classify(_: &Failure<Self>, _: &ErrorContext<'_>) -> Class {
        Class::Other
    }
}

fn launch() -> Call {
    Call::new("cloud", Operation::LaunchInstance)
}

fn error_of(cause: Cause, code: &str, context: ErrorContext<'_>) -> ProvisionError {
    let failure = Failure::<Cloud>::new(cause, "x secret").with_code(code);
    failure.into_error(&launch(), context)
}

#[test]
fn cause_decides_kind_and_effect() {
    let cases = [
        (Cause::TimedOut, ErrorKind::Timeout, Effect::Unknown),
        (Cause::Disconnected, ErrorKind::Unavailable, Effect::Unknown),
        (Cause::Unreadable, ErrorKind::Unexpected, Effect::Unknown),
        (
            Cause::NoCredentials,
            ErrorKind::Unauthenticated,
            Effect::None,
        ),
        (
            Cause::CredentialsUnavailable,
            ErrorKind::Unavailable,
            Effect::None,
        ),
        (Cause::NotConnected, ErrorKind::Unavailable, Effect::None),
        (Cause::WrongHost, ErrorKind::Unexpected, Effect::None),
        (Cause::NotSent, ErrorKind::Unexpected, Effect::None),
        (
            Cause::InvalidSetting(&Setting {
                field: "region",
                expected: "set; set it",
            }),
            ErrorKind::Invalid,
            Effect::None,
        ),
        (
            Cause::Responded(200),
            ErrorKind::Unexpected,
            Effect::Unknown,
        ),
        (Cause::Responded(404), ErrorKind::Unexpected, Effect::None),
        (
            Cause::Responded(408),
            ErrorKind::Unavailable,
            Effect::Unknown,
        ),
        (
            Cause::Responded(502),
            ErrorKind::Unavailable,
            Effect::Unknown,
        ),
        (
            Cause::OperationFailed(None),
            ErrorKind::Unexpected,
            Effect::Unknown,
        ),
        (
            Cause::OperationFailed(Some(503)),
            ErrorKind::Unavailable,
            Effect::Unknown,
        ),
    ];
    for (cause, kind, effect) in cases {
        let error = error_of(cause, "", ErrorContext::default());
        assert_eq!((error.kind(), error.effect()), (kind, effect), "{cause:?}");
    }
}

#[test]
fn failed_operation_has_no_effect_where_the_service_undoes_it() {
    let failure = Failure::<Undoing>::new(Cause::OperationFailed(Some(503)), "");
    let error = failure.into_error(&launch(), ErrorContext::default());
    assert_eq!(
        (error.kind(), error.effect()),
        (ErrorKind::Unavailable, Effect::None)
    );
}

#[test]
fn context_names_instance_and_token() {
    let id = InstanceId::new("i-1").unwrap();
    let token = LaunchToken::new("t-1").unwrap();
    let refused = Cause::Responded(400);
    for code in ["missing", "reused", "spent"] {
        let error = error_of(refused, code, ErrorContext::default());
        assert_eq!(error.kind(), ErrorKind::Unexpected, "{code}");
    }
    let context = ErrorContext {
        token: Some(&token),
        ..ErrorContext::default()
    };
    assert_eq!(
        error_of(refused, "reused", context).kind(),
        ErrorKind::TokenConflict
    );
    assert_eq!(
        error_of(refused, "spent", context).kind(),
        ErrorKind::TokenSpent
    );
    let window = Duration::from_secs(9);
    for (window, retry) in [
        (Duration::ZERO, RetryAdvice::Never),
        (window, RetryAdvice::After(window)),
    ] {
        let context = ErrorContext {
            instance: Some(&id),
            hidden_for: window,
            ..ErrorContext::default()
        };
        let error = error_of(refused, "missing", context);
        assert_eq!((error.kind(), error.retry()), (ErrorKind::NotFound, retry));
    }
}

#[test]
fn retry_delay_of_the_response_wins_over_the_default() {
    for code in ["slow", "busy"] {
        let failure = Failure::<Cloud>::new(Cause::Responded(429), "").with_code(code);
        let retry = |failure: Failure<Cloud>| {
            let error = failure.into_error(&launch(), ErrorContext::default());
            error.retry()
        };
        assert_eq!(
            retry(failure.clone()),
            RetryAdvice::After(Cloud::RETRY_DELAY)
        );
        let delay = Duration::from_secs(7);
        let failure = failure.with_retry_after(Some(delay));
        assert_eq!(retry(failure), RetryAdvice::After(delay));
    }
}

#[test]
fn error_keeps_code_and_request_id_and_shows_only_the_safe_message() {
    let failure = Failure::<Cloud>::new(Cause::Responded(400), "no such image: secret")
        .with_code("image")
        .with_request_id(Some("req-1".to_owned()));
    assert_eq!(failure.to_string(), "a call to Cloud failed");
    let error = failure.into_error(&launch(), ErrorContext::default());
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert_eq!(error.native_code(), Some("image"));
    assert_eq!(error.request_id(), Some("req-1"));
    let shown = format!("{error} {error:?}");
    assert!(shown.contains("Cloud says: no such image"), "{shown}");
    assert!(!shown.contains("secret"), "{shown}");
}
