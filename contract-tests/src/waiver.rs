//! Waivers: known differences of the emulator that a backend is tested against.
//!
//! A waiver is an entry in a TOML file next to the test, with a reason and the exact version of the
//! peer (for instance an emulator that somebody else wrote) that it is for. With another version, and
//! if the waived clause passes, the test fails: a waiver never outlives its reason.
//!
//! ```toml
//! [[waiver]]
//! clause = "TOKEN-01"
//! peer = "some-emulator"
//! version = "5.2.1"
//! reason = "it ignores client tokens"
//! ```
//!
//! A harness returns the text from [`Harness::waivers`](crate::Harness::waivers), usually with
//! `include_str!`, and the peer from [`Harness::peer`](crate::Harness::peer). The runner does the rest;
//! by hand it is:
//!
//! ```
//! use fleetwright_contract_tests::waiver::{self, Peer};
//! use fleetwright_contract_tests::{Failure, Status, Verdict};
//!
//! let file = r#"
//!     [[waiver]]
//!     clause = "TOKEN-01"
//!     peer = "some-emulator"
//!     version = "5.2.1"
//!     reason = "it ignores client tokens"
//! "#;
//! let waivers = waiver::parse(file).unwrap();
//! let failed = Err(Failure::violated("two instances for one token"));
//! let verdict = Verdict::new("TOKEN-01", failed, std::time::Duration::ZERO);
//! let peer = Peer { name: "some-emulator".to_owned(), version: "5.2.1".to_owned() };
//! let waived = waiver::apply(verdict.clone(), &waivers, Some(&peer));
//! assert_eq!(waived.status, Status::Waived);
//!
//! // A newer version has to be looked at again.
//! let newer = Peer { version: "5.3.0".to_owned(), ..peer };
//! assert_eq!(waiver::apply(verdict, &waivers, Some(&newer)).status, Status::Fail);
//! ```

use serde::Deserialize;

use crate::{CLAUSES, Status, Verdict};

/// What a backend is tested against, if that is not the real cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its name, as waivers spell it.
    pub name: String,
    /// Its exact version.
    pub version: String,
}

/// One known difference.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Waiver {
    /// The clause that is waived.
    pub clause: String,
    /// The peer that differs.
    pub peer: String,
    /// The exact version in which the difference was observed.
    pub version: String,
    /// How it differs.
    pub reason: String,
}

/// The whole file. Unknown fields are errors, so that a typing error does not disable a waiver.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    waiver: Vec<Waiver>,
}

/// Parses a waiver file.
///
/// The [module](self) shows a valid file.
///
/// ```
/// use fleetwright_contract_tests::waiver;
///
/// let file = r#"
///     [[waiver]]
///     clause = "TOKEN-99"
///     peer = "some-emulator"
///     version = "5.2.1"
///     reason = "it ignores client tokens"
/// "#;
/// assert_eq!(waiver::parse(file).unwrap_err(), "waiver file: there is no clause TOKEN-99");
/// ```
///
/// # Errors
/// One line that says what is wrong with the file and where: TOML that does not parse, an unknown
/// field, a clause that does not exist, a waiver without a reason.
pub fn parse(text: &str) -> Result<Vec<Waiver>, String> {
    let file: File = toml::from_str(text).map_err(|error| format!("waiver file: {error}"))?;
    for waiver in &file.waiver {
        if !CLAUSES.iter().any(|clause| clause.id == waiver.clause) {
            return Err(format!("waiver file: there is no clause {}", waiver.clause));
        }
        if waiver.reason.trim().is_empty() {
            return Err(format!(
                "waiver file: {} is waived without a reason",
                waiver.clause
            ));
        }
    }
    Ok(file.waiver)
}

