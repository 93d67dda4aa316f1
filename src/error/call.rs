//! Creates errors: one constructor per kind, with the arguments that the kind needs.

use std::{sync::Arc, time::Duration};

use super::{Effect, ErrorKind, Inner, ProvisionError, RetryAdvice, Scope, one_line};
use crate::{CloudInstanceState, InstanceId, InvalidValue, LaunchFailure, LaunchToken, Operation};

/// A call on a backend. It creates the errors of the call, one method per
/// [kind](ErrorKind), for authors of backends and layers.
///
/// Messages are put on one line and cut to 600 characters. They are for people: never put user data,
/// session tokens or headers into them. Add native codes, request ids and sources with the `with_`
/// methods of [`ProvisionError`].
///
/// ```
/// use std::time::Duration;
/// use fleetwright::{Call, Effect, ErrorKind, Operation, RetryAdvice, Scope, Zone};
///
/// let call = Call::new("my-cloud", Operation::LaunchInstance);
/// let error = call.throttled(Duration::from_secs(5)).with_native_code("SlowDown");
/// assert_eq!(error.retry(), RetryAdvice::After(Duration::from_secs(5)));
///
/// let error = call.capacity(Scope::zone(Zone::new("zone-a")?), "no machine is free");
/// assert_eq!((error.kind(), error.effect()), (ErrorKind::Capacity, Effect::None));
///
/// // A timeout: the caller must say what is known about the effect.
/// let error = call.timeout(Effect::Unknown);
/// assert_eq!(error.retry(), RetryAdvice::SameToken);
/// # Ok::<(), fleetwright::InvalidValue>(())
/// ```
#[derive(Clone, Debug)]
pub struct Call {
    provider: Arc<str>,
    operation: Operation,
}

impl Call {
    /// Creates a call of `operation` on the backend `provider`.
    pub fn new(provider: impl Into<Arc<str>>, operation: Operation) -> Self {
        Self {
            provider: provider.into(),
            operation,
        }
    }

    /// Returns the backend's name.
    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// Returns a call of another operation on the same backend.
    pub(crate) fn with_operation(&self, operation: Operation) -> Self {
        Self {
            provider: Arc::clone(&self.provider),
            operation,
        }
    }

    /// Returns the operation.
    pub const fn operation(&self) -> Operation {
        self.operation
    }

    /// [`Invalid`](ErrorKind::Invalid): a value was refused before anything was created.
    pub fn invalid(&self, value: InvalidValue) -> ProvisionError {
        let error = self.without_effect(ErrorKind::Invalid, &value.to_string(), RetryAdvice::Never);
        error.change(|parts| parts.invalid = Some(value))
    }

    /// [`NotFound`](ErrorKind::NotFound): the cloud has no instance with this id.
    pub fn not_found(&self, id: &InstanceId) -> ProvisionError {
        let message = format!("there is no instance {id}; check the id and the account");
        self.without_effect(ErrorKind::NotFound, &message, RetryAdvice::Never)
            .with_scope(Scope::Instance(id.clone()))
    }

    /// [`NotFound`](ErrorKind::NotFound) for an instance that this handle launched and that a read may
    /// show after another `hidden_for`: the [usual lag](crate::Capabilities::usual_lag()), or the rest of
    /// the consistency window since its launch. Advises to retry after it, unless it is zero.
    ///
    /// Never use it for an instance that this handle did not launch: a retry layer would wait for
    /// every wrong id.
    pub fn not_found_yet(&self, id: &InstanceId, hidden_for: Duration) -> ProvisionError {
        let error = self.not_found(id);
        if hidden_for.is_zero() {
            error
        } else {
            error.retry_after(hidden_for)
        }
    }

    /// [`Conflict`](ErrorKind::Conflict): another change is in progress, or the name is taken.
    pub fn conflict(&self, message: &str, retry: RetryAdvice) -> ProvisionError {
        self.without_effect(ErrorKind::Conflict, message, retry)
    }

    /// [`WrongState`](ErrorKind::WrongState): the instance's state does not allow the call. `needed`
    /// names the state that would, for the message.
    pub fn wrong_state(
        &self,
        id: &InstanceId,
        state: CloudInstanceState,
        needed: &str,
    ) -> ProvisionError {
        let message = format!("instance {id} is {state}; it must be {needed}");
        self.without_effect(ErrorKind::WrongState, &message, RetryAdvice::Never)
            .with_scope(Scope::Instance(id.clone()))
    }

    /// [`TokenConflict`](ErrorKind::TokenConflict): the token was used with another config.
    pub fn token_conflict(&self, token: &LaunchToken) -> ProvisionError {
        let message = format!(
            "launch token {token} was used with another config or count; use the original config or a new token"
        );
        self.without_effect(ErrorKind::TokenConflict, &message, RetryAdvice::Never)
    }

    /// [`TokenSpent`](ErrorKind::TokenSpent): the token's instances are terminating or terminated.
    pub fn token_spent(&self, token: &LaunchToken) -> ProvisionError {
        let message = format!(
            "the instances of launch token {token} are terminating or terminated; use a new token to launch again"
        );
        self.without_effect(ErrorKind::TokenSpent, &message, RetryAdvice::Never)
    }

    /// [`Capacity`](ErrorKind::Capacity): the cloud has no capacity in `scope` now.
    pub fn capacity(&self, scope: Scope, message: &str) -> ProvisionError {
        self.without_effect(ErrorKind::Capacity, message, RetryAdvice::Never)
            .with_scope(scope)
    }

