//! Launching: what is stored before and after the call, and how a launch with an unknown outcome is settled.

use chrono::{DateTime, Utc};
use fleetwright::{
    AccountId, Call, Effect, ErrorKind, InstanceConfig, InstanceInfo, InstanceProvisioner,
    LaunchRecord, Operation, ProvisionError,
};
use fleetwright_runtime::{
    Action,
    clock::{between, later},
};
use fleetwright_store::{IndexName, StoreError, Transaction};

use super::{
    Controller, LaunchReason,
    act::{Read, ReconcileResult},
    record::{self, SmallerDisk},
};
use crate::{
    account::{AccountError, AccountState, LeakedLaunch, UNREADABLE},
    launch_config::LaunchRefusal,
    server::{ChangeMethod, EventKind, Launch, Power, REGION_INDEX, Server, UnconfirmedLaunch},
};

impl Controller {
    /// Stores a new launch with its own incarnation, and sends it.
    ///
    /// If the launch cannot be planned (no mapping, no authority, invalid user data), nothing is sent: the server gets a condition with the
    /// reason, and the controller retries after the refusal delay or when the desired state changes.
    pub(super) async fn launch(&self, mut read: Read, reason: LaunchReason) -> ReconcileResult {
        let incarnation = next_incarnation(&read.value);
        let config = self.configs.complete(&read.value, incarnation).await?;
        let now = self.clock.now();
        let launch = match config {
            Ok(config) => plan_launch(&read.value, reason, now, config),
            Err(refusal) => return self.refuse_launch(read, &refusal).await,
        };
        let account = match self.unrecorded_account().await? {
            Ok(account) => account,
            Err(error) => {
                self.failed(&mut read.value, &error, now);
                return self.commit(read, Action::Requeue).await;
            }
        };
        record::start_launch(&mut read.value, launch, now);
        let mut transaction = self
            .servers
            .replace(Transaction::new(), &read, &read.value)?;
        if let Some(account) = account {
            transaction = self.account.add_record(transaction, account, now)?;
        }
        let revision = self.store.commit(&transaction).await?;
        self.send(read.replaced_at(revision)).await
    }

    /// Returns the account of the provider if the region has none yet and no machine either: the first launch records it.
    ///
    /// If the region has machines from before accounts were recorded, the monitor records the account in which it finds one of them. If the
    /// account cannot be read, nothing is launched: without a record, nothing would be compared after the launch.
    async fn unrecorded_account(
        &self,
    ) -> Result<Result<Option<AccountId>, ProvisionError>, StoreError> {
        let account = match self.account.recent().await {
            Ok(AccountState::NotRecorded(Some(account))) => account,
            // A launch to another account is refused when it is sent.
            Ok(
                AccountState::NotRecorded(None) | AccountState::Same | AccountState::Other { .. },
            ) => return Ok(Ok(None)),
            Err(AccountError::Cloud(error)) => {
                tracing::warn!(%error, "nothing is launched: the account of the provider cannot be read");
                let provider = self.cloud.capabilities().provider.as_str();
                let call = Call::new(provider, Operation::LaunchInstance);
                return Ok(Err(call.unauthenticated(UNREADABLE)));
            }
            Err(AccountError::Store(error)) => return Err(error),
        };
        let by_region = IndexName::new(REGION_INDEX)?;
        let query = self.servers.by(&by_region, self.region.as_str());
        let page = self.servers.list_all(&query).await?;
        // A server that cannot be read may have one.
        let has_machine =
            !page.damaged.is_empty() || page.items.iter().any(|item| item.value.machine.is_some());
        Ok(Ok(Some(account).filter(|_| !has_machine)))
    }

    async fn refuse_launch(&self, mut read: Read, refusal: &LaunchRefusal) -> ReconcileResult {
        let now = self.clock.now();
        let message = format!("the machine cannot be launched: {}", refusal.message());
        record::record_refusal(&mut read.value, self.refusal_ends(now), now, message);
        self.commit(read, Action::AwaitChange).await
    }

