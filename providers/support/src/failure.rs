//! Failed native calls, and the shared error that each becomes.
//!
//! Owns what a failure says about its effect: a refusal changed nothing, a breakdown or a lost response may
//! have changed anything, and a call that was not sent changed nothing. What a native code means is the
//! cloud's own business and comes from [`Service::classify`].

use std::{error, fmt, marker::PhantomData, time::Duration};

use chrono::{DateTime, Utc};
use fleetwright::{
    Call, Effect, InstanceConfig, InstanceId, InvalidValue, LaunchFailure, LaunchToken, NetworkId,
    Operation, Problem, ProvisionError, RetryAdvice, Scope, Zone,
};

/// A cloud service, as far as its errors are concerned. Implemented by a marker type of the backend.
///
/// ```
/// use std::time::Duration;
///
/// use fleetwright::{Call, Effect, ErrorKind, Operation, Scope};
/// use fleetwright_provider_support::{Cause, Class, ErrorContext, Service};
///
/// #[derive(Clone, Debug)]
/// struct Acme;
///
/// impl Service for Acme {
///     const NAME: &'static str = "Acme";
///     const RETRY_DELAY: Duration = Duration::from_secs(1);
///
///     fn classify(failure: &Failure, _: &ErrorContext<'_>) -> Class {
///         match failure.code.as_deref() {
///             Some("SoldOut") => Class::Capacity(Scope::Region),
///             Some("SlowDown") => Class::Throttled,
///             _ => Class::Other,
///         }
///     }
/// }
///
/// type Failure = fleetwright_provider_support::Failure<Acme>;
///
/// let call = Call::new("acme", Operation::LaunchInstance);
/// let sold_out = Failure::new(Cause::Responded(409), "no small left").with_code("SoldOut");
/// let error = sold_out.into_error(&call, ErrorContext::default());
/// assert_eq!((error.kind(), error.effect()), (ErrorKind::Capacity, Effect::None));
/// assert_eq!(error.native_code(), Some("SoldOut"));
///
/// // A status without a known code: the service broke down, so the effect is unknown.
/// let error = Failure::new(Cause::Responded(500), "oops").into_error(&call, ErrorContext::default());
/// assert_eq!((error.kind(), error.effect()), (ErrorKind::Unavailable, Effect::Unknown));
/// ```
pub trait Service: Clone + fmt::Debug + Send + Sync + 'static {
    /// What error messages call the service, such as `EC2`.
    const NAME: &'static str;

    /// How long to wait after throttling or a conflict if the response does not say.
    const RETRY_DELAY: Duration;

    /// Whether the service undoes what an operation began when that operation fails later. Then
    /// [`Cause::OperationFailed`] never has an effect.
    const UNDOES_FAILED_OPERATIONS: bool = false;

    /// Returns how long to wait after throttling or a conflict whose response does not say. Default:
    /// [`RETRY_DELAY`](Self::RETRY_DELAY).
    fn retry_delay(failure: &Failure<Self>) -> Duration {
        let _ = failure;
        Self::RETRY_DELAY
    }

    /// Returns what an error response or a failed operation means. Called only for those two causes.
    fn classify(failure: &Failure<Self>, context: &ErrorContext<'_>) -> Class;

    /// Returns the part of a message that may be shown. A service that quotes user data in its messages
    /// overrides this to cut it off.
    fn safe_message(message: &str) -> &str {
        message
    }
}

/// A failed native call, as the backend's client observed it.
///
/// Its `Display` never shows the message, so it can travel through an SDK's own error type and logs.
///
/// [`Service`] has an example with a service.
///
/// ```
/// use std::time::Duration;
/// use fleetwright_provider_support::{Cause, Failure};
///
/// let failure = Failure::<()>::new(Cause::Responded(429), "too many requests")
///     .with_code("SlowDown")
///     .with_retry_after(Some(Duration::from_secs(2)));
/// assert_eq!((failure.status(), failure.code()), (Some(429), "SlowDown"));
/// ```
#[derive(Clone, Debug)]
pub struct Failure<S> {
    /// How the call failed.
    pub cause: Cause,
    /// The service's error code, of the response or of the failed operation.
    pub code: Option<String>,
    /// The service's message, or ours where there was no response. Show it only through
    /// [`safe_message`](Self::safe_message).
    pub message: String,
    /// The service's name for the request or the operation, for its support.
    pub request_id: Option<String>,
    /// The delay before a retry that the response requests.
    pub retry_after: Option<Duration>,
    /// The service's clock at the time of the response.
    pub server_time: Option<DateTime<Utc>>,
    service: PhantomData<S>,
}

