//! The error of every provisioner: what failed, whether it had an effect, and what to do next.
//!
//! Owns kind, effect, retry advice and scopes. A control loop needs only these four; the message, the
//! native code and the request id are for people. [`Call`] creates errors with one constructor per
//! kind, so that a backend cannot forget the effect.
//!
//! Never prints a secret: the source is not part of `Display` or `Debug`, because an SDK's error may
//! contain headers and bodies.

mod call;
mod family;
mod kind;
mod scope;

use std::{error::Error, fmt, sync::Arc, time::Duration};

pub use call::Call;
pub use family::{NamePattern, TypeFamily};
pub use kind::{Effect, ErrorKind, RetryAdvice};
pub use scope::Scope;

use crate::{InstanceInfo, InvalidValue, Operation};

/// The result of a call on a provisioner.
pub type Result<T, E = ProvisionError> = std::result::Result<T, E>;

/// The error of a failed call. Cheap to clone: 500 callers of a batch may get the same one.
///
/// | question | method |
/// | --- | --- |
/// | What happened? | [`kind`](Self::kind) |
/// | Did the call change anything? | [`effect`](Self::effect) |
/// | May I send it again, and when? | [`retry`](Self::retry) |
/// | What does it apply to? | [`scopes`](Self::scopes) |
/// | Which instances exist although it failed? | [`survivors`](Self::survivors) |
///
/// `Display` is one line with all of them.
///
/// ```
/// use fleetwright::{Call, Effect, ErrorKind, Operation, RetryAdvice};
///
/// let error = Call::new("memory", Operation::LaunchInstance)
///     .timeout(Effect::Unknown)
///     .with_request_id("req-17");
/// assert_eq!(error.kind(), ErrorKind::Timeout);
/// assert_eq!(error.effect(), Effect::Unknown); // replay or look up the token before anything else
/// assert_eq!(error.retry(), RetryAdvice::SameToken);
/// assert_eq!(
///     error.to_string(),
///     "memory launch_instance: timeout: no response within the timeout \
///      [effect unknown, retry with the same token, request req-17]",
/// );
/// ```
///
/// A control loop decides with kind, effect and advice alone:
///
/// ```
/// use std::time::Duration;
/// use fleetwright::{Effect, ErrorKind, ProvisionError};
///
/// enum Next {
///     SettleFirst,
///     RetryAfter(Duration),
///     NewToken,
///     AnotherOffering,
///     GiveUp,
/// }
///
/// fn after_failed_launch(error: &ProvisionError) -> Next {
///     match (error.effect(), error.kind(), error.retry().delay()) {
///         (Effect::Unknown, ..) => Next::SettleFirst,
///         (_, ErrorKind::TokenSpent, _) => Next::NewToken,
///         (_, ErrorKind::Capacity, _) => Next::AnotherOffering,
///         (_, _, Some(delay)) => Next::RetryAfter(delay),
///         (_, _, None) => Next::GiveUp,
///     }
/// }
/// # let error = fleetwright::Call::new("x", fleetwright::Operation::LaunchInstance).unsupported();
/// # assert!(matches!(after_failed_launch(&error), Next::GiveUp));
/// ```
#[derive(Clone)]
pub struct ProvisionError(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    call: Call,
    kind: ErrorKind,
    effect: Effect,
    retry: RetryAdvice,
    scopes: Vec<Scope>,
    message: String,
    invalid: Option<InvalidValue>,
    native_code: Option<String>,
    request_id: Option<String>,
    survivors: Vec<InstanceInfo>,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

/// For callers: reading an error.
impl ProvisionError {
    /// Returns what went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns whether the call changed anything.
    pub fn effect(&self) -> Effect {
        self.0.effect
    }

    /// Returns whether and when the same call may be sent again.
    pub fn retry(&self) -> RetryAdvice {
        self.0.retry
    }

    /// Returns what the failure applies to, if that matters: the offering without capacity, the
    /// account whose quota is used up, the zones that a list could not read.
    pub fn scopes(&self) -> &[Scope] {
        &self.0.scopes
    }

    /// Returns the operation that failed.
    pub fn operation(&self) -> Operation {
        self.0.call.operation()
    }

    /// Returns the name of the backend.
    pub fn provider(&self) -> &str {
        self.0.call.provider()
    }

    /// Returns a one-line message for people, without kind, codes and effect.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the refused value with its field and limit, if the kind is
    /// [`Invalid`](ErrorKind::Invalid).
    pub fn invalid_value(&self) -> Option<&InvalidValue> {
        self.0.invalid.as_ref()
    }

    /// Returns the cloud's error code.
    pub fn native_code(&self) -> Option<&str> {
        self.0.native_code.as_deref()
    }

    /// Returns the cloud's id of the request, which its support needs.
    pub fn request_id(&self) -> Option<&str> {
        self.0.request_id.as_deref()
    }

    /// Returns the instances that exist although the call failed: the part of a batch that was
    /// launched, or an instance that did not run in time.
    pub fn survivors(&self) -> &[InstanceInfo] {
        &self.0.survivors
    }
}

/// For backends and layers: adding to an error.
impl ProvisionError {
    /// Sets the cloud's error code.
    #[must_use]
    pub fn with_native_code(self, code: impl Into<String>) -> Self {
        let code = one_line(&code.into());
        self.change(|parts| parts.native_code = Some(code))
    }

    /// Sets the cloud's id of the request.
    #[must_use]
    pub fn with_request_id(self, id: impl Into<String>) -> Self {
        let id = one_line(&id.into());
        self.change(|parts| parts.request_id = Some(id))
    }

    /// Adds a scope that the failure applies to.
    #[must_use]
    pub fn with_scope(self, scope: Scope) -> Self {
        self.change(|parts| parts.scopes.push(scope))
    }

    /// Sets the instances that exist although the call failed. If there are any, the effect
    /// [`None`](Effect::None) becomes [`Done`](Effect::Done).
    #[must_use]
    pub fn with_survivors(self, survivors: Vec<InstanceInfo>) -> Self {
        self.change(|parts| {
            if !survivors.is_empty() && parts.effect == Effect::None {
                parts.effect = Effect::Done;
            }
            parts.survivors = survivors;
        })
    }

    /// Sets the refused value, for an error that another program [reports](Call::reported).
    #[must_use]
    pub fn with_invalid_value(self, value: InvalidValue) -> Self {
        self.change(|parts| parts.invalid = Some(value))
    }

    /// Replaces the effect, for a layer or a wait that knows more than the constructor did.
    #[must_use]
    pub fn with_effect(self, effect: Effect) -> Self {
        self.change(|parts| parts.effect = effect)
    }

    /// Replaces the operation, for a layer that sent another call than the caller made.
    #[must_use]
    pub fn with_operation(self, operation: Operation) -> Self {
        if self.operation() == operation {
            return self;
        }
        self.change(|parts| parts.call = Call::new(parts.call.provider(), operation))
    }

    /// Replaces the retry advice with [`RetryAdvice::After`].
    #[must_use]
    pub fn retry_after(self, delay: Duration) -> Self {
        self.change(|parts| parts.retry = RetryAdvice::After(delay))
    }

    /// Sets the underlying error. Only [`Error::source`] returns it.
    #[must_use]
    pub fn with_source(self, source: impl Error + Send + Sync + 'static) -> Self {
        self.change(|parts| parts.source = Some(Arc::new(source)))
    }

    fn change(mut self, change: impl FnOnce(&mut Inner)) -> Self {
        change(Arc::make_mut(&mut self.0));
        self
    }
}

impl fmt::Display for ProvisionError {
    /// Writes one line: provider, operation, kind, message, and in brackets effect, advice, scopes,
    /// codes and the number of survivors.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner {
            call,
            kind,
            effect,
            retry,
            message,
            ..
        } = &*self.0;
        write!(
            f,
            "{} {}: {kind}: {message} [{effect}, {retry}",
            call.provider(),
            call.operation()
        )?;
        for scope in self.scopes() {
            write!(f, ", {scope}")?;
        }
        if let Some(code) = self.native_code() {
            write!(f, ", code {code}")?;
        }
        if let Some(id) = self.request_id() {
            write!(f, ", request {id}")?;
        }
        if !self.survivors().is_empty() {
            write!(f, ", {} instances exist", self.survivors().len())?;
        }
        f.write_str("]")
    }
}