    /// [`Quota`](ErrorKind::Quota): a limit of `scope` is reached.
    pub fn quota(&self, scope: Scope, message: &str) -> ProvisionError {
        self.without_effect(ErrorKind::Quota, message, RetryAdvice::Never)
            .with_scope(scope)
    }

    /// [`Throttled`](ErrorKind::Throttled): too many calls. Advises to retry after `delay`.
    pub fn throttled(&self, delay: Duration) -> ProvisionError {
        let message = "too many calls; slow down";
        self.without_effect(ErrorKind::Throttled, message, RetryAdvice::After(delay))
    }

    /// [`Unauthenticated`](ErrorKind::Unauthenticated): the credentials are missing, expired or wrong.
    pub fn unauthenticated(&self, message: &str) -> ProvisionError {
        self.without_effect(ErrorKind::Unauthenticated, message, RetryAdvice::Never)
    }

    /// [`Forbidden`](ErrorKind::Forbidden): the credentials do not allow the call.
    pub fn forbidden(&self, message: &str) -> ProvisionError {
        self.without_effect(ErrorKind::Forbidden, message, RetryAdvice::Never)
    }

    /// [`Unsupported`](ErrorKind::Unsupported): the backend does not support the call.
    pub fn unsupported(&self) -> ProvisionError {
        let message = "this backend does not support the call; see its capabilities";
        self.without_effect(ErrorKind::Unsupported, message, RetryAdvice::Never)
    }

    /// [`Unsupported`](ErrorKind::Unsupported): the cloud does not allow the call for this instance, and says why.
    pub fn unsupported_because(&self, message: &str) -> ProvisionError {
        self.without_effect(ErrorKind::Unsupported, message, RetryAdvice::Never)
    }

    /// [`Incomplete`](ErrorKind::Incomplete): a list could not read `scopes`.
    pub fn incomplete(&self, scopes: impl IntoIterator<Item = Scope>) -> ProvisionError {
        let message = "the list is incomplete; instances in the missing parts may still exist";
        let error = self.without_effect(ErrorKind::Incomplete, message, RetryAdvice::SameToken);
        scopes.into_iter().fold(error, ProvisionError::with_scope)
    }

    /// [`Timeout`](ErrorKind::Timeout): no response within the timeout. Reads ignore `effect`: they
    /// have none.
    pub fn timeout(&self, effect: Effect) -> ProvisionError {
        self.create(
            ErrorKind::Timeout,
            effect,
            "no response within the timeout",
            RetryAdvice::SameToken,
        )
    }

    /// [`Unavailable`](ErrorKind::Unavailable): the cloud cannot be reached or cannot serve the call
    /// now. Reads ignore `effect`.
    pub fn unavailable(&self, effect: Effect, message: &str) -> ProvisionError {
        self.create(
            ErrorKind::Unavailable,
            effect,
            message,
            RetryAdvice::SameToken,
        )
    }

    /// [`Unexpected`](ErrorKind::Unexpected): the backend does not understand the response. Reads
    /// ignore `effect`.
    pub fn unexpected(&self, effect: Effect, message: &str) -> ProvisionError {
        self.create(
            ErrorKind::Unexpected,
            effect,
            message,
            RetryAdvice::SameToken,
        )
    }

    /// A launch that the cloud accepted and that failed later: nothing of it is left. `reason` is the
    /// cloud's [reason](crate::InstanceInfo::state_reason). The error has the native code of the failure.
    pub fn launch_failed(&self, failure: &LaunchFailure, reason: Option<&str>) -> ProvisionError {
        let message = reason.unwrap_or("the launch was accepted and failed later");
        let mut error = self.without_effect(failure.kind, message, RetryAdvice::Never);
        if let Some(code) = &failure.native_code {
            error = error.with_native_code(code);
        }
        let scopes = failure.scopes.iter().cloned();
        scopes.fold(error, ProvisionError::with_scope)
    }

    /// An error that another process or program reports, with every part as it says. Unlike the other constructors, this one
    /// does not correct the effect of a read: whoever checks the report must see it.
    ///
    /// Backends do not need it: the constructor of a kind cannot forget a part.
    ///
    /// ```
    /// use fleetwright::{Call, Effect, ErrorKind, Operation, RetryAdvice};
    ///
    /// let call = Call::new("my-cloud", Operation::StopInstance);
    /// let error = call.reported(ErrorKind::Conflict, Effect::None, RetryAdvice::SameToken, "a start is in progress");
    /// assert_eq!((error.kind(), error.retry()), (ErrorKind::Conflict, RetryAdvice::SameToken));
    /// ```
    pub fn reported(
        &self,
        kind: ErrorKind,
        effect: Effect,
        retry: RetryAdvice,
        message: &str,
    ) -> ProvisionError {
        self.create(kind, effect, message, retry)
            .with_effect(effect)
    }

    fn without_effect(&self, kind: ErrorKind, message: &str, retry: RetryAdvice) -> ProvisionError {
        self.create(kind, Effect::None, message, retry)
    }

    fn create(
        &self,
        kind: ErrorKind,
        effect: Effect,
        message: &str,
        retry: RetryAdvice,
    ) -> ProvisionError {
        ProvisionError(Arc::new(Inner {
            call: self.clone(),
            kind,
            effect: if self.operation.is_read() {
                Effect::None
            } else {
                effect
            },
            retry,
            scopes: Vec::new(),
            message: one_line(message),
            invalid: None,
            native_code: None,
            request_id: None,
            survivors: Vec::new(),
            source: None,
        }))
    }
}
