//! The rules about the delay after a failed call of the server controller.

use std::time::Duration;

use fleetwright_region::server::{Machine, Server, ServerId};

use super::Rules;

/// The shortest time between a failed call and the next one for the same server: the controller's
/// configured minimum.
pub const MIN_BACKOFF: Duration = Duration::from_secs(1);

impl Rules {
    /// Checks a call of the server controller: it comes no sooner after a failure than the backoff
    /// allows.
    pub async fn check_backoff(&self, process: usize, about: Option<ServerId>) {
        let Some(id) = about else { return };
        let failed = self
            .journal
            .process(process, |facts| facts.last_failure.get(&id).copied());
        let Some((failed, generation)) = failed else {
            return;
        };
        let Some(server) = self.server(id).await else {
            return;
        };
        // There is no backoff after a failure that was not stored, nor for a new generation. A delay that began earlier is that of another
        // failure. One that another process has stored may be newer than the decision for this call.
        let waits = server.retry.as_ref().is_some_and(|retry| {
            let is_stored = retry.since.is_some_and(|since| since >= failed);
            is_stored && retry.generation == server.generation && generation == server.generation
        });
        let is_own = self
            .journal
            .facts(|facts| facts.delayed_by.get(&id) == Some(&process));
        let passed = self.clock.now().signed_duration_since(failed);
        let waits = waits && is_own && !self.clocks_were_set();
        if waits && passed.to_std().unwrap_or_default() < MIN_BACKOFF {
            self.report(format!(
                "server {id}: a failed call is repeated without a delay"
            ));
        }
    }

    /// Remembers that a call of the server controller failed.
    pub async fn remember_failure(&self, process: usize, about: Option<ServerId>) {
        let Some(id) = about else { return };
        let generation = self.server(id).await.map(|server| server.generation);
        let failed = (self.clock.now(), generation.unwrap_or_default());
        self.journal
            .process(process, |facts| facts.last_failure.insert(id, failed));
    }

    /// Remembers that a call of the server controller had success.
    pub fn remember_success(&self, process: usize, about: Option<ServerId>) {
        if let Some(id) = about {
            self.journal
                .process(process, |facts| facts.last_failure.remove(&id));
        }
    }

    /// Checks what the server controller of a process stores: unless its call had success, it does not shorten the delay after a failed
    /// call of another process.
    pub(super) fn check_delay_is_kept(&self, process: usize, before: &Server, server: &Server) {
        let delayed_by = self.journal.facts(|facts| {
            let delayed_by = facts.delayed_by.get(&server.id).copied();
            if before.retry != server.retry {
                facts.delayed_by.insert(server.id, process);
            }
            delayed_by
        });
        let Some(delay) = &before.retry else { return };
        let lasts = delay.not_before > self.clock.now() && delay.generation == server.generation;
        let is_shorter = server
            .retry
            .as_ref()
            .is_none_or(|retry| retry.not_before < delay.not_before);
        // The other process may have withdrawn the mark of a termination that is accepted now.
        let last_failed = self
            .journal
            .process(process, |facts| facts.last_failure.contains_key(&server.id));
        let had_success = !last_failed
            || before.launch != server.launch
            || before.machine.as_ref().map(success) != server.machine.as_ref().map(success);
        let is_of_another = delayed_by.is_some_and(|other| other != process);
        if lasts && is_shorter && is_of_another && !had_success && !self.clocks_were_set() {
            self.report(format!(
                "server {}: the delay after a failed call of another process is shortened",
                server.id
            ));
        }
    }

    /// Returns whether a clock was set, which ends every delay or prolongs it.
    fn clocks_were_set(&self) -> bool {
        self.journal.facts(|facts| facts.clocks_were_set)
    }
}

/// Returns what a successful call changes in the record of a machine.
fn success(machine: &Machine) -> impl PartialEq + use<'_> {
    (&machine.id, machine.last_action, machine.termination)
}
