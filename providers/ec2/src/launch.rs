//! Launching.
//!
//! Owns when a launch is sent, and that one launch token has one launch.
//!
//! 1. What the token has launched is looked up. A live launch is the result, whatever the options of this
//!    handle are; nothing is sent.
//! 2. Otherwise `RunInstances` is sent. EC2 makes it idempotent within one zone. If EC2 has the client token
//!    with other parameters, either another handle has launched, and reads will show it, or EC2 refused
//!    an earlier launch, and the next client token is sent.
//! 3. The token is looked up once more. If another handle has launched in another zone at the same moment, the
//!    older launch stays, and a call terminates only what it has launched itself.

use std::{num::NonZeroU32, sync::PoisonError};

use aws_sdk_ec2::types::Instance;
use fleetwright::{
    Call, CloudInstanceState, Effect, InstanceConfig, InstanceId, InstanceInfo, LaunchToken, Result,
};
use fleetwright_provider_support::{Change, ChangeInstances as _, read_until};
use futures_util::future::BoxFuture;

use crate::{
    Ec2Provisioner,
    by_token::{self, Launch},
    convert,
    error::{ErrorContext, Failure},
    plan::{self, Plan},
    read::infos as read_infos,
    token,
};

/// How many client tokens of one launch token are tried. EC2 binds each of them to the parameters of its
/// first request, so a further one is needed only if options have changed since a launch was refused.
const CLIENT_TOKENS: u32 = 4;

/// EC2's largest page. A launch reads its instances with as few calls as possible.
const MAX_PAGE_SIZE: usize = 1_000;

/// A launch with a token, as its caller requested it.
#[derive(Clone, Copy)]
struct Requested<'a> {
    call: &'a Call,
    token: &'a LaunchToken,
    config: &'a InstanceConfig,
    count: NonZeroU32,
}

impl Requested<'_> {
    /// Checks that a launch of the token has the requested config.
    fn check(&self, launch: &Launch) -> Result<()> {
        let config = self.config.fingerprint(self.count);
        match launch.fingerprint() {
            Some(other) if other != config => Err(self.call.token_conflict(self.token)),
            Some(_) | None => Ok(()),
        }
    }
}

impl Ec2Provisioner {
    /// Launches `count` instances, all or none.
    ///
    /// # Errors
    ///
    /// Everything before `RunInstances` fails without effect: an invalid config, a token that was used
    /// with another config or is spent, a failed read. Afterwards the effect is that of the response;
    /// a response without instances has an unknown effect.
    pub(crate) async fn launch(
        &self,
        call: &Call,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        config
            .check(&self.capabilities)
            .map_err(|value| call.invalid(value))?;
        let window = self.capabilities.consistency_window;
        let launched = match &config.launch_token {
            Some(token) => {
                let requested = Requested {
                    call,
                    token,
                    config,
                    count,
                };
                let launched = self.launch_once(requested).await?;
                let fingerprint = config.fingerprint(count);
                self.recent_tokens.record(token, fingerprint, window);
                launched
            }
            None => {
                let run = self.run(call, config, count, None).await?;
                let run =
                    run.map_err(|failure| failure.into_error(call, self.launch_context(config)))?;
                created(call, &run)?
            }
        };
        self.recent_launches.record(&launched, window);
        Ok(launched)
    }

    /// Returns what the token has launched, or launches it.
    async fn launch_once(&self, requested: Requested<'_>) -> Result<Vec<InstanceInfo>> {
        let Requested {
            call,
            token,
            config,
            count,
        } = requested;
        let recent = self
            .recent_tokens
            .fingerprint(token, self.capabilities.consistency_window);
        if recent.is_some_and(|recent| recent != config.fingerprint(count)) {
            return Err(call.token_conflict(token));
        }
        // A launch of this handle exists, although a read may not show it yet.
        if let Some(known) = self.known_launch(requested, recent.is_some()).await? {
            return Ok(known);
        }
        for attempt in 1..=CLIENT_TOKENS {
            let client_token = token::client_token(token, config, attempt);
            match self.run(call, config, count, Some(client_token)).await? {
                Ok(natives) => return self.keep_one_launch(requested, natives).await,
                Err(failure) if failure.code() == "IdempotentParameterMismatch" => {
                    if let Some(known) = self.known_launch(requested, true).await? {
                        return Ok(known);
                    }
                }
                Err(failure) => return Err(failure.into_error(call, self.launch_context(config))),
            }
        }
        Err(call.token_conflict(token))
    }

