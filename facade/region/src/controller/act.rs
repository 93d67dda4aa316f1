//! Carrying out a step: at most one call to the cloud, with the writes before and after it.
//!
//! A process that dies between two calls leaves a record from which the next reconcile continues: see the table of the [module](super).

use std::future::ready;

use chrono::{DateTime, Utc};
use fleetwright::{
    BoxFuture, CloudInstanceState, Effect, ErrorKind, InstanceConfig, InstanceId, LaunchToken,
    OptionalVerb, ProvisionError,
};
use fleetwright_runtime::{
    Action,
    clock::{MIN_DELAY, later},
};
use fleetwright_store::{StoreError, Transaction, Versioned};
use metrics::counter;

use super::{Controller, FailureReason, Step, record, tags};
use crate::{
    account::{AccountState, LeakedLaunch, NotFoundMachine},
    secret::ServerKeys,
    server::{Machine, MachineAction, Observed, Server, TerminationReason, TerminationResponse},
};

/// How often storing the result of a call is tried again after a conflict. If the last try fails too, the next reconcile repeats the call.
const TRIES: usize = 8;

/// The result of a reconcile: when to reconcile again, or a store error for the error policy.
pub(super) type ReconcileResult = Result<Action, StoreError>;
/// A server with the revision at which it was read.
pub(super) type Read = Versioned<Server>;

