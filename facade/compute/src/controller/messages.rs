//! What tenants read about changes of their machines and about phases.

use fleetwright_region::server::{ChangeMethod, Phase, Plan, Server};

use crate::{instance::Instance, loss::field_name};

/// What is lost with a machine.
pub(super) const ALL_LOST: &str = "the data on its root disk and its addresses are lost";

/// The changed fields of a plan, each with its change method.
pub(super) fn changes(plan: &Plan) -> String {
    let changes = plan.methods.iter().map(|(field, method)| {
        let how = match method {
            ChangeMethod::Retag => "changed in place",
            ChangeMethod::NextLaunch => "takes effect at the next launch",
            ChangeMethod::Resize => "the machine is stopped, resized and started",
            ChangeMethod::Reimage => "the machine is reinstalled with another image",
            ChangeMethod::Replace => "the machine is replaced",
        };
        format!("{}: {how}", field_name(*field))
    });
    changes.collect::<Vec<_>>().join("; ")
}

/// A message of the region in the words of the tenant: the instance instead of its server, and no id of the cloud for the machine.
pub(super) fn for_tenant(message: &str, instance: &Instance, server: Option<&Server>) -> String {
    let (server_id, id) = (instance.server.to_string(), instance.id.to_string());
    let mut message = replace_word(
        message,
        &format!("server {server_id}"),
        &format!("instance {id}"),
    );
    message = replace_word(&message, &server_id, &id);
    let machine = server.and_then(|server| server.machine.as_ref());
    let observed = server.and_then(|server| server.observed.as_ref());
    let ids = [
        machine.map(|machine| machine.id.as_str()),
        observed.map(|observed| observed.machine.as_str()),
    ];
    for id in ids.into_iter().flatten() {
        for noun in ["the machine ", "machine ", "the instance ", "instance ", ""] {
            message = replace_word(&message, &format!("{noun}{id}"), "the machine");
        }
    }
    message
}

/// Replaces a word where it is not a part of a longer one.
fn replace_word(text: &str, word: &str, replacement: &str) -> String {
    let is_part = |found: char| found.is_alphanumeric() || found == '-' || found == '_';
    let (mut replaced, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once(word) {
        let longer = before.ends_with(is_part)
            || before.is_empty() && replaced.ends_with(is_part)
            || after.starts_with(is_part);
        replaced.push_str(before);
        replaced.push_str(if longer { word } else { replacement });
        rest = after;
    }
    replaced + rest
}

/// The message of an event about a phase.
pub(super) fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Pending => "the instance waits for its launch",
        Phase::Building => "the instance is being launched",
        Phase::Running => "the instance is running",
        Phase::Stopping => "the instance is being stopped",
        Phase::Stopped => "the instance is stopped",
        Phase::Replacing => "the machine is being replaced",
        Phase::Deleting => "the instance is being deleted",
        Phase::Failed => "the instance cannot be launched as requested",
        Phase::Lost => {
            "the machine no longer exists; the data on its root disk and its addresses are lost"
        }
    }
}