impl fmt::Debug for ProvisionError {
    /// Writes all fields but the source, which may contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner {
            call,
            kind,
            effect,
            retry,
            scopes,
            message,
            invalid: _,
            native_code,
            request_id,
            survivors,
            source,
        } = &*self.0;
        let survivors: Vec<_> = survivors.iter().map(|info| &info.id).collect();
        f.debug_struct("ProvisionError")
            .field("provider", &call.provider())
            .field("operation", &call.operation())
            .field("kind", kind)
            .field("effect", effect)
            .field("retry", retry)
            .field("scopes", scopes)
            .field("message", message)
            .field("native_code", native_code)
            .field("request_id", request_id)
            .field("survivors", &survivors)
            .field("has_source", &source.is_some())
            .finish()
    }
}

impl Error for ProvisionError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

/// The longest message, in characters.
const MAX_MESSAGE_CHARS: usize = 600;

/// Returns `text` on one line, cut to [`MAX_MESSAGE_CHARS`].
pub(crate) fn one_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_control() || c.is_whitespace());
    let line = words
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ");
    match line.char_indices().nth(MAX_MESSAGE_CHARS) {
        Some((cut, _)) => format!("{}…", &line[..cut]),
        None => line,
    }
}

#[cfg(test)]
mod tests;