    /// Returns the live launch of a token; `None` if it has launched nothing. With `wait`, or if a part of a
    /// batch is missing, reads until the launch is there or reads cannot be stale anymore.
    ///
    /// # Errors
    ///
    /// A token conflict if the launch has another config, "spent" if nothing of it is alive, and a failed
    /// read. All without effect.
    async fn known_launch(
        &self,
        requested: Requested<'_>,
        wait: bool,
    ) -> Result<Option<Vec<InstanceInfo>>> {
        let (call, config) = (requested.call, requested.config);
        let count = requested.count;
        let read = || -> BoxFuture<'_, _> {
            Box::pin(async move { Ok(self.find_launches(requested).await?.into_iter().next()) })
        };
        let wanted = usize::try_from(count.get()).unwrap_or(usize::MAX);
        let requested_config = config.fingerprint(count);
        let is_settled = |launch: &Option<Launch>| match launch {
            None => !wait,
            Some(launch) => {
                let other = |config| config != requested_config;
                launch.instances.len() >= wanted || launch.fingerprint().is_some_and(other)
            }
        };
        let launch = read_until(&self.capabilities, read, is_settled).await;
        let Some(launch) = launch.map_err(|error| error.with_effect(Effect::None))? else {
            return Ok(None);
        };
        requested.check(&launch)?;
        let infos = read_infos(call, &launch.instances);
        let infos = infos.map_err(|error| error.with_effect(Effect::None))?;
        self.check_alive(requested, &infos)?;
        Ok(Some(infos))
    }

    /// Checks that a launch is not spent: that an instance of it is neither terminating nor terminated, nor
    /// was terminated by this handle while reads still show it running.
    fn check_alive(&self, requested: Requested<'_>, infos: &[InstanceInfo]) -> Result<()> {
        let window = self.capabilities.consistency_window;
        let is_ending = |info: &InstanceInfo| {
            info.state.is_ending() || self.recent_terminations.contains(&info.id, window)
        };
        if infos.iter().all(is_ending) {
            return Err(requested.call.token_spent(requested.token));
        }
        Ok(())
    }

    /// Returns the launch that this call has just made, unless the token has an older one that is alive. Then
    /// what this call launched is terminated, and the older launch is the result.
    ///
    /// A failed look-up changes nothing: the launch has succeeded.
    ///
    /// # Errors
    ///
    /// "Spent" if EC2 returned the ended instances of an earlier launch, a token conflict if the older
    /// launch has another config, and the error of a failed termination with the launch as survivors.
    async fn keep_one_launch(
        &self,
        requested: Requested<'_>,
        natives: Vec<Instance>,
    ) -> Result<Vec<InstanceInfo>> {
        let call = requested.call;
        let infos = created(call, &natives)?;
        self.check_alive(requested, &infos)?;
        // EC2 returns an earlier launch for a replay that reads did not show. That one is not ours to end.
        let is_new = |info: &InstanceInfo| info.state == CloudInstanceState::Pending;
        let Some(ours) = Launch::new(natives).filter(|_| infos.iter().all(is_new)) else {
            return Ok(infos);
        };
        let Ok(Some(older)) = self.older_launch(requested, &ours).await else {
            return Ok(infos);
        };
        let window = self.capabilities.consistency_window;
        self.recent_launches.record(&infos, window);
        let ids: Vec<InstanceId> = infos.iter().map(|info| info.id.clone()).collect();
        let ended = self.change_all(call.operation(), Change::Terminate, &ids);
        if let Some(error) = ended.await.into_iter().find_map(Result::err) {
            return Err(error.with_survivors(infos));
        }
        requested.check(&older)?;
        read_infos(call, &older.instances)
    }

    /// Returns another live launch of the token to which `ours` must yield.
    ///
    /// A launch that is older by EC2's clock stays, because its call may have returned before ours was sent. If
    /// the options of this handle have chosen the zone, other handles may have chosen another one. Then the
    /// token is read until `ours` shows, because a read that shows it also shows what is older.
    ///
    /// EC2's clock has seconds. In the same second, the launch with the lower id yields at once, and the
    /// other one if the lower one has not yielded by the time that reads cannot be stale anymore.
    async fn older_launch(
        &self,
        requested: Requested<'_>,
        ours: &Launch,
    ) -> Result<Option<Launch>> {
        let read = || -> BoxFuture<'_, _> { Box::pin(self.find_launches(requested)) };
        let is_placed = plan::is_placed_by_options(&self.launch, requested.config);
        let shows_ours =
            |launches: &Vec<Launch>| !is_placed || launches.iter().any(|one| one.is_same(ours));
        let launches = read_until(&self.capabilities, read, shows_ours).await?;
        let mut others = launches.into_iter().filter(|other| !other.is_same(ours));
        let Some(other) = others.find(Launch::is_alive) else {
            return Ok(None);
        };
        let ((time, id), (our_time, our_id)) = (other.age(), ours.age());
        if time != our_time {
            return Ok((time < our_time).then_some(other));
        }
        if our_id < id {
            return Ok(Some(other));
        }
        // A read that does not show the other launch is older than it, and proves nothing.
        let has_yielded = |launches: &Vec<Launch>| {
            let mut ended = launches.iter().filter(|launch| !launch.is_alive());
            ended.any(|launch| launch.is_same(&other))
        };
        let launches = read_until(&self.capabilities, read, has_yielded).await?;
        Ok((!has_yielded(&launches)).then_some(other))
    }

    /// Reads all launches of the token, its own first.
    async fn find_launches(&self, requested: Requested<'_>) -> Result<Vec<Launch>> {
        let natives = self.list_by_token(requested.token, MAX_PAGE_SIZE).await;
        let error = |failure: Failure| failure.into_error(requested.call, ErrorContext::default());
        Ok(by_token::launches(natives.map_err(error)?))
    }

    /// Sends `RunInstances`. Returns EC2's instances, or its refusal.
    ///
    /// # Errors
    ///
    /// Of the read of the image, without effect.
    async fn run(
        &self,
        call: &Call,
        config: &InstanceConfig,
        count: NonZeroU32,
        client_token: Option<String>,
    ) -> Result<Result<Vec<Instance>, Failure>> {
        let root_device = self.root_device(config).await.map_err(|failure| {
            let error = failure.into_error(call, self.launch_context(config));
            // The launch was not sent, whatever the effect of this read is.
            error.with_effect(Effect::None)
        })?;
        let mut plan = Plan::new(&self.launch, config, count, root_device.as_deref());
        plan.client_token = client_token;
        Ok(self.client.run(plan).await)
    }

    /// Lists everything that a token launched, in all zones and of all types, in pages of `page_size`.
    pub(crate) async fn list_by_token(
        &self,
        token: &LaunchToken,
        page_size: usize,
    ) -> Result<Vec<Instance>, Failure> {
        let filter = convert::value_filter("client-token", &token::pattern(token));
        self.client.list(&[filter], page_size).await
    }

    /// Returns the context of the errors of a launch.
    fn launch_context<'a>(&'a self, config: &'a InstanceConfig) -> ErrorContext<'a> {
        ErrorContext {
            config: Some(config),
            zone: plan::zone(&self.launch, config),
            network: plan::subnet(&self.launch, config),
            token: config.launch_token.as_ref(),
            ..ErrorContext::default()
        }
    }

    /// Returns the name of the image's root device if the launch needs it. Reads each image once.
    async fn root_device(&self, config: &InstanceConfig) -> Result<Option<String>, Failure> {
        if !plan::needs_root_device(&self.launch, config) {
            return Ok(None);
        }
        let known = || {
            let devices = self.root_devices.lock();
            let devices = devices.unwrap_or_else(PoisonError::into_inner);
            devices.get(&config.image).cloned()
        };
        if let Some(name) = known() {
            return Ok(Some(name));
        }
        let name = self.client.root_device(config.image.as_str()).await?;
        if let Some(name) = &name {
            let devices = self.root_devices.lock();
            let mut devices = devices.unwrap_or_else(PoisonError::into_inner);
            devices.insert(config.image.clone(), name.clone());
        }
        Ok(name)
    }
}

/// Converts the instances of a `RunInstances` response.
///
/// # Errors
///
/// Unexpected with an unknown effect if there are none, or if one cannot be converted.
fn created(call: &Call, natives: &[Instance]) -> Result<Vec<InstanceInfo>> {
    if natives.is_empty() {
        let message = "EC2 accepted the launch and returned no instance";
        return Err(call.unexpected(Effect::Unknown, message));
    }
    read_infos(call, natives)
}
