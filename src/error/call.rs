//! The maker of errors: one constructor for each kind, asking for what that kind must say.

use std::{sync::Arc, time::Duration};

use super::{Effect, ErrorKind, Parts, ProvisionError, RetryAdvice, Scope, one_line};
use crate::{CloudInstanceState, InstanceId, InvalidValue, LaunchToken, Operation};

/// A call being made on a backend, as its errors name it.
///
/// Messages are brought on one line and cut to a readable length. They are for people: put no user
/// data, token of a session or header into them.
#[derive(Clone, Debug)]
pub struct Call {
    provider: Arc<str>,
    operation: Operation,
}

impl Call {
    /// The call of `operation` on the backend `provider`.
    pub fn new(provider: impl Into<Arc<str>>, operation: Operation) -> Self {
        Self {
            provider: provider.into(),
            operation,
        }
    }

    /// The backend's name.
    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// The operation.
    pub const fn operation(&self) -> Operation {
        self.operation
    }

    /// A value was refused before anything was created.
    pub fn invalid(&self, value: InvalidValue) -> ProvisionError {
        let error = self.without_effect(ErrorKind::Invalid, &value.to_string(), RetryAdvice::Never);
        error.change(|parts| parts.invalid = Some(value))
    }

    /// The cloud has no instance with this id.
    pub fn not_found(&self, id: &InstanceId) -> ProvisionError {
        let message = format!("there is no instance {id}; check the id and the account");
        self.without_effect(ErrorKind::NotFound, &message, RetryAdvice::Never)
            .with_scope(Scope::Instance(id.clone()))
    }

    /// The cloud shows no instance with this id, which for `window` after a launch proves nothing: the time
    /// to retry says so.
    pub fn not_found_yet(&self, id: &InstanceId, window: Duration) -> ProvisionError {
        let error = self.not_found(id);
        if window.is_zero() {
            error
        } else {
            error.retry_after(window)
        }
    }

    /// Something else is being done to it, or the name is taken.
    pub fn conflict(&self, message: &str, retry: RetryAdvice) -> ProvisionError {
        self.without_effect(ErrorKind::Conflict, message, retry)
    }

    /// The instance's state does not allow the call; `needed` says which state would.
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

    /// The token belongs to a launch with another config.
    pub fn token_conflict(&self, token: &LaunchToken) -> ProvisionError {
        let message = format!(
            "launch token {token} was used with another config or count; repeat that config or take a new token"
        );
        self.without_effect(ErrorKind::TokenConflict, &message, RetryAdvice::Never)
    }

    /// The token's instances are terminated or being terminated, and it is still remembered.
    pub fn token_spent(&self, token: &LaunchToken) -> ProvisionError {
        let message = format!(
            "what launch token {token} launched is terminated or going; take a new token to launch anew"
        );
        self.without_effect(ErrorKind::TokenSpent, &message, RetryAdvice::Never)
    }

    /// There is no machine of this kind in `scope` now.
    pub fn capacity(&self, scope: Scope, message: &str) -> ProvisionError {
        self.without_effect(ErrorKind::Capacity, message, RetryAdvice::Never)
            .with_scope(scope)
    }

    /// A limit of `scope` is reached.
    pub fn quota(&self, scope: Scope, message: &str) -> ProvisionError {
        self.without_effect(ErrorKind::Quota, message, RetryAdvice::Never)
            .with_scope(scope)
    }

    /// Too many calls; the next one not before `delay` has passed.
    pub fn throttled(&self, delay: Duration) -> ProvisionError {
        let message = "too many calls; slow down";
        self.without_effect(ErrorKind::Throttled, message, RetryAdvice::After(delay))
    }

    /// The credentials are missing, expired or wrong.
    pub fn unauthenticated(&self, message: &str) -> ProvisionError {
        self.without_effect(ErrorKind::Unauthenticated, message, RetryAdvice::Never)
    }

    /// The credentials do not allow this.
    pub fn forbidden(&self, message: &str) -> ProvisionError {
        self.without_effect(ErrorKind::Forbidden, message, RetryAdvice::Never)
    }

    /// The backend does not offer this call.
    pub fn unsupported(&self) -> ProvisionError {
        let message = "this backend does not offer the call; see its capabilities";
        self.without_effect(ErrorKind::Unsupported, message, RetryAdvice::Never)
    }

    /// A list could not see `scopes`.
    pub fn incomplete(&self, scopes: impl IntoIterator<Item = Scope>) -> ProvisionError {
        let message = "the list could not see every part; what is missing may still exist";
        let error = self.without_effect(ErrorKind::Incomplete, message, RetryAdvice::SameToken);
        scopes.into_iter().fold(error, ProvisionError::with_scope)
    }

    /// No answer came in time. A read has no effect, whatever is said here.
    pub fn timeout(&self, effect: Effect) -> ProvisionError {
        self.make(
            ErrorKind::Timeout,
            effect,
            "no answer came in time",
            RetryAdvice::SameToken,
        )
    }

    /// The cloud cannot be reached or cannot serve the call now. A read has no effect.
    pub fn unavailable(&self, effect: Effect, message: &str) -> ProvisionError {
        self.make(
            ErrorKind::Unavailable,
            effect,
            message,
            RetryAdvice::SameToken,
        )
    }

    /// An answer that the backend does not understand. A read has no effect.
    pub fn unexpected(&self, effect: Effect, message: &str) -> ProvisionError {
        self.make(
            ErrorKind::Unexpected,
            effect,
            message,
            RetryAdvice::SameToken,
        )
    }

    fn without_effect(&self, kind: ErrorKind, message: &str, retry: RetryAdvice) -> ProvisionError {
        self.make(kind, Effect::None, message, retry)
    }

    fn make(
        &self,
        kind: ErrorKind,
        effect: Effect,
        message: &str,
        retry: RetryAdvice,
    ) -> ProvisionError {
        ProvisionError(Arc::new(Parts {
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
