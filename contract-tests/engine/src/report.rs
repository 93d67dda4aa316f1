//! The verdicts on all clauses of one run.
//!
//! Owns the report's fields, its counts, and the decision whether the subject is conformant. It never
//! opens a file: the suite decides where a report is kept.

use std::{collections::BTreeMap, fmt, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{Contract, Status, Verdict};

/// The results of one run of a contract against one subject.
///
/// A new report lists every clause as not run, and each verdict replaces its entry: a run that ends
/// early is therefore never conformant.
///
/// ```
/// use std::time::Duration;
/// use fleetwright_clause_engine::{Body, Clause, Contract, Pass, Report, Verdict};
///
/// # static CLAUSES: &[Clause<(), ()>] = &[Clause {
/// #     id: "ADD-01",
/// #     name: "add_01_adds",
/// #     promise: "return the sum of two numbers",
/// #     needs: "",
/// #     body: Body::Sync(|()| Ok(Pass::Held)),
/// # }];
/// # let contract = Contract { subject: "adder", document: "docs/adders.md", version: "1.0", clauses: CLAUSES };
/// let mut report = Report::new(&contract, "my adder", "virtual", "run-1");
/// assert_eq!(report.summary(), "not conformant: 1 not run");
///
/// report.record(&Verdict::new("ADD-01", Ok(Pass::Held), Duration::from_millis(3)));
/// assert_eq!(report.summary(), "conformant: 1 pass");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Report {
    /// The name of the subject, for instance that of the provider.
    #[serde(rename = "provider")]
    pub name: String,
    /// How time passed: `virtual` or `real`.
    pub mode: String,
    /// The version of the contract.
    pub contract_version: String,
    /// The key of the run. Reports with the same key are from the same run.
    pub run: String,
    /// Every clause of the contract, in its order.
    pub clauses: Vec<Entry>,
}

/// The result of one clause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Entry {
    /// The id of the clause.
    pub id: String,
    /// The name of its test.
    pub name: String,
    /// Its status.
    pub status: Status,
    /// How long it took, in milliseconds of real time.
    pub duration_ms: u64,
    /// Why it has this status. Absent for a plain pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The reason of an entry whose clause the run has not reached.
const NOT_REACHED: &str = "not reached";

impl Entry {
    /// Whether the run has reached the clause: it was run, or the suite found that it cannot be run.
    pub fn is_reached(&self) -> bool {
        self.status != Status::NotRun || self.reason.as_deref() != Some(NOT_REACHED)
    }
}

impl Report {
    /// Creates a report in which no clause has been run.
    pub fn new<C, E>(contract: &Contract<C, E>, name: &str, mode: &str, run: &str) -> Self {
        let entries = contract.clauses.iter().map(|clause| Entry {
            id: clause.id.to_owned(),
            name: clause.name.to_owned(),
            status: Status::NotRun,
            duration_ms: 0,
            reason: Some(NOT_REACHED.to_owned()),
        });
        Self {
            name: name.to_owned(),
            mode: mode.to_owned(),
            contract_version: contract.version.to_owned(),
            run: run.to_owned(),
            clauses: entries.collect(),
        }
    }

    /// Replaces the entry of the verdict's clause. A clause that the contract does not have is ignored.
    pub fn record(&mut self, verdict: &Verdict) {
        if let Some(entry) = self.clauses.iter_mut().find(|entry| entry.id == verdict.id) {
            entry.status = verdict.status;
            entry.duration_ms = millis(verdict.duration);
            entry.reason.clone_from(&verdict.reason);
        }
    }

    /// Whether the run has reached every clause.
    pub fn is_complete(&self) -> bool {
        self.clauses.iter().all(Entry::is_reached)
    }

    /// Whether this run has reached every clause that `other` has reached, so that its results can
    /// replace those of `other`. A filtered run does not replace a whole one.
    pub fn covers(&self, other: &Self) -> bool {
        let reached = |id: &str| {
            let entry = self.clauses.iter().find(|entry| entry.id == id);
            entry.is_none_or(Entry::is_reached)
        };
        let others = other.clauses.iter().filter(|entry| entry.is_reached());
        others.into_iter().all(|entry| reached(&entry.id))
    }

    /// Whether the subject keeps the whole contract: see [`Status::is_conformant`].
    pub fn is_conformant(&self) -> bool {
        self.clauses
            .iter()
            .all(|entry| entry.status.is_conformant())
    }