/// How a call failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cause {
    /// The service sent an error response with this HTTP status.
    Responded(u16),
    /// The service accepted the call, and the operation that it began failed later, with this HTTP status
    /// if operations have one.
    OperationFailed(Option<u16>),
    /// No response came in time.
    TimedOut,
    /// The connection failed, before or after the request arrived.
    #[default]
    Disconnected,
    /// The response cannot be read.
    Unreadable,
    /// Nothing was sent: there are no credentials, or they were refused.
    NoCredentials,
    /// Nothing was sent: credentials cannot be obtained at the moment.
    CredentialsUnavailable,
    /// Nothing was sent: no connection could be made.
    NotConnected,
    /// Nothing was sent: the request, with its credentials, would have gone to another host.
    WrongHost,
    /// Nothing was sent: the request cannot be built.
    NotSent,
    /// Nothing was sent: a setting of the handle or of its environment is missing or invalid.
    InvalidSetting(&'static Setting),
}

/// A setting of a handle or of its environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its name.
    pub field: &'static str,
    /// What it is not, and what to set, for the error text "is not ...".
    pub expected: &'static str,
}

/// What a call was about, for errors that name it.
#[derive(Clone, Copy, Debug, Default)]
pub struct ErrorContext<'a> {
    /// The one instance that the call was about.
    pub instance: Option<&'a InstanceId>,
    /// The config of a launch.
    pub config: Option<&'a InstanceConfig>,
    /// The zone of a launch or of the instance.
    pub zone: Option<&'a Zone>,
    /// The network of a launch.
    pub network: Option<&'a NetworkId>,
    /// The token of a launch.
    pub token: Option<&'a LaunchToken>,
    /// For how long the instance may still not show, because this handle has just launched it: see
    /// [`RecentLaunches::hidden_for`](crate::RecentLaunches::hidden_for). Zero for any other instance.
    pub hidden_for: Duration,
}

/// What an error response means, in the terms of [`Call`]'s constructors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Class {
    /// The context's instance does not exist, or does not show yet. [`Other`](Self::Other) if the context
    /// has no instance.
    NotFound,
    /// The context's launch token was used with another config. [`Other`](Self::Other) without a token.
    TokenConflict,
    /// The context's launch token is spent. [`Other`](Self::Other) without a token.
    TokenSpent,
    /// The scope has no capacity.
    Capacity(Scope),
    /// The scope's quota is used up.
    Quota(Scope),
    /// Too many calls.
    Throttled,
    /// The credentials were refused.
    Unauthenticated,
    /// The credentials are valid and do not allow the call.
    Forbidden,
    /// The service does not offer the call for this instance. The error has the service's message.
    Unsupported,
    /// Another operation in progress excludes the call; a retry can succeed.
    Conflict,
    /// The value of this field was refused.
    Invalid(&'static str),
    /// The code says no more than the status, which decides: a refusal had no effect, the effect of a
    /// breakdown is unknown.
    Other,
}

impl<S> Failure<S> {
    /// Creates a failure without code, request id or retry delay.
    pub fn new(cause: Cause, message: impl Into<String>) -> Self {
        Self {
            cause,
            code: None,
            message: message.into(),
            request_id: None,
            retry_after: None,
            server_time: None,
            service: PhantomData,
        }
    }

    /// Sets the service's error code. An empty one counts as none.
    #[must_use]
    pub fn with_code(mut self, code: impl Into<String>) -> Self {
        self.code = Some(code.into()).filter(|code| !code.is_empty());
        self
    }

    /// Sets the service's name for the request.
    #[must_use]
    pub fn with_request_id(mut self, id: Option<String>) -> Self {
        self.request_id = id;
        self
    }

    /// Sets the delay before a retry that the response requests.
    #[must_use]
    pub fn with_retry_after(mut self, delay: Option<Duration>) -> Self {
        self.retry_after = delay;
        self
    }

    /// Sets the service's clock at the time of the response.
    #[must_use]
    pub fn with_server_time(mut self, time: Option<DateTime<Utc>>) -> Self {
        self.server_time = time;
        self
    }

    /// Returns the code, or an empty string.
    pub fn code(&self) -> &str {
        self.code.as_deref().unwrap_or_default()
    }

    /// Returns the HTTP status of the error response or of the failed operation.
    pub fn status(&self) -> Option<u16> {
        match self.cause {
            Cause::Responded(status) => Some(status),
            Cause::OperationFailed(status) => status,
            Cause::TimedOut
            | Cause::Disconnected
            | Cause::Unreadable
            | Cause::NoCredentials
            | Cause::CredentialsUnavailable
            | Cause::NotConnected
            | Cause::WrongHost
            | Cause::NotSent
            | Cause::InvalidSetting(_) => None,
        }
    }
}

impl<S: Service> Failure<S> {
    /// Whether a repetition of the same call can succeed soon. `responded` decides for an error response
    /// with this status; a call without a readable response, or without a connection, may succeed. A
    /// failed operation, missing credentials and a request that cannot be sent will fail again.
    pub fn is_transient(&self, responded: impl FnOnce(u16) -> bool) -> bool {
        match self.cause {
            Cause::Responded(status) => responded(status),
            Cause::TimedOut | Cause::Disconnected | Cause::Unreadable => true,
            Cause::CredentialsUnavailable | Cause::NotConnected => true,
            Cause::OperationFailed(_)
            | Cause::NoCredentials
            | Cause::WrongHost
            | Cause::NotSent
            | Cause::InvalidSetting(_) => false,
        }
    }