/// Applies the waivers to a verdict.
///
/// A failure whose waiver is for this peer and version becomes [`Status::Waived`]. A waiver for
/// another peer or version, and a waived clause that passes, become [`Status::Fail`].
///
/// ```
/// use std::time::Duration;
/// use fleetwright_contract_tests::{Pass, Status, Verdict, waiver::{self, Peer, Waiver}};
///
/// let peer = Peer { name: "some-emulator".to_owned(), version: "5.2.1".to_owned() };
/// let waiver = Waiver {
///     clause: "TOKEN-01".to_owned(),
///     peer: peer.name.clone(),
///     version: peer.version.clone(),
///     reason: "it ignores client tokens".to_owned(),
/// };
/// // The emulator was fixed, and the waiver was forgotten.
/// let passed = Verdict::new("TOKEN-01", Ok(Pass::Held), Duration::ZERO);
/// let verdict = waiver::apply(passed, &[waiver], Some(&peer));
/// assert_eq!(verdict.status, Status::Fail);
/// ```
pub fn apply(mut verdict: Verdict, waivers: &[Waiver], peer: Option<&Peer>) -> Verdict {
    let Some(waiver) = waivers.iter().find(|waiver| waiver.clause == verdict.id) else {
        return verdict;
    };
    let in_force = peer.is_some_and(|p| p.name == waiver.peer && p.version == waiver.version);
    let (status, reason) = match verdict.status {
        _ if !in_force => {
            let current_peer =
                peer.map_or("none".to_owned(), |p| format!("{} {}", p.name, p.version));
            let text = format!(
                "waived for {} {}, but the peer is {current_peer}",
                waiver.peer, waiver.version
            );
            (Status::Fail, text)
        }
        Status::Fail => (Status::Waived, waiver.reason.clone()),
        Status::Pass | Status::Refused | Status::NotClaimed | Status::NotApplicable => (
            Status::Fail,
            "is waived but passes: remove the waiver".to_owned(),
        ),
        Status::NotRun | Status::KitError | Status::Waived => return verdict,
    };
    verdict.status = status;
    verdict.reason = Some(reason);
    verdict
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const FILE: &str = r#"
        [[waiver]]
        clause = "TOKEN-01"
        peer = "emulator"
        version = "1.2"
        reason = "it ignores tokens"
    "#;

    fn verdict(id: &'static str, status: Status) -> Verdict {
        Verdict {
            status,
            ..Verdict::new(id, Ok(crate::Pass::Held), Duration::ZERO)
        }
    }

    fn judged(id: &'static str, status: Status, version: &str) -> Status {
        let peer = Peer {
            name: "emulator".into(),
            version: version.into(),
        };
        apply(verdict(id, status), &parse(FILE).unwrap(), Some(&peer)).status
    }

    #[test]
    fn waiver_applies_to_its_clause_and_version_only() {
        assert_eq!(judged("TOKEN-01", Status::Fail, "1.2"), Status::Waived);
        assert_eq!(judged("TOKEN-01", Status::Fail, "1.3"), Status::Fail);
        assert_eq!(judged("TOKEN-02", Status::Fail, "1.2"), Status::Fail);
        let without_peer = apply(
            verdict("TOKEN-01", Status::Fail),
            &parse(FILE).unwrap(),
            None,
        );
        assert_eq!(without_peer.status, Status::Fail);
        assert!(without_peer.reason.unwrap().contains("the peer is none"));
    }

    #[test]
    fn waived_clause_that_passes_is_a_failure() {
        assert_eq!(judged("TOKEN-01", Status::Pass, "1.2"), Status::Fail);
        assert_eq!(judged("TOKEN-01", Status::Refused, "1.2"), Status::Fail);
        assert_eq!(
            judged("TOKEN-01", Status::KitError, "1.2"),
            Status::KitError
        );
        assert_eq!(judged("TOKEN-02", Status::Pass, "1.3"), Status::Pass);
    }

    #[test]
    fn bad_file_is_refused() {
        let refused = |text: &str| parse(text).unwrap_err();
        assert!(refused(&FILE.replace("TOKEN-01", "TOKEN-99")).contains("no clause TOKEN-99"));
        assert!(refused(&FILE.replace("it ignores tokens", " ")).contains("without a reason"));
        assert!(refused(&FILE.replace("reason", "until")).contains("until"));
        assert_eq!(parse("").unwrap(), []);
    }
}
