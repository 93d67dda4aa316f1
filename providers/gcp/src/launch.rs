//! Launching on Compute Engine: the calls behind [`fleetwright_provider_support::launch`].
//!
//! Owns the insert of an instance, how long its operation is awaited, and the result.
//!
//! What makes a launch repeatable is the name, of which Compute Engine allows one per zone; a replay
//! lists the instances by name first. A request id is new for every attempt.
//!
//! 1. With a token, read what it has launched: live instances are adopted, or the token is in conflict or
//!    spent.
//! 2. Send one insert for the first name, and one bulk insert for the others of a batch ([`crate::bulk`]). A name that
//!    is taken is read and adopted if its marks match.
//! 3. With several zones, look for an instance of the token in another zone ([`crate::twins`]).
//! 4. Wait `launch_wait` for the operations. One that failed because the name is taken is adopted like a
//!    refused insert; any other failure is the error of the launch.
//! 5. Everything else is returned as pending, with the values of the config.

use std::num::NonZeroU32;

use fleetwright::{
    Call, CloudInstanceState, Effect, InstanceConfig, InstanceId, InstanceInfo, LaunchToken,
    Operation, Result, RetryAdvice, async_trait,
};
use fleetwright_provider_support::launch::{
    self, Attempt, CreateError, LaunchCalls, LaunchContext, LaunchOutcome, Marks, adopt_by_name,
};
use fleetwright_provider_support::{ReadInstances as _, read_until};
use futures_util::{
    StreamExt as _,
    future::{BoxFuture, join_all},
    stream,
};
use google_cloud_compute_v1::model::{Instance, Operation as NativeOperation};
use uuid::Uuid;

use crate::{
    GcpProvisioner, address,
    address::Address,
    convert,
    error::{ErrorContext, Failure, GcpFailure as _},
    history,
    plan::Plan,
    resolve::Unclear,
    token::TokenLaunches,
};

/// One call of `launch_instance` or `launch_instances`, with all that its steps need.
pub(crate) struct GcpLaunch<'a> {
    /// The provisioner.
    pub(crate) gcp: &'a GcpProvisioner,
    /// The config of the caller.
    config: &'a InstanceConfig,
    /// The request that follows from it.
    pub(crate) plan: &'a Plan,
    /// The regular expression that matches the names of the instances and no other one.
    pub(crate) pattern: String,
    /// Whether more than one instance was requested.
    pub(crate) is_batch: bool,
    /// What the shared sequence needs.
    pub(crate) context: LaunchContext<'a>,
}

impl GcpProvisioner {
    /// Launches `count` instances of `config`, or returns those that its token has launched.
    pub(crate) async fn launch_all(
        &self,
        call: &Call,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        let refuse = |value| call.invalid(value);
        config.check(&self.capabilities).map_err(refuse)?;
        let plan = Plan::new(&self.launch, config, count).map_err(refuse)?;
        let context = LaunchContext {
            call,
            capabilities: &self.capabilities,
            token: config.launch_token.as_ref(),
            owner: plan.owner.as_deref(),
            fingerprint: plan.fingerprint,
            concurrency: self.options.concurrency.get() as usize,
            // Every launch with the token begins with the same name, so that the first one decides.
            first_alone: config.launch_token.is_some(),
            recent_launches: &self.recent_launches,
            recent_tokens: &self.recent_tokens,
        };
        let token = config.launch_token.as_ref();
        let first = token.map_or_else(address::random_name, |token| address::name_of(token, 0));
        let items = 0..count.get();
        let names: Vec<_> = items.map(|item| address::item_name(&first, item)).collect();
        let calls = GcpLaunch {
            gcp: self,
            config,
            plan: &plan,
            pattern: address::pattern(&first),
            is_batch: count > NonZeroU32::MIN,
            context,
        };
        launch::launch(&calls, &context, &names).await
    }
}

