//! The one error of every provisioner: what failed, what became of it, and what to do next.
//!
//! Owns kind × effect × retry advice × scope. A control loop reads these four and nothing else; the
//! message, the native code and the request id are for people. Errors are made by [`Call`], whose
//! constructors ask for what their kind must say, so that a backend cannot forget the effect.
//!
//! No secret is rendered here: the source is never part of `Display` or `Debug`, because an SDK's
//! error may print headers and bodies.

mod call;
mod kind;

use std::{error::Error, fmt, sync::Arc, time::Duration};

pub use call::Call;
pub use kind::{Effect, ErrorKind, RetryAdvice, Scope};

use crate::{InstanceInfo, InvalidValue, Operation};

/// What every call of a provisioner answers.
pub type Result<T, E = ProvisionError> = std::result::Result<T, E>;

/// A call that failed. Cheap to clone, because one failure may answer five hundred callers.
///
/// ```
/// use fleetwright::{Call, Effect, ErrorKind, Operation, RetryAdvice};
///
/// let error = Call::new("memory", Operation::LaunchInstance)
///     .timeout(Effect::Unknown)
///     .with_request_id("req-17");
/// assert_eq!(error.kind(), ErrorKind::Timeout);
/// assert_eq!(error.effect(), Effect::Unknown); // look the token up before anything is sent again
/// assert_eq!(error.retry(), RetryAdvice::SameToken);
/// ```
#[derive(Clone)]
pub struct ProvisionError(Arc<Parts>);

#[derive(Clone)]
struct Parts {
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

/// What can be read.
impl ProvisionError {
    /// What went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What became of the call.
    pub fn effect(&self) -> Effect {
        self.0.effect
    }

    /// Whether and when the same call may be sent again.
    pub fn retry(&self) -> RetryAdvice {
        self.0.retry
    }

    /// What the failure is about, where that matters: the offering without capacity, the account
    /// whose quota is used up, the zones that a list could not see.
    pub fn scopes(&self) -> &[Scope] {
        &self.0.scopes
    }

    /// The call that failed.
    pub fn operation(&self) -> Operation {
        self.0.call.operation()
    }

    /// The backend it failed on.
    pub fn provider(&self) -> &str {
        self.0.call.provider()
    }

    /// What happened, in one line for people, without kind, codes or effect.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The value that was refused, with its field and limit, where the kind is
    /// [`Invalid`](ErrorKind::Invalid).
    pub fn invalid_value(&self) -> Option<&InvalidValue> {
        self.0.invalid.as_ref()
    }

    /// The cloud's own error code.
    pub fn native_code(&self) -> Option<&str> {
        self.0.native_code.as_deref()
    }

    /// The cloud's own name for the request, for its support desk.
    pub fn request_id(&self) -> Option<&str> {
        self.0.request_id.as_deref()
    }

    /// The instances that exist although the call failed: the part of a batch that was launched,
    /// or an instance that did not get ready in time.
    pub fn survivors(&self) -> &[InstanceInfo] {
        &self.0.survivors
    }
}

/// What a backend or a layer adds.
impl ProvisionError {
    /// Adds the cloud's own error code.
    #[must_use]
    pub fn with_native_code(self, code: impl Into<String>) -> Self {
        let code = one_line(&code.into());
        self.change(|parts| parts.native_code = Some(code))
    }

    /// Adds the cloud's own name for the request.
    #[must_use]
    pub fn with_request_id(self, id: impl Into<String>) -> Self {
        let id = one_line(&id.into());
        self.change(|parts| parts.request_id = Some(id))
    }

    /// Adds what the failure is about.
    #[must_use]
    pub fn with_scope(self, scope: Scope) -> Self {
        self.change(|parts| parts.scopes.push(scope))
    }

    /// Says which instances exist although the call failed; the effect is then
    /// [`Done`](Effect::Done) unless it is unknown.
    #[must_use]
    pub fn with_survivors(self, survivors: Vec<InstanceInfo>) -> Self {
        self.change(|parts| {
            if !survivors.is_empty() && parts.effect == Effect::None {
                parts.effect = Effect::Done;
            }
            parts.survivors = survivors;
        })
    }

    /// Replaces the effect: a layer or a wait may know it where the constructor of the kind could
    /// not.
    #[must_use]
    pub fn with_effect(self, effect: Effect) -> Self {
        self.change(|parts| parts.effect = effect)
    }

    /// Names another operation: a layer that serves a call by another one answers an error of what
    /// was asked.
    #[must_use]
    pub fn with_operation(self, operation: Operation) -> Self {
        if self.operation() == operation {
            return self;
        }
        self.change(|parts| parts.call = Call::new(parts.call.provider(), operation))
    }

    /// Replaces the retry advice of the kind with "not before `delay` has passed".
    #[must_use]
    pub fn retry_after(self, delay: Duration) -> Self {
        self.change(|parts| parts.retry = RetryAdvice::After(delay))
    }

    /// Adds the error below. It is reached through [`Error::source`] only.
    #[must_use]
    pub fn with_source(self, source: impl Error + Send + Sync + 'static) -> Self {
        self.change(|parts| parts.source = Some(Arc::new(source)))
    }

    fn change(mut self, change: impl FnOnce(&mut Parts)) -> Self {
        change(Arc::make_mut(&mut self.0));
        self
    }
}

impl fmt::Display for ProvisionError {
    /// One line: where, what, and in brackets what people and support desks ask for next.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Parts {
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
    /// All fields but the source, which may print what nobody should read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Parts {
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

/// The longest message kept from a cloud, in characters.
const MAX_MESSAGE_CHARS: usize = 600;

/// `text` on one line, and short enough to be read.
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