    /// Sends the stored launch again, after recording the time. It is refused if its user data cannot be opened.
    pub(super) async fn resend(&self, mut read: Read) -> ReconcileResult {
        let launch = read.value.launch.as_ref();
        if let Some(unopened) = launch.and_then(|launch| launch.sealed_user_data.as_ref()) {
            let key = unopened.key.clone();
            return self
                .refuse_launch(read, &LaunchRefusal::Sealed { key })
                .await;
        }
        record::mark_sent(&mut read.value, self.clock.now());
        let read = self.written(read).await?;
        self.send(read).await
    }

    /// Sends the stored launch and stores its result.
    async fn send(&self, read: Read) -> ReconcileResult {
        let Some(launch) = &read.value.launch else {
            return Ok(Action::Requeue);
        };
        let result = self.cloud.launch_instance(&launch.config).await;
        let now = self.clock.now();
        if let Some(unconfirmed) = self.unconfirmed(&result).await {
            let error = launch_in_doubt(&*self.cloud);
            let store_doubt = |server: &mut Server| {
                record::record_unconfirmed_launch(server, unconfirmed.clone());
                self.failed(server, &error, now);
            };
            return self.finish(read, store_doubt).await;
        }
        let store_outcome = |server: &mut Server| match &result {
            Ok(info) => {
                let message = format!("machine {} was launched", info.id);
                record::record_machine(server, info, now, EventKind::Launched, message);
            }
            Err(error) => {
                record::record_account_confirmed(server);
                self.launch_failed(server, error, now);
            }
        };
        self.finish(read, store_outcome).await
    }

    /// Returns what is known of a launch if the provider does not use the region's account after it. `None` if it does, or if nothing can
    /// have been launched.
    async fn unconfirmed(
        &self,
        result: &Result<InstanceInfo, ProvisionError>,
    ) -> Option<UnconfirmedLaunch> {
        if let Err(error) = result {
            let about_token = matches!(
                error.kind(),
                ErrorKind::TokenSpent | ErrorKind::TokenConflict
            );
            if error.effect() == Effect::None && !about_token {
                return None;
            }
        }
        let machine = result.as_ref().ok().map(|info| info.id.clone());
        match self.account.current().await {
            Ok(AccountState::Same | AccountState::NotRecorded(_)) => None,
            Ok(AccountState::Other { recorded, current }) => {
                tracing::warn!(region = %self.region, %recorded, %current, ?machine, "the account changed during a launch");
                Some(UnconfirmedLaunch::new(Some(current), machine))
            }
            Err(error) => {
                tracing::warn!(region = %self.region, ?error, ?machine, "the account could not be read after a launch");
                Some(UnconfirmedLaunch::new(None, machine))
            }
        }
    }

    /// Records a failed launch.
    ///
    /// Without effect, the launch can be sent again or changed. With an unknown effect it stays unsettled, and the next step looks up its
    /// token. A spent or conflicting token is never sent again.
    fn launch_failed(&self, server: &mut Server, error: &ProvisionError, now: DateTime<Utc>) {
        if let Some(launch) = &mut server.launch {
            match (error.kind(), error.effect()) {
                // An earlier send may have created a machine: it is looked up first.
                (ErrorKind::TokenSpent | ErrorKind::TokenConflict, _) => launch.spent = true,
                (_, Effect::None) => launch.sent_at = None,
                // Another controller may have counted it as without effect.
                (_, Effect::Done | Effect::Unknown) => {
                    launch.sent_at = launch.sent_at.or(Some(now));
                }
            }
        }
        self.failed(server, error, now);
    }

