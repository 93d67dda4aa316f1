//! Checks of how the error responses of a cloud become shared errors.

use fleetwright::{Call, Effect, ErrorKind};
use fleetwright_provider_support::{Cause, ErrorContext, Failure, Service};

/// Checks that each error response, as `(status, code, message, kind)`, becomes an error of its kind that
/// keeps code and request id. An unavailable service has an unknown effect; every other refusal has none.
///
/// # Panics
///
/// If one of them becomes another error.
pub fn check_error_kinds<S: Service>(
    call: &Call,
    context: ErrorContext<'_>,
    cases: &[(u16, &str, &str, ErrorKind)],
) {
    for &(status, code, message, kind) in cases {
        let failure = Failure::<S>::new(Cause::Responded(status), message)
            .with_code(code)
            .with_request_id(Some("req-1".to_owned()));
        let error = failure.into_error(call, context);
        let effect = if kind == ErrorKind::Unavailable {
            Effect::Unknown
        } else {
            Effect::None
        };
        assert_eq!(error.kind(), kind, "{status} {code}: {error}");
        assert_eq!(error.effect(), effect, "{status} {code}: {error}");
        let native_code = Some(code).filter(|code| !code.is_empty());
        assert_eq!(error.native_code(), native_code, "{status} {code}: {error}");
        assert_eq!(
            error.request_id(),
            Some("req-1"),
            "{status} {code}: {error}"
        );
    }
}