impl Controller {
    /// Carries out a step that was decided for this revision of the record.
    ///
    /// Returns when to reconcile the server again. It fails with a conflict if another writer changed the record; the next reconcile then
    /// decides again.
    ///
    /// Each step is boxed before it is polled: a provider's call adds to the size of every future around it, and a thread's stack is small.
    pub(super) fn act(&self, read: Read, step: Step) -> BoxFuture<'_, ReconcileResult> {
        match step {
            Step::Launch(reason) => Box::pin(self.launch(read, reason)),
            Step::Resend => Box::pin(self.resend(read)),
            Step::Settle => Box::pin(self.settle(read)),
            Step::Terminate(reason) => Box::pin(self.terminate(read, reason)),
            Step::KeepMachine => Box::pin(self.keep_machine(read)),
            Step::Refuse(refusal) => Box::pin(async move { self.refuse(read, &refusal).await }),
            Step::DeleteRecord => Box::pin(self.delete_record(read)),
            Step::Fail(reason) => Box::pin(self.fail(read, reason)),
            Step::Wait(_, until) => {
                let next = until.map_or(Action::AwaitChange, Action::RequeueAt);
                Box::pin(ready(Ok(next)))
            }
            Step::Done => Box::pin(self.done(read)),
            Step::Start => Box::pin(self.change(read, MachineAction::Start)),
            Step::Stop => Box::pin(self.change(read, MachineAction::Stop)),
            Step::Reboot(_) => Box::pin(self.change(read, MachineAction::Reboot)),
            Step::Resize => Box::pin(self.change(read, MachineAction::Resize)),
            Step::Reimage => Box::pin(self.change(read, MachineAction::Reimage)),
            Step::Retag => Box::pin(self.change(read, MachineAction::Retag)),
        }
    }

    /// Terminates the machine, after marking it in the record.
    ///
    /// "Not found" counts as accepted only once the consistency window has passed since the machine was recorded: before that, the cloud may
    /// not show a new machine yet.
    async fn terminate(&self, mut read: Read, reason: TerminationReason) -> ReconcileResult {
        let Some(machine) = read.value.machine.clone() else {
            return Ok(Action::Requeue);
        };
        if machine.termination.is_none() {
            record::mark_for_termination(&mut read.value, reason, self.clock.now());
            read = self.written(read).await?;
        } else if !self.is_current(&read).await? {
            return Ok(Action::Requeue);
        }
        let result = self.cloud.terminate_instance(&machine.id).await;
        let now = self.clock.now();
        let window = self.cloud.capabilities().consistency_window;
        let shown_by = later(machine.recorded_at, window);
        match result {
            Err(error) if error.kind() == ErrorKind::NotFound && now <= shown_by => {
                Ok(Action::RequeueAt(self.next_read(now, shown_by)))
            }
            Err(error) if error.kind() != ErrorKind::NotFound => {
                let failed = |server: &mut Server| self.failed(server, &error, now);
                self.finish(read, failed).await
            }
            Ok(()) | Err(_) => {
                let response = match result {
                    Ok(()) => TerminationResponse::Accepted,
                    Err(_) => TerminationResponse::NotFound,
                };
                if response == TerminationResponse::NotFound {
                    self.not_found(&read.value, &machine, now).await?;
                }
                let accepted = |server: &mut Server| {
                    record::record_termination_accepted(server, response, now);
                };
                self.finish(read, accepted).await
            }
        }
    }

    /// Records a machine that was not found when it was to be terminated.
    async fn not_found(
        &self,
        server: &Server,
        machine: &Machine,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        tracing::warn!(server = %server.id, machine = %machine.id, "a machine was not found when it was to be terminated");
        let leak = LeakedLaunch {
            account: None,
            machine: Some(machine.id.clone()),
            token: server.token(machine.incarnation),
            server: server.id,
            at: now,
        };
        let shown_at = server.current_observation().and_then(Observed::shown_at);
        let missing = NotFoundMachine::new(machine.id.clone(), server.id, now);
        self.account.add_not_found(leak, missing, shown_at).await
    }

    /// Returns whether the record is still the one that was decided on. A step that writes nothing before its call checks this, because
    /// another controller may have carried it out meanwhile.
    async fn is_current(&self, read: &Read) -> Result<bool, StoreError> {
        let found = self.servers.get(&read.key).await?;
        Ok(found.is_some_and(|found| found.revision == read.revision))
    }

    /// Returns when to read again what reads do not show yet: after their usual lag, or just after `proof`, when the consistency window ends.
    pub(super) fn next_read(&self, now: DateTime<Utc>, proof: DateTime<Utc>) -> DateTime<Utc> {
        let capabilities = self.cloud.capabilities();
        let usual_lag = capabilities.usual_lag().max(capabilities.poll_interval);
        later(later(now, usual_lag).min(proof), MIN_DELAY)
    }

    /// Withdraws a termination that the cloud has not accepted.
    async fn keep_machine(&self, mut read: Read) -> ReconcileResult {
        record::withdraw_termination(&mut read.value, self.clock.now());
        self.commit(read, Action::Requeue).await
    }

    /// Reports a change that cannot be applied, if that is not reported already. The change is checked again after the refusal delay.
    async fn refuse(&self, mut read: Read, refusal: &str) -> ReconcileResult {
        let now = self.clock.now();
        let next = Action::RequeueAt(self.refusal_ends(now));
        let before = read.value.clone();
        record::record_refused_change(&mut read.value, refusal, now);
        if read.value == before {
            return Ok(next);
        }
        self.commit(read, next).await
    }

    /// Changes the machine in place: stores the unconfirmed change, makes the call, stores its result.
    async fn change(&self, mut read: Read, act: MachineAction) -> ReconcileResult {
        if act == MachineAction::Reboot && !self.supports(OptionalVerb::RebootInstance) {
            record::record_reboot_unsupported(&mut read.value, self.clock.now());
            return self.commit(read, Action::Requeue).await;
        }
        let Some(machine) = read.value.machine.clone() else {
            return Ok(Action::Requeue);
        };
        // A machine whose flavor or image is no longer mapped can still be started and stopped.
        let config = if matches!(act, MachineAction::Resize | MachineAction::Reimage) {
            let config = self
                .configs
                .without_user_data(&read.value, machine.incarnation);
            match config.await? {
                Ok(config) => Some(config),
                // The mapping changed since the decision.
                Err(_) => return Ok(Action::Requeue),
            }
        } else {
            None
        };
        let before = record::add_unconfirmed(&mut read.value, act, self.clock.now());
        if read.value.machine.as_ref() != Some(&machine) {
            read = self.written(read).await?;
        } else if !self.is_current(&read).await? {
            return Ok(Action::Requeue);
        }
        let result = self.call(&read.value, &machine, act, config.as_ref()).await;
        let now = self.clock.now();
        let wanted = read.value.spec.clone();
        let disconnected = result.is_err() && self.is_disconnected().await;
        let store_outcome = |server: &mut Server| match &result {
            Ok(()) => record::record_change(server, act, &wanted, now),
            Err(error) => {
                record::record_returned(server);
                if error.effect() == Effect::None {
                    record::restore_unconfirmed(server, before.clone());
                }
                let delay = record::delay_of_another(server, &self.policy, now);
                self.failed(server, error, now);
                if !disconnected && self.is_refused(server, act, error) {
                    let until = self.refusal_ends(now);
                    record::record_refused_value(server, act, &wanted, error, until, delay);
                }
            }
        };
        self.finish(read, store_outcome).await
    }

    /// Sends the call of a change in place. `config` has the native names of flavor and image.
    async fn call(
        &self,
        server: &Server,
        machine: &Machine,
        act: MachineAction,
        config: Option<&InstanceConfig>,
    ) -> Result<(), ProvisionError> {
        let id = &machine.id;
        match (act, config) {
            (MachineAction::Start, _) => self.cloud.start_instance(id).await.map(drop),
            (MachineAction::Stop, _) => self.cloud.stop_instance(id).await,
            (MachineAction::Reboot, _) => {
                let how = server.intent.reboot_how;
                self.cloud.reboot_instance(id, how).await
            }
            (MachineAction::Resize, Some(config)) => {
                let to = &config.instance_type;
                self.cloud.resize_instance(id, to).await
            }
            (MachineAction::Reimage, Some(config)) => {
                self.cloud.reimage_instance(id, &config.image).await
            }
            (MachineAction::Retag, _) => {
                let change = tags::change(server, machine);
                self.cloud.update_tags(id, &change).await
            }
            // Not reached: without a config, `change` has refused both already.
            (MachineAction::Resize | MachineAction::Reimage, None) => Ok(()),
        }
    }

    /// Returns whether a change that failed is given up: the cloud refuses it or has no capacity for it; or it failed as often as a launch
    /// may, and delays the start of a stopped machine.
    ///
    /// A running machine that cannot be reimaged now waits for nothing, so the reimage is sent again until the cloud decides. Without
    /// credentials the machine cannot be started either, so nothing is gained by giving up.
    fn is_refused(&self, server: &Server, act: MachineAction, error: &ProvisionError) -> bool {
        let lasting = matches!(
            error.kind(),
            ErrorKind::Invalid | ErrorKind::Unsupported | ErrorKind::Capacity | ErrorKind::Quota
        );
        let failures = server.retry.as_ref().map_or(0, |retry| retry.failures);
        let seen = server.current_observation().map(|seen| seen.state);
        let delays_start =
            act == MachineAction::Resize || seen == Some(CloudInstanceState::Stopped);
        let says_nothing = error.kind() == ErrorKind::Unauthenticated;
        lasting || (failures >= self.policy.max_attempts && delays_start && !says_nothing)
    }

    /// Returns whether the provider uses another account, or does not say which one. Every call fails then, and says nothing about its
    /// subject.
    async fn is_disconnected(&self) -> bool {
        match self.account.recent().await {
            Ok(AccountState::Same | AccountState::NotRecorded(_)) => false,
            Ok(AccountState::Other { .. }) | Err(_) => true,
        }
    }

    /// Deletes the record together with the server's key.
    async fn delete_record(&self, read: Read) -> ReconcileResult {
        let transaction = self.servers.remove(Transaction::new(), &read);
        // The key is deleted with its server, whether or not this process could decrypt it.
        let transaction = ServerKeys::delete(transaction, read.value.id.as_uuid())?;
        self.store.commit(&transaction).await?;
        counter!("fleetwright_region_servers_deleted_total", "region" => self.label()).increment(1);
        Ok(Action::AwaitChange)
    }

    /// Records a final failure, if it is not recorded already.
    async fn fail(&self, mut read: Read, reason: FailureReason) -> ReconcileResult {
        let before = read.value.clone();
        record::record_final_failure(
            &mut read.value,
            reason,
            self.policy.max_attempts,
            self.clock.now(),
        );
        if read.value == before {
            return Ok(Action::AwaitChange);
        }
        self.commit(read, Action::AwaitChange).await
    }

    /// Records that the generation is applied, if it is not recorded already.
    async fn done(&self, mut read: Read) -> ReconcileResult {
        let before = read.value.clone();
        let verbs = &self.cloud.capabilities().verbs;
        let disk = self.smaller_disk(&read.value).await?;
        record::record_done(&mut read.value, verbs, disk, self.clock.now());
        if read.value == before {
            return Ok(Action::AwaitChange);
        }
        self.commit(read, Action::AwaitChange).await
    }

    /// Records a failed call with its message and the earliest time of the next one.
    ///
    /// The delay is the longer of the policy's backoff and the delay that the cloud demands. After a refusal the backoff is
    /// [`refused_backoff`](super::ControllerPolicy::refused_backoff), because only a change of the desired state or the catalog helps. The
    /// longer delay of another controller is kept.
    pub(super) fn failed(&self, server: &mut Server, error: &ProvisionError, now: DateTime<Utc>) {
        let failures = server.retry.as_ref().map_or(0, |retry| retry.failures);
        let failures = failures.saturating_add(1);
        let backoff = if record::is_refusal(error.kind()) {
            self.policy.refused_backoff
        } else {
            self.policy.backoff(server.id, failures)
        };
        let requested = error.retry().delay().unwrap_or_default();
        let not_before = later(now, backoff.max(requested));
        let other = record::delay_of_another(server, &self.policy, now);
        let not_before = other.map_or(not_before, |other| other.not_before.max(not_before));
        record::record_failure(server, error, failures, not_before, now);
        let labels = [
            ("region", self.label()),
            ("operation", error.operation().to_string()),
            ("kind", error.kind().as_str().to_owned()),
        ];
        counter!("fleetwright_region_call_failures_total", &labels).increment(1);
    }

    /// Returns when a refused request is retried.
    pub(super) fn refusal_ends(&self, now: DateTime<Utc>) -> DateTime<Utc> {
        later(now, self.policy.refused_backoff)
    }

    /// Returns whether the provider has an optional verb.
    fn supports(&self, verb: OptionalVerb) -> bool {
        self.cloud.capabilities().supports(verb)
    }

    /// Stores the result of a call, even if others have written the record meanwhile, because they write other fields. Fails if the record
    /// has another launch or another machine by then, or does not exist any more.
    pub(super) async fn finish(
        &self,
        mut read: Read,
        edit: impl Fn(&mut Server) + Send,
    ) -> ReconcileResult {
        let identity_before = identity(&read.value);
        let mut tries = 0;
        loop {
            let mut server = read.value.clone();
            edit(&mut server);
            let transaction = self.servers.replace(Transaction::new(), &read, &server)?;
            let conflict = match self.store.commit(&transaction).await {
                Ok(_) => return Ok(Action::Requeue),
                Err(error) if error.conflict().is_some() && tries < TRIES => error,
                Err(error) => return Err(error),
            };
            tries += 1;
            match self.servers.get(&read.key).await? {
                Some(newer) if identity(&newer.value) == identity_before => read = newer,
                Some(_) | None => return Err(conflict),
            }
        }
    }

    /// Replaces the record, and returns the next action.
    pub(super) async fn commit(&self, read: Read, next: Action) -> ReconcileResult {
        self.written(read).await.map(|_| next)
    }

    /// Replaces the record, and returns it with its new revision.
    pub(super) async fn written(&self, read: Read) -> Result<Read, StoreError> {
        let transaction = self
            .servers
            .replace(Transaction::new(), &read, &read.value)?;
        let revision = self.store.commit(&transaction).await?;
        Ok(read.replaced_at(revision))
    }
}

/// Returns the launch token and the machine id of a record: the result of a call belongs to the record only while both are the same.
fn identity(server: &Server) -> (Option<LaunchToken>, Option<InstanceId>) {
    let launch = server.launch.as_ref().map(|launch| launch.token.clone());
    let machine = server.machine.as_ref().map(|machine| machine.id.clone());
    (launch, machine)
}
