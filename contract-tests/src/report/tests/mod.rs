//! Tests of reports and their formats.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use fleetwright::{InstanceConfig, InstanceId, InstanceProvisioner};
use fleetwright_memory::MemoryCloud;

use super::*;
use crate::{CLAUSES, Pass, Status};

/// A harness whose clauses are never run: a report reads its name and its time.
struct MemoryHarness;

#[async_trait]
impl Harness for MemoryHarness {
    fn name(&self) -> String {
        "memory".to_owned()
    }
    async fn open(&self) -> Arc<dyn InstanceProvisioner> {
        Arc::new(MemoryCloud::new().provisioner())
    }
    fn config(&self) -> InstanceConfig {
        InstanceConfig::builder("image", "small").build().unwrap()
    }
    fn unknown_id(&self) -> InstanceId {
        "i-0".parse().unwrap()
    }
    fn time(&self) -> Time {
        Time::Virtual
    }
}

fn verdict(id: &'static str, status: Status, reason: Option<&str>) -> Verdict {
    let verdict = Verdict::new(id, Ok(Pass::Held), Duration::from_millis(7));
    match reason {
        Some(reason) => verdict.with_status(status, reason),
        None => Verdict { status, ..verdict },
    }
}

#[test]
fn new_report_is_not_run_and_not_conformant() {
    let report = new_report(&MemoryHarness, "r-1");
    assert_eq!(report.clauses.len(), CLAUSES.len());
    assert_eq!(
        report.counts(),
        BTreeMap::from([(Status::NotRun, CLAUSES.len())])
    );
    assert!(!report.is_conformant());
    assert_eq!(
        (report.mode.as_str(), report.name.as_str()),
        ("virtual", "memory")
    );
}

#[test]
fn report_is_conformant_if_every_clause_passes_or_is_refused() {
    let mut report = new_report(&MemoryHarness, "r-1");
    for clause in CLAUSES {
        report.record(&verdict(clause.id, Status::Pass, None));
    }
    assert!(report.is_conformant());
    report.record(&verdict("LAUNCH-09", Status::Refused, Some("not declared")));
    assert!(report.is_conformant());
    for status in [
        Status::Fail,
        Status::NotRun,
        Status::Waived,
        Status::KitError,
    ] {
        let mut broken = report.clone();
        broken.record(&verdict("LAUNCH-01", status, Some("reason")));
        assert!(!broken.is_conformant(), "{status:?}");
    }
}

#[test]
fn filtered_run_does_not_replace_a_whole_one() {
    let mut whole = new_report(&MemoryHarness, "r-1");
    for clause in CLAUSES {
        whole.record(&verdict(clause.id, Status::Pass, None));
    }
    let mut later = new_report(&MemoryHarness, "r-2");
    later.record(&verdict("TOKEN-01", Status::Pass, None));
    let mut stored = file::Stored {
        report: Some(whole),
        partial: Some(later.clone()),
    };
    assert!(!stored.is_replaced_by(&later));
    assert_eq!(stored.of_run("r-2"), Some(later.clone()));
    assert_eq!(stored.of_run("r-3"), None);
    for clause in CLAUSES {
        later.record(&verdict(clause.id, Status::Fail, Some("broken")));
    }
    assert!(stored.is_replaced_by(&later));
    stored.report = None;
    assert!(stored.is_replaced_by(&new_report(&MemoryHarness, "r-2")));
}

#[test]
fn page_links_each_cell_to_its_escaped_reason() {
    let mut report = new_report(&MemoryHarness, "r-1");
    report.name = "my <cloud>".to_owned();
    report.record(&verdict("LAUNCH-01", Status::Fail, Some("saw <b> & \"c\"")));
    report.record(&verdict("LAUNCH-02", Status::Pass, None));
    let page = matrix(&[report]);
    assert!(
        page.contains("<td class=fail><a href=\"#my--cloud--LAUNCH-01\">fail</a>"),
        "{page}"
    );
    assert!(page.contains("id=\"my--cloud--LAUNCH-01\""));
    assert!(page.contains("saw &lt;b&gt; &amp; &quot;c&quot;"));
    assert!(page.contains("<td class=pass>pass"));
    assert!(page.contains("not conformant: 1 pass, 1 fail, "));
}

#[test]
fn junit_separates_failures_from_errors() {
    let mut report = new_report(&MemoryHarness, "r-1");
    report.record(&verdict("LAUNCH-01", Status::Fail, Some("broken")));
    report.record(&verdict("LAUNCH-02", Status::KitError, Some("kit")));
    report.record(&verdict("LAUNCH-03", Status::Pass, None));
    let document = junit::document(&report).unwrap();
    assert!(
        document.contains("<failure message=\"broken\""),
        "{document}"
    );
    assert!(document.contains("<error message=\"kit\""), "{document}");
    assert!(
        document.contains(&format!("tests=\"{}\"", CLAUSES.len())),
        "{document}"
    );
}
