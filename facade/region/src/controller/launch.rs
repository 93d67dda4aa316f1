//! Launching: what is stored before and after the call, and how a launch with an unknown outcome is settled.

use chrono::{DateTime, Utc};
use fleetwright::{
    Effect, ErrorKind, InstanceConfig, LaunchRecord, LaunchToken, ProvisionError, UserData,
};
use fleetwright_cloud_init::{ManagedConfig, assemble};
use fleetwright_runtime::{
    Action,
    clock::{MIN_DELAY, later},
};
use fleetwright_store::{Key, StoreError};

use super::{
    Controller, LaunchReason,
    act::{Read, ReconcileResult},
    record, tags,
};
use crate::{
    ids::SshAuthorityId,
    mapping::LaunchSpec,
    network::SshAuthority,
    server::{ChangeMethod, EventKind, Launch, Server},
};

impl Controller {
    /// Stores a new launch with its own incarnation, and sends it.
    ///
    /// If the launch cannot be planned (no mapping, no authority, invalid user data), nothing is sent: the server gets a condition with the
    /// reason, and the controller retries after the refusal delay or when the desired state changes.
    pub(super) async fn launch(&self, mut read: Read, reason: LaunchReason) -> ReconcileResult {
        let user_data = self.user_data(&read.value).await?;
        let now = self.clock.now();
        let planned = user_data.and_then(|data| self.plan_launch(&read.value, reason, now, data));
        let launch = match planned {
            Ok(launch) => launch,
            Err(refusal) => {
                let message = format!("the machine cannot be launched: {refusal}");
                record::record_refusal(&mut read.value, self.refusal_ends(now), now, message);
                return self.commit(read, Action::AwaitChange).await;
            }
        };
        record::start_launch(&mut read.value, launch, now);
        let read = self.written(read).await?;
        self.send(read).await
    }