    /// Looks up a launch with an unknown outcome by its token.
    ///
    /// A machine that is found becomes the server's machine, also if it is terminating. If nothing is found, the consistency window has
    /// passed since the launch was sent, and the provider still uses the region's account, the same launch is sent again. It counts as
    /// without effect, so that another one can follow, only if it cannot be in flight any more, also from another controller.
    pub(super) async fn settle(&self, read: Read) -> ReconcileResult {
        let Some(launch) = read.value.launch.clone() else {
            return Ok(Action::Requeue);
        };
        let found = match self.cloud.find_launch(&launch.token).await {
            Ok(found) => found,
            Err(error) => {
                let now = self.clock.now();
                let other = self.other_account(&launch).await;
                let failed = |server: &mut Server| {
                    if let Some(account) = &other {
                        let found = UnconfirmedLaunch::new(Some(account.clone()), None);
                        record::record_unconfirmed_launch(server, found);
                    }
                    self.failed(server, &error, now);
                };
                return self.finish(read, failed).await;
            }
        };
        let now = self.clock.now();
        let machines = match found {
            LaunchRecord::Found(machines) | LaunchRecord::Terminated(machines) => machines,
            LaunchRecord::NotFound => Vec::new(),
        };
        let alive = machines.iter().find(|info| !info.state.is_ending());
        if let Some(info) = alive.or(machines.first()) {
            let adopted = |server: &mut Server| {
                let message = format!("machine {} was found by its launch token", info.id);
                record::record_machine(server, info, now, EventKind::Adopted, message);
            };
            return self.finish(read, adopted).await;
        }
        let sent_at = launch.sent_at.unwrap_or(now);
        let window = self.cloud.capabilities().consistency_window;
        let returned = later(sent_at, window.max(self.policy.launch_timeout));
        // Sent again with its token, a launch finds the machine of the one that may be in flight. Any other launch has to wait until its
        // absence proves that the machine does not exist.
        let is_same = is_unchanged(&read.value, &launch);
        let proof = if is_same {
            later(sent_at, window)
        } else {
            returned
        };
        if now <= proof {
            // A launch that is still not found is looked up less and less often.
            let sparse = later(now, between(sent_at, now) / 2).min(proof);
            let next = self.next_read(now, proof).max(sparse);
            return Ok(Action::RequeueAt(next));
        }
        // Another account does not have the launch either: the credentials may have been exchanged since the last comparison.
        let account = self.account.current().await;
        let is_compared = match account {
            Ok(AccountState::Same) => true,
            Ok(AccountState::NotRecorded(_)) => false,
            Ok(AccountState::Other { .. }) | Err(_) => {
                let window = self.cloud.capabilities().consistency_window;
                return Ok(Action::RequeueAt(self.next_read(now, later(now, window))));
            }
        };
        // A provider that reports no account has no other one.
        let doubtful = |unconfirmed: &UnconfirmedLaunch| is_compared || !unconfirmed.is_unknown();
        if let Some(unconfirmed) = launch.unconfirmed.filter(doubtful) {
            // The region's account does not have it, although it may have been launched: it is in another one. If the process that sent
            // it has ended before it compared the accounts, that is only possible, and nobody but the operator can find it out.
            let leak = LeakedLaunch {
                account: unconfirmed.account,
                machine: unconfirmed.machine,
                token: launch.token,
                server: read.value.id,
                at: now,
            };
            self.account.record_leak(&leak).await?;
        }
        if is_same && now <= returned {
            return self.resend(read).await;
        }
        self.finish(read, record::record_no_effect).await
    }

    /// Returns the other account that the provider uses now, if the launch may have reached another one and none is known yet.
    async fn other_account(&self, launch: &Launch) -> Option<AccountId> {
        launch
            .unconfirmed
            .as_ref()
            .filter(|known| known.is_unknown())?;
        match self.account.recent().await {
            Ok(AccountState::Other { current, .. }) => Some(current),
            Ok(AccountState::Same | AccountState::NotRecorded(_)) | Err(_) => None,
        }
    }

