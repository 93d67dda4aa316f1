//! What operators do, right and wrong.

use std::sync::Arc;

use fleetwright_region::{
    account::RegionAccount,
    catalog::LoadError,
    network::{IfUsed, RecordError},
    server::ServerError,
};
use fleetwright_store::{Advice, Document as _};

use super::{Client, OpResult};
use crate::{
    constants,
    environment::{Credentials, Environment, MappingFile},
    fault::FaultPoint,
    world::{Process, Slots},
};

impl Client {
    /// Sets the credentials of a process, or of all. Those of another account are set only once the region has recorded its own: before
    /// that, nobody can tell which one is right.
    pub(super) async fn set_credentials(
        &self,
        process: Option<usize>,
        credentials: Credentials,
    ) -> OpResult {
        let recorded: Vec<Arc<RegionAccount>> = self.rules.all(RegionAccount::KIND).await;
        if credentials.is_of_another_account() && recorded.is_empty() {
            self.journal.log("  the region has no account yet");
            return OpResult::Done;
        }
        self.on_environments(process, |each| each.set_credentials(credentials));
        OpResult::Done
    }

    /// Sets the clock of a process, or of all, forward or back.
    pub(super) fn set_clock(&self, process: Option<usize>, seconds: i64) -> OpResult {
        let now = self.rules.clock.now();
        self.journal.facts(|facts| {
            facts.clocks_were_set = true;
            facts.clock_set_at = Some(now);
        });
        self.on_environments(process, |each| each.clock.jump(seconds));
        OpResult::Done
    }

    /// Corrects the clock of a process, or of all.
    pub(super) fn correct_clock(&self, process: Option<usize>) -> OpResult {
        let now = self.rules.clock.now();
        self.journal.facts(|facts| facts.clock_set_at = Some(now));
        self.on_environments(process, |each| each.clock.correct());
        OpResult::Done
    }

    /// Makes a process, or all, keep the catalog that it has, or follow the store again.
    pub(super) fn keep_catalog(&self, process: Option<usize>, keeps: bool) -> OpResult {
        self.on_environments(process, |each| {
            each.keeps_catalog.send_replace(keeps);
        });
        OpResult::Done
    }

    fn on_environments(&self, process: Option<usize>, change: impl Fn(&Environment)) {
        let affected = |number: usize| process.is_none_or(|process| process == number);
        for (number, environment) in self.environments.iter().enumerate() {
            if affected(number) {
                change(environment);
            }
        }
    }

    /// Edits the mapping file and loads it into the processes that run. A process whose file cannot be
    /// read or parsed keeps its mapping.
    pub(super) fn load_mapping(
        &self,
        process: Option<usize>,
        slots: &Slots,
        edit: impl Fn(&mut MappingFile),
    ) -> OpResult {
        let mut result = OpResult::Done;
        self.on_environments(process, |each| each.edit_mapping(&edit));
        for running in slots.running() {
            if self.journal.next_fault(FaultPoint::ReadMapping).is_some() {
                result = OpResult::Retry;
                continue;
            }
            let mapping = running.environment.mapping();
            let loaded = running.planner.load(&mapping.text(&self.fixtures));
            match loaded {
                Ok(()) => running.environment.set_loaded(mapping),
                Err(_) if mapping.broken => {}
                Err(error) => self
                    .journal
                    .report_violation(format!("the mapping was refused: {error}")),
            }
        }
        result
    }

    /// Loads the catalog without the entries that are retired.
    pub(super) async fn load_catalog(&mut self, process: &Process) -> OpResult {
        let catalog = constants::catalog(&self.retired);
        match process.catalog.load(&catalog).await {
            Ok(_) => OpResult::Done,
            Err(LoadError::Store(error)) if error.advice() != Advice::GiveUp => OpResult::Retry,
            Err(error) => {
                self.journal
                    .report_violation(format!("the catalog was refused: {error}"));
                OpResult::Done
            }
        }
    }

    /// An operator deletes a server directly. Nobody should do that, but it happens.
    pub(super) async fn delete_server(&mut self, process: &Process, slot: usize) -> OpResult {
        let id = self.fixtures.id(slot);
        self.journal
            .facts(|facts| facts.deleted_by_operator.insert(id));
        match process
            .servers
            .delete(&constants::operator(), id.server())
            .await
        {
            Ok(_) | Err(ServerError::NotFound(_)) => OpResult::Done,
            Err(error) => self.after_error(&error.into()),
        }
    }

    /// An operator deletes a network unless it is in use.
    pub(super) async fn delete_unused_network(
        &mut self,
        process: &Process,
        network: usize,
    ) -> OpResult {
        let id = self.fixtures.networks[network];
        let deleted = process
            .networks
            .delete(&constants::operator(), id, IfUsed::Refuse)
            .await;
        match deleted {
            Ok(_) | Err(RecordError::NotFound { .. }) => {
                self.expected.deleted_networks.insert(id);
                OpResult::Done
            }
            Err(error) => self.after_error(&error.into()),
        }
    }

    /// Corrects everything that operators did wrong, except for what processes have loaded.
    pub(super) fn correct_environments(&mut self) {
        let now = self.rules.clock.now();
        for environment in &self.environments {
            if !environment.clock.is_right() {
                self.journal.facts(|facts| facts.clock_set_at = Some(now));
            }
            environment.correct();
        }
    }
}
