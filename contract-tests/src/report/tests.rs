//! What is written is what was run.

use std::sync::Arc;

use async_trait::async_trait;
use fleetwright::{InstanceConfig, InstanceId, InstanceProvisioner};
use fleetwright_memory::MemoryCloud;

use super::*;

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
    Verdict {
        id,
        status,
        reason: reason.map(str::to_owned),
        found: crate::Found::default(),
        transcript: Vec::new(),
        duration: Duration::from_millis(7),
    }
}

#[test]
fn a_new_report_has_run_nothing_and_is_not_conformant() {
    let report = Report::new(&MemoryHarness, "r-1");
    assert_eq!(report.clauses.len(), CLAUSES.len());
    assert_eq!(
        report.counts(),
        BTreeMap::from([(Status::NotRun, CLAUSES.len())])
    );
    assert!(!report.is_conformant());
    assert_eq!(
        (report.mode.as_str(), report.provider.as_str()),
        ("virtual", "memory")
    );
}

#[test]
fn a_report_is_conformant_when_every_clause_holds_or_is_refused() {
    let mut report = Report::new(&MemoryHarness, "r-1");
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
        broken.record(&verdict("LAUNCH-01", status, Some("why")));
        assert!(!broken.is_conformant(), "{status:?}");
    }
}

#[test]
fn a_page_links_each_cell_to_its_reason_and_escapes_it() {
    let mut report = Report::new(&MemoryHarness, "r-1");
    report.provider = "my <cloud>".to_owned();
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
fn junit_tells_failures_from_errors_and_skips() {
    let mut report = Report::new(&MemoryHarness, "r-1");
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