    /// Sends the stored launch again, after recording the time.
    pub(super) async fn resend(&self, mut read: Read) -> ReconcileResult {
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
        let store_outcome = |server: &mut Server| match &result {
            Ok(info) => {
                let message = format!("machine {} was launched", info.id);
                record::record_machine(server, info, now, EventKind::Launched, message);
            }
            Err(error) => self.launch_failed(server, error, now),
        };
        self.finish(read, store_outcome).await
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
                (_, Effect::Done | Effect::Unknown) => {}
            }
        }
        self.failed(server, error, now);
    }

    /// Looks up a launch with an unknown outcome by its token.
    ///
    /// A machine that is found becomes the server's machine, also if it is terminating. If nothing is found, the launch counts as without
    /// effect only after the consistency window since it was sent.
    pub(super) async fn settle(&self, read: Read) -> ReconcileResult {
        let Some(launch) = read.value.launch.clone() else {
            return Ok(Action::Requeue);
        };
        let found = match self.cloud.find_launch(&launch.token).await {
            Ok(found) => found,
            Err(error) => {
                let now = self.clock.now();
                let failed = |server: &mut Server| self.failed(server, &error, now);
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
        // Only after the window does its absence prove that the machine does not exist.
        let proof = later(sent_at, self.cloud.capabilities().consistency_window);
        if now <= proof {
            return Ok(Action::RequeueAt(later(proof, MIN_DELAY)));
        }
        self.finish(read, record::record_no_effect).await
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
        let user_data = self.user_data(server).await?;
        let now = self.clock.now();
        let planned =
            user_data.and_then(|data| self.plan_launch(server, LaunchReason::Replace, now, data));
        Ok(planned.err())
    }

    /// Returns the config of a machine of a server, or why there is none.
    pub(super) fn config_of(
        &self,
        server: &Server,
        incarnation: u64,
        token: LaunchToken,
        user_data: Option<UserData>,
    ) -> Result<InstanceConfig, String> {
        let spec = &server.spec;
        let spec = LaunchSpec {
            flavor: spec.flavor.clone(),
            image: spec.image.clone(),
            network: spec.network,
            security_groups: spec.security_groups.clone(),
            public_ip: spec.public_ip,
            user_data,
            tags: tags::of(server, incarnation),
            token: token.clone(),
        };
        let mut config = self
            .planner
            .plan(&spec)
            .map_err(|refusal| with_sources(&refusal))?;
        // The link between record and launch does not depend on the planner.
        config.launch_token = Some(token);
        for (key, value) in &spec.tags {
            let set = config.tags.insert(key, value);
            set.map_err(|invalid| invalid.to_string())?;
        }
        let fits = config.check(self.cloud.capabilities());
        fits.map_err(|invalid| format!("the provider of this region refuses it: {invalid}"))?;
        Ok(config)
    }

    /// Returns the user data of a machine: the requested user data, and the config that lets in the server's key and the certificates of
    /// its authority. Or why there is none: no machine is launched without the authority it should trust.
    async fn user_data(
        &self,
        server: &Server,
    ) -> Result<Result<Option<UserData>, String>, StoreError> {
        let mut managed = ManagedConfig::new(server.id.as_uuid());
        if let Some(key) = &server.public_key {
            managed = managed.with_public_key(key);
        }
        if let Some(id) = server.spec.ssh_authority {
            match self.authority(server, id).await? {
                Ok(found) => {
                    managed = managed
                        .with_authority(found.public_key.without_comment(), &found.id.to_string());
                }
                Err(refusal) => return Ok(Err(refusal)),
            }
        }
        let requested = server.spec.user_data.as_ref();
        let requested = requested.map_or(&[][..], UserData::as_bytes);
        // `UserData` refuses nothing but an empty text.
        let assembled = assemble(requested, &managed).map(|bytes| UserData::new(bytes).ok());
        Ok(assembled.map_err(|error| error.to_string()))
    }

    /// Reads the authority that a server trusts. It never changes, and is not deleted while the server refers to it.
    async fn authority(
        &self,
        server: &Server,
        id: SshAuthorityId,
    ) -> Result<Result<SshAuthority, String>, StoreError> {
        let what = format!("SSH certificate authority {id}");
        let found = match self.authorities.get(&Key::new(id.to_string())?).await {
            Ok(found) => found.map(|found| found.value),
            Err(StoreError::Corrupt { .. }) => {
                let do_this = "ask an operator to repair its record, or choose another authority";
                return Ok(Err(format!("{what} cannot be read: {do_this}")));
            }
            Err(error) => return Err(error),
        };
        let tenant = (server.organization, server.project);
        let own =
            |found: &SshAuthority| (found.organization, found.project) == tenant && found.id == id;
        let do_this = "choose an existing authority, or none";
        let refusal = || format!("there is no {what} in its project: {do_this}");
        Ok(found.filter(own).ok_or_else(refusal))
    }

    /// Plans the next launch: incarnation, attempt, token and config.
    ///
    /// `life` is the incarnation at which the current count of attempts started: a first launch and a replacement start a new one.
    fn plan_launch(
        &self,
        server: &Server,
        reason: LaunchReason,
        now: DateTime<Utc>,
        user_data: Option<UserData>,
    ) -> Result<Launch, String> {
        let before = server.launch.as_ref();
        let last = before.map_or(0, |launch| launch.incarnation);
        let incarnation = last.saturating_add(1);
        let (life, attempt) = match (reason, before) {
            (LaunchReason::First | LaunchReason::Replace, _) | (_, None) => (incarnation, 1),
            (LaunchReason::Changed, Some(launch)) => (launch.life, launch.attempt),
            (LaunchReason::Retry, Some(launch)) => (launch.life, launch.attempt.saturating_add(1)),
        };
        let token = server.token(incarnation);
        let replaces = match (reason, before) {
            (LaunchReason::First | LaunchReason::Replace | LaunchReason::Changed, _)
            | (_, None) => server.intent.replaces,
            (LaunchReason::Retry, Some(launch)) => launch.replaces,
        };
        Ok(Launch {
            incarnation,
            attempt,
            life,
            replaces,
            reboots: server.intent.reboots,
            spec: server.spec.clone(),
            config: self.config_of(server, incarnation, token.clone(), user_data)?,
            token,
            sent_at: Some(now),
            spent: false,
        })
    }
}

/// Returns an error with its sources in one line.
fn with_sources(error: &dyn std::error::Error) -> String {
    let sources = std::iter::successors(Some(error), |error| error.source());
    let messages: Vec<_> = sources.map(ToString::to_string).collect();
    messages.join(": ")
}
