//! What Compute Engine does to the unwary, each trap with the test that shows how we get past it. The
//! README has the list; [`every_trap_is_accounted_for`] compares.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test says what is wrong by failing"
)]

#[path = "../emulated/mod.rs"]
mod emulated;
mod errors;
mod identity;
mod names;
mod operations;
mod states;

use std::{collections::BTreeSet, fs, path::Path, time::Duration};

use fleetwright_gcp::fleetwright::{
    CloudInstanceState, InstanceConfig, InstanceId, InstanceProvisioner, InstanceStatus,
    wait::{self, WaitPolicy},
};

use emulated::GcpHarness;
use fleetwright_contract_tests::Harness as _;

/// Longer than any test: what takes this long is over when a test lets it pass.
const HOUR: Duration = Duration::from_secs(3600);

/// Waits until an instance is in a state.
async fn until(
    gcp: &dyn InstanceProvisioner,
    id: &InstanceId,
    state: CloudInstanceState,
) -> InstanceStatus {
    let tick = Duration::from_millis(10);
    let policy = WaitPolicy::within(Duration::from_secs(60)).polling(tick, tick * 4);
    let ids = std::slice::from_ref(id);
    let reached = wait::for_state(gcp, ids, state, &policy).await;
    reached.unwrap().remove(0)
}

/// The harness's config with a token.
fn with_token(harness: &GcpHarness, token: &str) -> InstanceConfig {
    let mut config = harness.config();
    config.launch_token = Some(token.parse().unwrap());
    config
}

/// How many instances there are.
fn alive(harness: &GcpHarness) -> usize {
    harness.emulator().oracle().instances.len()
}

/// The path of an instance, as acts name it.
fn path(id: &InstanceId) -> String {
    let text = id.as_str().strip_prefix("gce://").unwrap();
    let parts: Vec<_> = text.split('/').collect();
    format!(
        "projects/{}/zones/{}/instances/{}",
        parts[0], parts[1], parts[2]
    )
}

#[test]
fn every_trap_is_accounted_for() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut tested = BTreeSet::new();
    for file in fs::read_dir(root.join("tests/traps")).unwrap() {
        let text = fs::read_to_string(file.unwrap().path()).unwrap();
        let names = text.split("fn trap_").skip(1);
        tested.extend(names.filter_map(|rest| rest.get(..2)?.parse::<u32>().ok()));
    }
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let rows = readme.lines().filter_map(|line| {
        let (number, rest) = line.strip_prefix("| ")?.split_once(" | ")?;
        Some((number.parse::<u32>().ok()?, rest.to_owned()))
    });
    let mut told = BTreeSet::new();
    for (number, rest) in rows {
        assert!(told.insert(number), "trap {number} is told twice");
        let says_tested = rest.ends_with("| tested |");
        assert_eq!(
            says_tested,
            tested.contains(&number),
            "trap {number}: {rest}"
        );
    }
    assert_eq!(
        told,
        (1..=42).collect(),
        "the README tells of every trap once"
    );
}