    /// Returns how many clauses have each status. Statuses that do not occur are left out.
    pub fn counts(&self) -> BTreeMap<Status, usize> {
        let mut counts = BTreeMap::new();
        for entry in &self.clauses {
            *counts.entry(entry.status).or_default() += 1;
        }
        counts
    }

    /// Returns the result in one line, for instance `not conformant: 130 pass, 2 fail`.
    pub fn summary(&self) -> String {
        let counts = self.counts().into_iter();
        let counts: Vec<_> = counts
            .map(|(status, count)| format!("{count} {}", status.word()))
            .collect();
        let result = if self.is_conformant() {
            "conformant"
        } else {
            "not conformant"
        };
        format!("{result}: {}", counts.join(", "))
    }
}

impl fmt::Display for Report {
    /// One line for each clause, and the summary last.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for entry in &self.clauses {
            write!(f, "{} {}", entry.id, entry.status.word())?;
            match &entry.reason {
                Some(reason) => writeln!(f, ": {reason}")?,
                None => writeln!(f)?,
            }
        }
        write!(f, "{}: {}", self.name, self.summary())
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Body, Clause, Pass};

    static CLAUSES: &[Clause<(), ()>] = &[
        Clause {
            id: "ADD-01",
            name: "add_01_adds",
            promise: "add",
            needs: "",
            body: Body::Sync(|()| Ok(Pass::Held)),
        },
        Clause {
            id: "ADD-02",
            name: "add_02_adds_more",
            promise: "add more",
            needs: "",
            body: Body::Sync(|()| Ok(Pass::Held)),
        },
    ];
    const CONTRACT: Contract<(), ()> = Contract {
        subject: "adder",
        document: "docs/adders.md",
        version: "1.0",
        clauses: CLAUSES,
    };

    fn verdict(id: &'static str, status: Status, reason: Option<&str>) -> Verdict {
        let mut verdict = Verdict::new(id, Ok(Pass::Held), Duration::from_millis(7));
        verdict.status = status;
        verdict.reason = reason.map(str::to_owned);
        verdict
    }

    #[test]
    fn new_report_is_not_run_and_not_conformant() {
        let report = Report::new(&CONTRACT, "mine", "virtual", "r-1");
        assert_eq!(report.counts(), BTreeMap::from([(Status::NotRun, 2)]));
        assert!(!report.is_conformant());
    }

    #[test]
    fn report_is_conformant_if_every_clause_is() {
        let mut report = Report::new(&CONTRACT, "mine", "virtual", "r-1");
        report.record(&verdict("ADD-01", Status::Pass, None));
        for (status, conformant) in [
            (Status::Pass, true),
            (Status::Refused, true),
            (Status::NotClaimed, true),
            (Status::NotApplicable, true),
            (Status::Fail, false),
            (Status::NotRun, false),
            (Status::Waived, false),
            (Status::KitError, false),
        ] {
            report.record(&verdict("ADD-02", status, Some("reason")));
            assert_eq!(report.is_conformant(), conformant, "{status:?}");
        }
        let text = report.to_string();
        assert_eq!(
            text,
            "ADD-01 pass\nADD-02 kit error: reason\nmine: not conformant: 1 pass, 1 kit error"
        );
    }

    #[test]
    fn filtered_run_does_not_cover_a_whole_one() {
        let mut whole = Report::new(&CONTRACT, "mine", "virtual", "r-1");
        whole.record(&verdict("ADD-01", Status::Fail, Some("reason")));
        assert!(!whole.is_complete());
        whole.record(&verdict("ADD-02", Status::NotRun, Some("no oracle")));
        assert!(whole.is_complete(), "not run for a reason is reached");
        let mut later = Report::new(&CONTRACT, "mine", "virtual", "r-2");
        later.record(&verdict("ADD-02", Status::Pass, None));
        assert!(!later.covers(&whole) && whole.covers(&later));
        later.record(&verdict("ADD-01", Status::Pass, None));
        assert!(later.covers(&whole));
    }

    #[test]
    fn report_survives_serialization() {
        let mut report = Report::new(&CONTRACT, "mine", "virtual", "r-1");
        report.record(&verdict("ADD-01", Status::NotClaimed, Some("reason")));
        let text = serde_json::to_string(&report).unwrap();
        assert!(text.contains("\"provider\":\"mine\"") && text.contains("\"not_claimed\""));
        assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report);
    }
}
