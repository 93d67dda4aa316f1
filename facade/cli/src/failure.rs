//! Why a command fails: what is wrong, what to do, and the exit code.

use std::{io, process::ExitCode};

use fleetwright_client::Error;

/// The exit codes, as `--help` shows them.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  failed for another reason
  2  wrong use: an argument, a setting, or a value that the service refuses
  3  not found
  4  refused: no valid token, or a permission or quota is missing
  5  conflict: the present state does not permit it, or consent is missing
  6  not now: the service is busy or cannot be reached, or the deadline passed
  7  the instance needs a decision: its conditions say which";

/// An exit code other than 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Code {
    Other = 1,
    Usage = 2,
    NotFound = 3,
    Refused = 4,
    Conflict = 5,
    NotNow = 6,
    NeedsDecision = 7,
}

/// Why a command fails.
#[derive(Debug)]
pub(crate) struct Failure {
    code: Code,
    message: String,
    advice: Option<String>,
    is_broken_pipe: bool,
}

impl Failure {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            advice: None,
            is_broken_pipe: false,
        }
    }

    pub(crate) fn other(message: impl Into<String>) -> Self {
        Self::new(Code::Other, message)
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Code::Usage, message)
    }

    #[must_use]
    pub(crate) fn advice(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    /// The message, for a test.
    #[cfg(test)]
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Shows it on standard error and returns its exit code.
    pub(crate) fn report(&self) -> ExitCode {
        use io::Write as _;
        // The reader of the output has closed it, as `head` does. That is not a failure.
        if self.is_broken_pipe {
            return ExitCode::SUCCESS;
        }
        let mut text = format!("error: {}\n", self.message);
        if let Some(advice) = self.advice.as_deref().filter(|advice| !advice.is_empty()) {
            text.push_str(&format!("  what to do: {advice}\n"));
        }
        // There is nobody left to tell if standard error is closed.
        let _ = io::stderr().write_all(crate::output::printable(&text).as_bytes());
        ExitCode::from(self.code as u8)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let mut message = error.to_string();
        let mut source = std::error::Error::source(&error);
        while let Some(cause) = source {
            message = format!("{message}: {cause}");
            source = cause.source();
        }
        Self::new(code_of(&error), message).advice(error.advice())
    }
}

impl From<io::Error> for Failure {
    /// A failure to write the output.
    fn from(error: io::Error) -> Self {
        Self {
            is_broken_pipe: error.kind() == io::ErrorKind::BrokenPipe,
            ..Self::other(format!("the output cannot be written: {error}"))
        }
    }
}

fn code_of(error: &Error) -> Code {
    match error {
        Error::Problem { problem, .. } => of_status(problem.status),
        Error::Connection { .. } | Error::Deadline { .. } => Code::NotNow,
        Error::Response { status, .. } => match of_status(*status) {
            code @ (Code::NotNow | Code::Refused) => code,
            Code::Other | Code::Usage | Code::NotFound | Code::Conflict | Code::NeedsDecision => {
                Code::Other
            }
        },
        Error::Invalid { .. } => Code::Usage,
        Error::NeedsDecision { .. } => Code::NeedsDecision,
        _ => Code::Other,
    }
}

fn of_status(status: u16) -> Code {
    match status {
        400 | 405 | 413 | 415 | 422 => Code::Usage,
        401 | 403 => Code::Refused,
        404 | 410 => Code::NotFound,
        409 | 412 => Code::Conflict,
        408 | 429 | 502 | 503 | 504 => Code::NotNow,
        _ => Code::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_failure_has_its_code_in_the_help() {
        let codes = [
            Code::Other,
            Code::Usage,
            Code::NotFound,
            Code::Refused,
            Code::Conflict,
            Code::NotNow,
            Code::NeedsDecision,
        ];
        for code in codes {
            assert!(
                EXIT_CODES.contains(&format!("\n  {}  ", code as u8)),
                "{code:?}"
            );
        }
        let readme = include_str!("../README.md");
        for line in EXIT_CODES.lines().skip(1) {
            let (code, meaning) = line.trim().split_once("  ").unwrap_or_default();
            assert!(
                readme.contains(&format!("| {code} | {meaning} |")),
                "{line} is not in README.md"
            );
        }
    }

    #[test]
    fn statuses_have_codes() {
        let expected = [
            (404, Code::NotFound),
            (403, Code::Refused),
            (412, Code::Conflict),
            (503, Code::NotNow),
            (422, Code::Usage),
            (500, Code::Other),
            (501, Code::Other),
        ];
        for (status, code) in expected {
            assert_eq!(of_status(status), code, "{status}");
        }
    }
}