#[async_trait]
impl LaunchCalls for GcpLaunch<'_> {
    type Known = TokenLaunches;
    type Existing = InstanceInfo;
    type Accepted = NativeOperation;
    type Native = Instance;

    /// Reads until operations know no instance that the list does not show, then compares the
    /// marks.
    async fn find_by_token(&self, token: &LaunchToken) -> Result<TokenLaunches> {
        let call = self.context.call;
        let read = || -> BoxFuture<'_, _> { Box::pin(self.gcp.find_token_launches(call, token)) };
        let complete = |known: &TokenLaunches| !known.has_hidden;
        let known = read_until(&self.gcp.capabilities, read, complete).await?;
        for native in &known.natives {
            self.context.check_marks(token, &self.marks(native))?;
        }
        if launch::is_spent(&known.by_name, |info| info.state.is_ending()) {
            return Err(call.token_spent(token));
        }
        Ok(known)
    }

    /// Returns the instance that a name stands for, also if it has ended while others live.
    fn existing(&self, known: &TokenLaunches, name: &str) -> Option<InstanceInfo> {
        known.by_name.get(name).cloned()
    }

    /// Sends the insert. A taken name is reported as such, because it may be this launch's own
    /// instance.
    async fn create(
        &self,
        name: &str,
        _: &TokenLaunches,
    ) -> std::result::Result<NativeOperation, CreateError> {
        let instance = self.plan.named(name);
        let zone = self.plan.zone.as_str();
        // The name makes a launch repeatable. A request id of an earlier attempt would return the
        // operation of that attempt, also if it failed or its instance was deleted since.
        let request_id = Uuid::new_v4().to_string();
        let sent = self.gcp.client.insert(zone, instance, &request_id).await;
        if let Ok(operation) = &sent {
            self.gcp.memory.record_insert(operation);
        }
        sent.map_err(|failure| {
            if failure.is_taken() && self.context.token.is_some() {
                CreateError::NameTaken(self.name_taken(name))
            } else {
                CreateError::Failed(self.launch_error(failure))
            }
        })
    }

    /// Sends one bulk insert for all of them.
    async fn create_many(
        &self,
        names: &[String],
        known: &TokenLaunches,
        _: usize,
    ) -> Vec<std::result::Result<NativeOperation, CreateError>> {
        if self.is_batch {
            return self.create_bulk(names, known).await;
        }
        let each: Vec<_> = names.iter().map(|name| self.create(name, known)).collect();
        join_all(each).await
    }

    /// Describes them: their operations know failed inserts.
    async fn have_failed(&self, ids: &[InstanceId]) -> bool {
        let described = self.gcp.describe_once(Operation::LaunchInstance, ids).await;
        let failed = |info: &InstanceInfo| info.launch_failure.is_some();
        described.iter().all(|info| info.as_ref().is_ok_and(failed))
    }

    /// Reads by name in the zone of the launch.
    async fn read_by_name(&self, name: &str) -> Result<Option<Instance>> {
        match self.gcp.client.get(self.plan.zone.as_str(), name).await {
            Ok(native) => Ok(Some(native)),
            Err(failure) if failure.is_not_found() => Ok(None),
            Err(failure) => Err(failure.into_error(self.context.call, ErrorContext::default())),
        }
    }

    /// Reads owner and fingerprint from the metadata.
    fn marks<'n>(&self, native: &'n Instance) -> Marks<'n> {
        let info = convert::info(self.gcp.client.project(), native);
        Marks {
            name: native.name.as_deref().unwrap_or_default(),
            id: info.ok().map(|info| info.id),
            owner: convert::owner(native),
            fingerprint: convert::fingerprint(native),
        }
    }

    /// Refuses an instance that is being deleted.
    async fn adopt(&self, token: &LaunchToken, native: Instance) -> Result<InstanceInfo> {
        let call = self.context.call;
        let info = convert::info(self.gcp.client.project(), &native);
        let info = info.map_err(|problem| call.unexpected(Effect::Unknown, &problem))?;
        let resolved = self.gcp.resolve_shown(vec![info], Unclear::Fail).await;
        let resolved = resolved.map_err(|failure| {
            let error = failure.into_error(call, ErrorContext::default());
            error.with_effect(Effect::None)
        })?;
        let alive = resolved.into_iter().find(|info| !info.state.is_ending());
        alive.ok_or_else(|| call.token_spent(token))
    }

    async fn settle(
        &self,
        mut attempts: Vec<Attempt<InstanceInfo, NativeOperation>>,
    ) -> LaunchOutcome {
        if let Some(error) = self.yield_to_twin(&attempts).await {
            let mut outcome = LaunchOutcome::default();
            outcome.add_error(error);
            return outcome;
        }
        let sent = attempts.iter_mut().filter_map(|attempt| match attempt {
            Attempt::Accepted { creation, .. } => Some(creation),
            Attempt::Existing { .. } => None,
        });
        let zone = self.plan.zone.as_str();
        self.gcp.await_inserts(zone, sent.collect()).await;
        let results = attempts.into_iter().map(|attempt| async move {
            match attempt {
                Attempt::Existing { instance, .. } => Ok(instance),
                Attempt::Accepted { name, creation } => self.settle_one(&name, &creation).await,
            }
        });
        let results: Vec<_> = results.collect();
        let results = stream::iter(results).buffered(self.context.concurrency);
        results.collect::<Vec<_>>().await.into_iter().collect()
    }
}