    /// Returns why no machine with the desired spec can be launched now, if a change is pending that stops or terminates the machine.
    ///
    /// It plans the next launch completely, with mapping, user data and the provider's limits, so that nothing is stopped or terminated
    /// for a change that cannot be applied.
    pub(super) async fn refusal_of_change(
        &self,
        server: &Server,
    ) -> Result<Option<String>, StoreError> {
        let (Some(launch), Some(machine)) = (&server.launch, &server.machine) else {
            return Ok(None);
        };
        let plan = machine.plan_to(&server.spec, &self.cloud.capabilities().verbs);
        let disruptive = |method: &ChangeMethod| match method {
            ChangeMethod::Resize | ChangeMethod::Reimage | ChangeMethod::Replace => true,
            ChangeMethod::Retag | ChangeMethod::NextLaunch => false,
        };
        let requested = server.intent.replaces > launch.replaces;
        if !requested && !plan.methods.values().any(disruptive) {
            return Ok(None);
        }
        let config = self.configs.complete(server, next_incarnation(server));
        Ok(config.await?.err().map(|refusal| refusal.message()))
    }

    /// Returns by how much the disk of the machine is smaller than that of its flavor, because it was resized.
    pub(super) async fn smaller_disk(
        &self,
        server: &Server,
    ) -> Result<Option<SmallerDisk>, StoreError> {
        let (Some(launch), Some(machine)) = (&server.launch, &server.machine) else {
            return Ok(None);
        };
        if machine.applied.flavor == launch.spec.flavor {
            return Ok(None);
        }
        let planned = self.configs.without_user_data(server, machine.incarnation);
        let planned = planned.await?.ok().and_then(|config| config.disk_size_gb);
        Ok(match (launch.config.disk_size_gb, planned) {
            (Some(has), Some(flavor)) if has < flavor => Some(SmallerDisk {
                has: has.get(),
                flavor: flavor.get(),
            }),
            (Some(_) | None, Some(_) | None) => None,
        })
    }
}

/// The error of a launch whose account was not confirmed. Tenants see its message.
fn launch_in_doubt(cloud: &dyn InstanceProvisioner) -> ProvisionError {
    let provider = cloud.capabilities().provider.as_str();
    let call = Call::new(provider, Operation::LaunchInstance);
    let message = "the region may not have been connected to the account of its machines; it is found out whether the machine exists";
    call.unavailable(Effect::Unknown, message)
}

/// Returns whether the launch is still what is requested.
fn is_unchanged(server: &Server, launch: &Launch) -> bool {
    let deleted = server.intent.power == Power::Deleted;
    !deleted && !launch.spent && launch.spec == server.spec
}

/// Returns the incarnation of the next launch.
fn next_incarnation(server: &Server) -> u64 {
    let last = server
        .launch
        .as_ref()
        .map_or(0, |launch| launch.incarnation);
    last.saturating_add(1)
}

/// Returns the next launch: incarnation, attempt, token and config.
///
/// `life` is the incarnation at which the current count of attempts started: a first launch and a replacement start a new one.
fn plan_launch(
    server: &Server,
    reason: LaunchReason,
    now: DateTime<Utc>,
    config: InstanceConfig,
) -> Launch {
    let before = server.launch.as_ref();
    let incarnation = next_incarnation(server);
    let (life, attempt) = match (reason, before) {
        (LaunchReason::First | LaunchReason::Replace, _) | (_, None) => (incarnation, 1),
        (LaunchReason::Changed, Some(launch)) => (launch.life, launch.attempt),
        (LaunchReason::Retry, Some(launch)) => (launch.life, launch.attempt.saturating_add(1)),
    };
    let replaces = match (reason, before) {
        (LaunchReason::First | LaunchReason::Replace | LaunchReason::Changed, _) | (_, None) => {
            server.intent.replaces
        }
        (LaunchReason::Retry, Some(launch)) => launch.replaces,
    };
    Launch {
        incarnation,
        attempt,
        life,
        replaces,
        reboots: server.intent.reboots,
        spec: server.spec.clone(),
        config,
        sealed_user_data: None,
        token: server.token(incarnation),
        sent_at: Some(now),
        spent: false,
        unconfirmed: Some(UnconfirmedLaunch::default()),
    }
}
