//! The report in the JUnit format, for the test views of CI servers.
//!
//! A clause is a test case with its duration and reason. Clauses that were not run and waived ones
//! are skipped tests, an error of the kit is an error, and a violation is a failure.

use std::time::Duration;

use quick_junit::{NonSuccessKind, Report as JUnit, TestCase, TestCaseStatus, TestSuite};

use super::{Entry, Report};
use crate::Status;

/// Returns the JUnit document of a report.
pub(super) fn document(report: &Report) -> Result<String, String> {
    let mut suite = TestSuite::new(format!("contract {}", report.name));
    for entry in &report.clauses {
        suite.add_test_case(case(entry));
    }
    let mut junit = JUnit::new("fleetwright contract");
    junit.add_test_suite(suite);
    junit.to_string().map_err(|error| error.to_string())
}

fn case(entry: &Entry) -> TestCase {
    let reason = entry.reason.clone().unwrap_or_default();
    let mut status = match entry.status {
        Status::Pass | Status::Refused | Status::NotClaimed | Status::NotApplicable => {
            TestCaseStatus::success()
        }
        Status::Fail => TestCaseStatus::non_success(NonSuccessKind::Failure),
        Status::KitError => TestCaseStatus::non_success(NonSuccessKind::Error),
        Status::NotRun | Status::Waived => TestCaseStatus::skipped(),
    };
    status.set_message(reason);
    let mut case = TestCase::new(format!("{} {}", entry.id, entry.name), status);
    case.set_time(Duration::from_millis(entry.duration_ms));
    case
}