impl GcpLaunch<'_> {
    /// Returns the result of one insert, as far as its operation knows by now.
    async fn settle_one(&self, name: &str, operation: &NativeOperation) -> Result<InstanceInfo> {
        match (history::failure(operation), self.context.token) {
            // Another instance of that name was faster. Compute Engine does not always report it at
            // once.
            (Some(failure), Some(token)) if failure.is_taken() => {
                adopt_by_name(self, &self.context, token, name, self.name_taken(name)).await
            }
            (Some(failure), _) => Err(self.launch_error(failure)),
            (None, _) => self.pending_info(name, operation).await,
        }
    }

    /// Returns the launched instance as pending, with everything that the config requests.
    async fn pending_info(&self, name: &str, operation: &NativeOperation) -> Result<InstanceInfo> {
        let (call, config) = (self.context.call, self.config);
        let number = match operation.target_id {
            Some(number) => Some(number),
            None => self.read_number(name).await?,
        };
        let no_number = || call.unexpected(Effect::Done, "the launched instance has no number");
        let address = Address {
            project: self.gcp.client.project().to_owned(),
            zone: self.plan.zone.to_string(),
            name: name.to_owned(),
            number: number.ok_or_else(no_number)?,
        };
        let no_id = || call.unexpected(Effect::Done, "the launched instance has no valid id");
        let id = address.id().ok_or_else(no_id)?;
        let mut info = InstanceInfo::new(id, CloudInstanceState::Pending);
        info.tags = config.tags.clone();
        info.image = Some(config.image.clone());
        info.instance_type = Some(config.instance_type.clone());
        info.placement = config.placement.clone();
        info.placement.zone = Some(self.plan.zone.clone());
        info.launch_time = operation.insert_time.as_deref().and_then(history::time);
        Ok(info)
    }

    /// Reads the number of an instance that was just inserted, once reads show it.
    async fn read_number(&self, name: &str) -> Result<Option<u64>> {
        let read = || -> BoxFuture<'_, _> { Box::pin(self.read_by_name(name)) };
        let native = read_until(&self.gcp.capabilities, read, Option::is_some).await;
        let native = native.map_err(|error| error.with_effect(Effect::Done))?;
        Ok(native.and_then(|native| native.id))
    }

    /// Returns the error of a name that is taken by an instance that no read shows.
    pub(crate) fn name_taken(&self, name: &str) -> fleetwright::ProvisionError {
        let message = format!("the name {name} is taken, but no read shows the instance yet");
        let retry = RetryAdvice::After(self.gcp.capabilities.poll_interval);
        self.context.call.conflict(&message, retry)
    }

    /// Turns a failed insert into the error of this launch, with offering and network.
    pub(crate) fn launch_error(&self, failure: Failure) -> fleetwright::ProvisionError {
        let context = ErrorContext {
            config: Some(self.config),
            zone: Some(&self.plan.zone),
            network: self.plan.network.as_ref(),
            ..ErrorContext::default()
        };
        failure.into_error(self.context.call, context)
    }
}
