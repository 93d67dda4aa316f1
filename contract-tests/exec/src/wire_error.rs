//! The error of a call as a backend writes it, and the core's error that it becomes.
//!
//! Owns the form and nothing of its meaning: every part reaches the contract exactly as the backend wrote it.

use fleetwright::{
    Call, Effect, ErrorKind, InstanceInfo, InvalidValue, Problem, ProvisionError, RetryAdvice,
    Scope,
};
use serde::Deserialize;

/// An error as a backend writes it. Kind, effect and advice are required, so that none is forgotten.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WireError {
    kind: ErrorKind,
    effect: Effect,
    retry: RetryAdvice,
    message: String,
    #[serde(default)]
    scopes: Vec<Scope>,
    native_code: Option<String>,
    request_id: Option<String>,
    #[serde(default)]
    survivors: Vec<InstanceInfo>,
    invalid: Option<WireInvalid>,
}

/// The value that was refused.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireInvalid {
    field: String,
    problem: WireProblem,
}

/// The rule that a value breaks.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum WireProblem {
    Empty,
    Zero,
    TooLong {
        actual: usize,
        limit: usize,
        unit: Unit,
    },
    TooMany {
        actual: usize,
        limit: usize,
    },
    Reserved {
        prefix: String,
    },
    Duplicate {
        other: String,
    },
    NotOffered {
        instead: String,
    },
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Unit {
    Bytes,
    Characters,
}

impl WireError {
    /// Returns the core's error of `call`.
    pub(crate) fn into_error(self, call: &Call) -> ProvisionError {
        let mut error = call.reported(self.kind, self.effect, self.retry, &self.message);
        for scope in self.scopes {
            error = error.with_scope(scope);
        }
        if let Some(code) = self.native_code {
            error = error.with_native_code(code);
        }
        if let Some(id) = self.request_id {
            error = error.with_request_id(id);
        }
        if let Some(invalid) = self.invalid {
            error = error.with_invalid_value(invalid.into_value());
        }
        // Survivors turn the effect none into done. What the backend wrote counts.
        error
            .with_survivors(self.survivors)
            .with_effect(self.effect)
    }
}

impl WireInvalid {
    fn into_value(self) -> InvalidValue {
        let problem = match self.problem {
            WireProblem::Empty => Problem::Empty,
            WireProblem::Zero => Problem::Zero,
            WireProblem::TooLong {
                actual,
                limit,
                unit,
            } => Problem::TooLong {
                actual,
                limit,
                unit: match unit {
                    Unit::Bytes => "bytes",
                    Unit::Characters => "characters",
                },
            },
            WireProblem::TooMany { actual, limit } => Problem::TooMany { actual, limit },
            WireProblem::Reserved { prefix } => Problem::Reserved { prefix },
            WireProblem::Duplicate { other } => Problem::Duplicate { other },
            WireProblem::NotOffered { instead } => Problem::NotOffered { instead },
        };
        InvalidValue::new(self.field, problem)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fleetwright::Operation;

    fn read(json: &str, operation: Operation) -> ProvisionError {
        let error: WireError = serde_json::from_str(json).unwrap();
        error.into_error(&Call::new("mine", operation))
    }

    #[test]
    fn every_part_is_kept_as_it_was_written() {
        let error = read(
            r#"{"kind":"not_found","effect":"unknown","retry":"same_token","message":"gone",
                "scopes":[{"instance":"i-1"}],"native_code":"E404","request_id":"r-1",
                "survivors":[{"id":"i-2","state":"running"}]}"#,
            // A read has no effect, and a backend that says otherwise must be caught.
            Operation::DescribeInstance,
        );
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert_eq!(error.effect(), Effect::Unknown);
        assert_eq!(error.retry(), RetryAdvice::SameToken);
        assert_eq!((error.message(), error.provider()), ("gone", "mine"));
        assert_eq!(error.scopes().len() + error.survivors().len(), 2);
        assert_eq!(error.native_code(), Some("E404"));
        assert_eq!(error.request_id(), Some("r-1"));
    }

    #[test]
    fn survivors_do_not_change_the_effect_that_was_written() {
        let error = read(
            r#"{"kind":"capacity","effect":"none","retry":"never","message":"full",
                "survivors":[{"id":"i-2","state":"running"}]}"#,
            Operation::LaunchInstances,
        );
        assert_eq!(error.effect(), Effect::None);
    }

    #[test]
    fn refused_value_has_its_limit() {
        let error = read(
            r#"{"kind":"invalid","effect":"none","retry":"never","message":"too many tags",
                "invalid":{"field":"tags","problem":{"too_many":{"actual":51,"limit":50}}}}"#,
            Operation::LaunchInstance,
        );
        let value = error.invalid_value().unwrap();
        assert_eq!(value.to_string(), "tags: has 51 entries; the limit is 50");
        assert_eq!(error.message(), "too many tags");
    }

    #[test]
    fn effect_and_advice_are_required() {
        for missing in ["effect", "retry", "kind", "message"] {
            let mut json = serde_json::json!({
                "kind": "timeout", "effect": "unknown", "retry": "never", "message": "late",
            });
            json.as_object_mut().unwrap().remove(missing);
            let error = serde_json::from_value::<WireError>(json).unwrap_err();
            assert!(error.to_string().contains(missing), "{error}");
        }
    }
}
