//! Why a call failed, whether anything may have happened, and what to do. No error has a token.

use std::time::Duration;

use fleetwright_api::{Instance, Problem};

/// Why a call failed.
///
/// ```
/// use fleetwright_client::{Effect, Error};
///
/// # fn show(error: &Error) {
/// match error {
///     Error::Problem { problem, .. } if problem.code == "not_found" => println!("it is gone"),
///     error if error.effect() == Effect::Unknown => println!("{error}: look whether it happened; {}", error.advice()),
///     error => println!("{error}: {}", error.advice()),
/// }
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The service refused the request, or failed: the problem says why.
    #[error("{} ({}, trace id {})", .problem.detail, .problem.code, .problem.trace_id)]
    Problem {
        /// The id of the operation.
        operation: &'static str,
        /// What the service said.
        problem: Box<Problem>,
        /// Whether this attempt, or one before it, may have been carried out.
        effect: Effect,
    },
    /// The service was not reached, or its response was lost.
    #[error("{operation}: {problem}")]
    Connection {
        /// The id of the operation.
        operation: &'static str,
        /// What happened, in words.
        problem: &'static str,
        /// Whether the request may have arrived, in this attempt or one before it.
        effect: Effect,
        /// What the connection reported.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Something else answered, or in a way that this client does not understand.
    #[error("{operation}: the response with status {status} is not understood: {problem}")]
    Response {
        /// The id of the operation.
        operation: &'static str,
        /// The status of the response.
        status: u16,
        /// What is not understood.
        problem: String,
        /// Whether the request may have been carried out.
        effect: Effect,
    },
    /// The deadline passed.
    #[error("{operation}: not finished after {} s, the deadline{}", .after.as_secs_f32(), last_of(.last.as_deref()))]
    Deadline {
        /// The id of the operation, or `waitUntil`.
        operation: &'static str,
        /// How long the call lasted at most.
        after: Duration,
        /// Whether a request may have been carried out.
        effect: Effect,
        /// Why the last attempt failed, if one did. It is part of the text.
        last: Option<Box<Error>>,
    },
    /// A value cannot be sent. Nothing was.
    #[error("{field}: {problem}")]
    Invalid {
        /// What has the value.
        field: String,
        /// What is wrong with it.
        problem: String,
    },
    /// An instance does not get into the state that was waited for until somebody decides.
    #[error("instance {} needs a decision: {}", .instance.metadata.name, conditions(.instance))]
    NeedsDecision {
        /// The instance. Its conditions say what is wrong and what to do.
        instance: Box<Instance>,
    },
}

/// Whether a failed call may have changed anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Nothing was changed.
    None,
    /// The request may have been carried out: look before it is repeated.
    Unknown,
}

impl Error {
    pub(crate) fn invalid(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Invalid {
            field: field.into(),
            problem: problem.into(),
        }
    }

    /// What the service said, if it did.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Problem { problem, .. } => Some(problem),
            Self::Deadline { last, .. } => last.as_deref().and_then(Self::problem),
            Self::Connection { .. }
            | Self::Response { .. }
            | Self::Invalid { .. }
            | Self::NeedsDecision { .. } => None,
        }
    }

    /// Whether the service said that the record does not exist, or is not visible.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Problem { problem, .. } if problem.status == 404)
    }

    /// After how long a retry can succeed, as the service said.
    pub fn retry_after(&self) -> Option<Duration> {
        self.problem()?.retry_after.map(Duration::from_secs)
    }

    /// The same error of a call of which earlier attempts had this effect.
    pub(crate) fn after(mut self, earlier: Effect) -> Self {
        match &mut self {
            Self::Problem { effect, .. }
            | Self::Connection { effect, .. }
            | Self::Response { effect, .. }
            | Self::Deadline { effect, .. } => {
                if earlier == Effect::Unknown {
                    *effect = Effect::Unknown;
                }
            }
            Self::Invalid { .. } | Self::NeedsDecision { .. } => {}
        }
        self
    }

    /// Whether anything may have been changed, by any attempt of the call.
    pub fn effect(&self) -> Effect {
        match self {
            Self::Invalid { .. } | Self::NeedsDecision { .. } => Effect::None,
            Self::Problem { effect, .. }
            | Self::Connection { effect, .. }
            | Self::Response { effect, .. }
            | Self::Deadline { effect, .. } => *effect,
        }
    }

    /// What to do, in one sentence.
    pub fn advice(&self) -> String {
        let text = match self {
            Self::Problem {
                problem, effect, ..
            } => return advice_of(problem, *effect),
            Self::Connection { effect, .. } => match effect {
                Effect::None => "check the address and whether the service runs",
                Effect::Unknown => LOOK,
            },
            Self::Response { .. } => {
                "check that the address is that of the service, without a path of its own"
            }
            Self::Deadline { effect, .. } => match effect {
                Effect::None => "retry later, or with a longer deadline",
                Effect::Unknown => {
                    "look whether it happened before you repeat it, or repeat it with the same idempotency key"
                }
            },
            Self::Invalid { .. } => "correct the value",
            Self::NeedsDecision { .. } => {
                "the conditions of the instance say what to do; its events say what happened"
            }
        };
        text.to_owned()
    }
}

/// What to do after a call that may have been carried out.
const LOOK: &str = "look whether it happened before you repeat it";

/// The detail of a problem says what is wrong; this says what the caller can do with a problem of its code.
fn advice_of(problem: &Problem, effect: Effect) -> String {
    if effect == Effect::Unknown {
        return match &problem.existing_id {
            // It may be the caller's own.
            Some(id) => format!("look whether it happened: {id} has the name"),
            None => format!(
                "{LOOK}; an operator finds the request by its trace id, {}",
                problem.trace_id
            ),
        };
    }
    let text = match problem.code.as_str() {
        "invalid_request"
        | "unsupported_media_type"
        | "unprocessable_content"
        | "request_entity_too_large" => "correct the request",
        "access_denied" => "use a token that is valid and not expired",
        "forbidden" => "ask an administrator of the organization for the permission or the quota",
        "not_found" => {
            "check the id or the name; what the caller may not read does not exist for it"
        }
        "consent_needed" => {
            "look at the plan, and repeat the update with consent if the loss is acceptable"
        }
        "precondition_failed" => "read it again, and repeat the change",
        "gone" => "begin again without a position",
        "not_implemented" => "choose a region whose cloud offers it",
        "server_error" => "give the trace id to an operator",
        _ => "",
    };
    match (problem.retry_after, &problem.existing_id, text) {
        (Some(seconds), _, _) => format!("retry after {seconds} s"),
        (None, Some(id), _) => format!("{id} has the name already: use it, or another name"),
        (None, None, "") => "read the record to see its present state".to_owned(),
        (None, None, text) => text.to_owned(),
    }
}

fn last_of(last: Option<&Error>) -> String {
    last.map_or_else(String::new, |last| {
        format!("; the last attempt: {}", with_sources(last))
    })
}

/// An error with its sources, in one line.
fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

fn conditions(instance: &Instance) -> String {
    let found = instance.status.conditions.iter();
    let texts: Vec<_> = found.map(|condition| condition.message.as_str()).collect();
    if texts.is_empty() {
        return format!("it is {:?}", instance.status.power_state).to_lowercase();
    }
    texts.join("; ")
}