    /// Returns how long to wait before the same call is sent again: what the response says, or what is
    /// usual for the service.
    pub fn retry_delay(&self) -> Duration {
        self.retry_after.unwrap_or_else(|| S::retry_delay(self))
    }

    /// Returns the part of the message that may be shown.
    pub fn safe_message(&self) -> &str {
        S::safe_message(&self.message)
    }

    /// Converts the failure into the shared error of `call`, with native code and request id.
    pub fn into_error(self, call: &Call, context: ErrorContext<'_>) -> ProvisionError {
        let mut error = self.to_error(call, &context);
        if let Some(code) = self.code {
            error = error.with_native_code(code);
        }
        if let Some(id) = self.request_id {
            error = error.with_request_id(id);
        }
        error
    }

    /// Returns why the launch of `context` failed late, if this is the failure of its operation.
    pub fn launch_failure(&self, context: ErrorContext<'_>) -> LaunchFailure {
        let call = Call::new(S::NAME, Operation::LaunchInstance);
        let failure = LaunchFailure::from(&self.to_error(&call, &context));
        match &self.code {
            Some(code) => failure.with_native_code(code.as_str()),
            None => failure,
        }
    }

    fn to_error(&self, call: &Call, context: &ErrorContext<'_>) -> ProvisionError {
        let message = self.safe_message();
        match self.cause {
            Cause::TimedOut => call.timeout(Effect::Unknown),
            Cause::Disconnected => call.unavailable(Effect::Unknown, message),
            Cause::Unreadable => call.unexpected(Effect::Unknown, message),
            Cause::NoCredentials => call.unauthenticated(message),
            Cause::CredentialsUnavailable | Cause::NotConnected => {
                call.unavailable(Effect::None, message)
            }
            Cause::WrongHost | Cause::NotSent => call.unexpected(Effect::None, message),
            Cause::InvalidSetting(setting) => {
                let expected = setting.expected;
                call.invalid(InvalidValue::new(
                    setting.field,
                    Problem::Malformed { expected },
                ))
            }
            Cause::Responded(status) => self.classified_error(call, context, Some(status)),
            Cause::OperationFailed(status) => {
                let error = self.classified_error(call, context, status);
                if S::UNDOES_FAILED_OPERATIONS {
                    error.with_effect(Effect::None)
                } else {
                    error
                }
            }
        }
    }

    fn classified_error(
        &self,
        call: &Call,
        context: &ErrorContext<'_>,
        status: Option<u16>,
    ) -> ProvisionError {
        let message = self.safe_message();
        let retry_delay = self.retry_delay();
        match (S::classify(self, context), context.instance, context.token) {
            (Class::NotFound, Some(id), _) => call.not_found_yet(id, context.hidden_for),
            (Class::TokenConflict, _, Some(token)) => call.token_conflict(token),
            (Class::TokenSpent, _, Some(token)) => call.token_spent(token),
            (Class::Capacity(scope), ..) => call.capacity(scope, message),
            (Class::Quota(scope), ..) => call.quota(scope, message),
            (Class::Throttled, ..) => call.throttled(retry_delay),
            (Class::Unauthenticated, ..) => call.unauthenticated(message),
            (Class::Forbidden, ..) => call.forbidden(message),
            (Class::Unsupported, ..) if message.is_empty() => call.unsupported(),
            (Class::Unsupported, ..) => call.unsupported_because(message),
            (Class::Conflict, ..) => call.conflict(message, RetryAdvice::After(retry_delay)),
            (Class::Invalid(field), ..) => {
                let instead = format!("{} says: {message}", S::NAME);
                call.invalid(InvalidValue::new(field, Problem::NotOffered { instead }))
            }
            (Class::NotFound | Class::TokenConflict | Class::TokenSpent | Class::Other, ..) => {
                unclassified_error(call, status, message)
            }
        }
    }
}

/// The error of a response whose code says nothing more.
fn unclassified_error(call: &Call, status: Option<u16>, message: &str) -> ProvisionError {
    match status {
        // A gateway reports 408 when it stops waiting for the service behind it.
        Some(408 | 500..=599) => call.unavailable(Effect::Unknown, message),
        Some(400..=499) => call.unexpected(Effect::None, message),
        Some(_) | None => call.unexpected(Effect::Unknown, message),
    }
}

impl<S> Default for Failure<S> {
    fn default() -> Self {
        Self::new(Cause::default(), String::new())
    }
}

impl<S: Service> fmt::Display for Failure<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a call to {} failed", S::NAME)
    }
}

impl<S: Service> error::Error for Failure<S> {}

#[cfg(test)]
mod tests;
