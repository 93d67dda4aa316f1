//! The messages of failing clauses, compared with kept texts.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::{fs, path::Path, time::Duration};

use async_trait::async_trait;
use fleetwright::{Effect, InstanceId, Operation, Result};
use fleetwright_contract_tests::{CONTRACT, Failure, Verdict, clause, run_clause};
use fleetwright_contract_zoo::{CallContext, Factory, Override, OverrideHarness, mutants};

/// Returns the message of a clause that the named mutant fails, with the parts that change masked.
fn message_of(name: &str, id: &str) -> String {
    let mutant = *mutants::all()
        .iter()
        .find(|mutant| mutant.name == name)
        .unwrap();
    let message = CONTRACT.message(&run_clause(clause(id).unwrap(), &(mutant.make)()));
    masked(&message)
}

/// Returns the clause that the named mutant violates.
fn violated_by(name: &str) -> &'static str {
    let mutants = mutants::all();
    mutants
        .iter()
        .find(|one| one.name == name)
        .unwrap()
        .violates
}

/// Masks scopes and tokens, which differ in every run: 32 or 36 hexadecimal digits and hyphens.
fn masked(text: &str) -> String {
    let part = |c: char| c.is_ascii_hexdigit() || c == '-';
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(part) {
        let length = rest[at..].find(|c| !part(c)).unwrap_or(rest.len() - at);
        out += &rest[..at];
        out += match length {
            32 => "SCOPE",
            36 => "TOKEN",
            _ => &rest[at..at + length],
        };
        rest = &rest[at + length..];
    }
    out + rest
}

/// Compares the message about a mutant with the kept text. After a deliberate change of a message,
/// rewrite the texts with `FLEETWRIGHT_UPDATE_MESSAGES=1` and read them.
fn assert_matches_kept_message(name: &str) {
    assert_message_is_kept(&message_of(name, violated_by(name)), name);
}

fn assert_message_is_kept(message: &str, name: &str) {
    let file = format!("{}.txt", name.replace(' ', "-"));
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/messages")
        .join(file);
    if std::env::var_os("FLEETWRIGHT_UPDATE_MESSAGES").is_some() {
        fs::write(&path, message).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(message, kept, "\n\nread:\n{message}\n\nkept:\n{kept}");
}

#[test]
fn repeated_launch_is_reported_with_its_calls() {
    assert_matches_kept_message("token ignored");
}

#[test]
fn unexpected_success_is_reported() {
    assert_matches_kept_message("unknown id describes as empty");
}

#[test]
fn panic_is_reported() {
    assert_matches_kept_message("malformed body panics");
}

#[test]
fn leak_is_reported_by_name() {
    assert_matches_kept_message("disk left behind");
}

#[test]
fn leak_of_another_clause_is_reported_as_a_leak() {
    let message = message_of("disk left behind", "STOP-01");
    assert_message_is_kept(&message, "disk left behind by another clause");
}

#[test]
fn batch_of_another_count_is_reported_without_dumps() {
    assert_matches_kept_message("the count of a batch is not compared");
}

#[test]
fn actions_of_the_external_actor_are_reported() {
    assert_matches_kept_message("cached descriptions never expire");
}

#[test]
fn history_is_reported_as_a_chart() {
    let concurrent = "a replay does not compare its config with that of a launch in progress";
    assert_matches_kept_message(concurrent);
}

#[test]
fn clause_that_was_not_run_is_not_reported_as_a_violation() {
    let missing = Err(Failure::NotRun("the harness has no oracle".to_owned()));
    let verdict = Verdict::new("LEAKS-01", missing, Duration::ZERO);
    assert_message_is_kept(&CONTRACT.message(&verdict), "not run");
}

#[test]
fn model_sequence_is_reported_step_by_step() {
    let mutants = mutants::all();
    let of_the_model = mutants
        .iter()
        .find(|mutant| mutant.violates == "CRASH-06")
        .unwrap();
    assert_matches_kept_message(of_the_model.name);
}

/// Launches and describes, but cannot terminate a batch.
#[derive(Default)]
struct CannotTerminate;

#[async_trait]
impl Override for CannotTerminate {
    async fn terminate_instances(
        &self,
        at: CallContext<'_>,
        ids: &[InstanceId],
    ) -> Vec<Result<()>> {
        let call = at.call(Operation::TerminateInstances);
        let error = call.unavailable(Effect::None, "the service is down");
        ids.iter().map(|_| Err(error.clone())).collect()
    }
}

#[test]
fn failed_cleanup_is_not_reported_as_a_leak() {
    let factory: Factory = OverrideHarness::factory::<CannotTerminate>();
    let verdict = run_clause(clause("LAUNCH-01").unwrap(), &factory);
    assert_message_is_kept(&masked(&CONTRACT.message(&verdict)), "cleanup failed");
}
