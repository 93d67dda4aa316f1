//! Waivers: known differences of a peer that a backend is tested against, bound to its version.
//!
//! A waiver is an entry in a file beside the test, with a reason and the exact version of the peer
//! (an emulator, say) that it is for. Another version, or a waived clause that passes, is a failure:
//! waivers die with what they excuse.
//!
//! ```toml
//! [[waiver]]
//! clause = "TOKEN-01"
//! peer = "some-emulator"
//! version = "5.2.1"
//! reason = "it ignores client tokens"
//! ```

use serde::Deserialize;

use crate::{CLAUSES, Status, Verdict};

/// What a backend is tested against, where that is not the real thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its name.
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
    /// The exact version that was seen to differ.
    pub version: String,
    /// How it differs.
    pub reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    waiver: Vec<Waiver>,
}

/// Reads a file of waivers; the error says what is wrong with it and where.
pub fn parse(text: &str) -> Result<Vec<Waiver>, String> {
    let file: File = toml::from_str(text).map_err(|error| format!("the waivers: {error}"))?;
    for waiver in &file.waiver {
        if !CLAUSES.iter().any(|clause| clause.id == waiver.clause) {
            return Err(format!("the waivers: there is no clause {}", waiver.clause));
        }
        if waiver.reason.trim().is_empty() {
            return Err(format!(
                "the waivers: {} is waived without a reason",
                waiver.clause
            ));
        }
    }
    Ok(file.waiver)
}

/// The verdict under the waivers that are in force.
pub fn apply(mut verdict: Verdict, waivers: &[Waiver], peer: Option<&Peer>) -> Verdict {
    let Some(waiver) = waivers.iter().find(|waiver| waiver.clause == verdict.id) else {
        return verdict;
    };
    let in_force = peer.is_some_and(|p| p.name == waiver.peer && p.version == waiver.version);
    let (status, reason) = match verdict.status {
        _ if !in_force => {
            let here = peer.map_or("no peer".to_owned(), |p| {
                format!("{} {}", p.name, p.version)
            });
            let text = format!(
                "waived for {} {}, but this is {here}",
                waiver.peer, waiver.version
            );
            (Status::Fail, text)
        }
        Status::Fail => (Status::Waived, waiver.reason.clone()),
        Status::Pass | Status::Refused => (
            Status::Fail,
            "is waived and holds all the same: take the waiver away".to_owned(),
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
            id,
            status,
            reason: None,
            found: crate::Found::default(),
            transcript: vec![],
            duration: Duration::ZERO,
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
    fn a_waiver_excuses_its_clause_on_its_version_only() {
        assert_eq!(judged("TOKEN-01", Status::Fail, "1.2"), Status::Waived);
        assert_eq!(judged("TOKEN-01", Status::Fail, "1.3"), Status::Fail);
        assert_eq!(judged("TOKEN-02", Status::Fail, "1.2"), Status::Fail);
        let without_peer = apply(
            verdict("TOKEN-01", Status::Fail),
            &parse(FILE).unwrap(),
            None,
        );
        assert_eq!(without_peer.status, Status::Fail);
        assert!(without_peer.reason.unwrap().contains("this is no peer"));
    }

    #[test]
    fn a_waived_clause_that_holds_is_a_failure() {
        assert_eq!(judged("TOKEN-01", Status::Pass, "1.2"), Status::Fail);
        assert_eq!(judged("TOKEN-01", Status::Refused, "1.2"), Status::Fail);
        assert_eq!(
            judged("TOKEN-01", Status::KitError, "1.2"),
            Status::KitError
        );
        assert_eq!(judged("TOKEN-02", Status::Pass, "1.3"), Status::Pass);
    }

    #[test]
    fn a_bad_file_is_told() {
        let refused = |text: &str| parse(text).unwrap_err();
        assert!(refused(&FILE.replace("TOKEN-01", "TOKEN-99")).contains("no clause TOKEN-99"));
        assert!(refused(&FILE.replace("it ignores tokens", " ")).contains("without a reason"));
        assert!(refused(&FILE.replace("reason", "until")).contains("until"));
        assert_eq!(parse("").unwrap(), []);
    }
}
