//! Launching on Compute Engine: the calls behind [`fleetwright_provider_support::launch`].
//!
//! Owns the insert of an instance: its request id, how long its operation is awaited, and the
//! result. It must never send an insert under a request id whose attempt has failed.
//!
//! What makes a launch repeatable, from weak to strong: the request id, which Google remembers for
//! an undocumented time; the list of instances and operations by name, which a replay reads first;
//! and the name itself, of which Compute Engine allows one per zone.
//!
//! 1. With a token, read what it has launched: live instances are adopted, or the token is in conflict or
//!    spent.
//! 2. Send one insert per missing name. A name that is taken is read and adopted if its marks match.
//! 3. Wait `launch_wait` for the operations. One that failed because the name is taken is adopted like a
//!    refused insert; any other failure is the error of the launch.
//! 4. Everything else is returned as pending, with the values of the config.

use std::num::NonZeroU32;

use fleetwright::{
    Call, CloudInstanceState, Effect, InstanceConfig, InstanceInfo, LaunchToken, Result,
    RetryAdvice, async_trait,
};
use fleetwright_provider_support::launch::{
    self, Attempt, CreateError, LaunchCalls, LaunchContext, LaunchOutcome, Marks, adopt_by_name,
};
use fleetwright_provider_support::read_until;
use futures_util::{StreamExt as _, future::BoxFuture, stream};
use google_cloud_compute_v1::model::{Instance, Operation as NativeOperation};
use uuid::Uuid;

use crate::{
    GcpProvisioner, address,
    address::Address,
    convert,
    error::{ErrorContext, Failure, GcpFailure as _},
    history,
    plan::Plan,
    token::TokenLaunches,
};

/// One call of `launch_instance` or `launch_instances`, with all that its steps need.
struct GcpLaunch<'a> {
    /// The provisioner.
    gcp: &'a GcpProvisioner,
    /// The config of the caller.
    config: &'a InstanceConfig,
    /// The request that follows from it.
    plan: &'a Plan,
    /// What the shared sequence needs.
    context: LaunchContext<'a>,
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
        let index = |index| (count > NonZeroU32::MIN).then_some(index);
        let name = |item| match &config.launch_token {
            Some(token) => address::name_of(token, index(item)),
            None => address::random_name(),
        };
        let names: Vec<_> = (0..count.get()).map(name).collect();
        let context = LaunchContext {
            call,
            capabilities: &self.capabilities,
            token: config.launch_token.as_ref(),
            owner: plan.owner.as_deref(),
            fingerprint: plan.fingerprint,
            concurrency: self.options.concurrency.get() as usize,
            first_alone: false,
            recent_launches: &self.recent_launches,
            recent_tokens: &self.recent_tokens,
        };
        let calls = GcpLaunch {
            gcp: self,
            config,
            plan: &plan,
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
        known: &TokenLaunches,
    ) -> std::result::Result<NativeOperation, CreateError> {
        let request_id = self.request_id(name, known);
        let instance = self.plan.named(name);
        let zone = self.plan.zone.as_str();
        let sent = self.gcp.client.insert(zone, instance, &request_id).await;
        sent.map_err(|failure| {
            if failure.is_taken() && self.context.token.is_some() {
                CreateError::NameTaken(self.name_taken(name))
            } else {
                CreateError::Failed(self.launch_error(failure))
            }
        })
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

    /// Refuses an instance that is being deleted, which only its operations show.
    async fn adopt(&self, token: &LaunchToken, native: Instance) -> Result<InstanceInfo> {
        let call = self.context.call;
        let info = convert::info(self.gcp.client.project(), &native);
        let info = info.map_err(|problem| call.unexpected(Effect::Unknown, &problem))?;
        let info = self.gcp.resolve_stopping(call, info).await?;
        if info.state.is_ending() {
            return Err(call.token_spent(token));
        }
        Ok(info)
    }

    async fn settle(
        &self,
        mut attempts: Vec<Attempt<InstanceInfo, NativeOperation>>,
    ) -> LaunchOutcome {
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

    /// Returns the request id of an insert. A repeated launch has the same one, so that Compute
    /// Engine treats it as one. Each failed attempt changes it, because Compute Engine would return
    /// that failure again. Operations have no order, so all failed ones count and not only the
    /// latest.
    fn request_id(&self, name: &str, known: &TokenLaunches) -> String {
        let plan = self.plan;
        if plan.owner.is_none() || self.gcp.options.operations_kept.is_zero() {
            return Uuid::new_v4().to_string();
        }
        let failed = known.failed_attempts.get(name).into_iter().flatten();
        let failed: Vec<_> = failed.map(String::as_str).collect();
        let text = format!(
            "{name}\n{}\n{}\n{}",
            plan.zone,
            plan.fingerprint.as_uuid(),
            failed.join("\n")
        );
        Uuid::new_v5(&Uuid::NAMESPACE_OID, text.as_bytes()).to_string()
    }

    /// Returns the error of a name that is taken by an instance that no read shows.
    fn name_taken(&self, name: &str) -> fleetwright::ProvisionError {
        let message = format!("the name {name} is taken, but no read shows the instance yet");
        let retry = RetryAdvice::After(self.gcp.capabilities.poll_interval);
        self.context.call.conflict(&message, retry)
    }

    /// Turns a failed insert into the error of this launch, with offering and network.
    fn launch_error(&self, failure: Failure) -> fleetwright::ProvisionError {
        let context = ErrorContext {
            config: Some(self.config),
            zone: Some(&self.plan.zone),
            network: self.plan.network.as_ref(),
            ..ErrorContext::default()
        };
        failure.into_error(self.context.call, context)
    }
}
