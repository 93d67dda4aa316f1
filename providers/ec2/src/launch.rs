//! Launching.
//!
//! Owns when a launch is sent, and that one launch token has one launch.
//!
//! 1. What the token has launched is looked up. A live launch is the result, whatever the options of this
//!    handle are; nothing is sent.
//! 2. Otherwise `RunInstances` is sent. EC2 makes it idempotent within one zone. If EC2 has the client token
//!    with other parameters, either another handle has launched, and reads will show it, or EC2 refused
//!    an earlier launch, and the next client token is sent. It is also sent after a launch that failed late.
//! 3. The token is looked up once more, in case that another handle has launched in another zone at the same moment:
//!    [`one_launch`](crate::one_launch).

use std::{num::NonZeroU32, sync::PoisonError, time::Duration};

use aws_sdk_ec2::types::Instance;
use fleetwright::{Call, Effect, InstanceConfig, InstanceInfo, LaunchToken, Result, RetryAdvice};
use fleetwright_provider_support::read_until;
use futures_util::future::BoxFuture;
use tokio::time::Instant;

use crate::{
    Ec2Provisioner,
    by_token::{self, Launch},
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

/// How long a handle remembers when EC2 first refused a client token because of other parameters.
const MISMATCHES_KEPT: Duration = Duration::from_secs(60 * 60);

/// A launch with a token, as its caller requested it.
#[derive(Clone, Copy)]
pub(crate) struct Requested<'a> {
    pub(crate) call: &'a Call,
    pub(crate) token: &'a LaunchToken,
    config: &'a InstanceConfig,
    count: NonZeroU32,
}

impl Requested<'_> {
    /// Checks that a launch of the token has the requested config.
    pub(crate) fn check(&self, launch: &Launch) -> Result<()> {
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
                self.recent_tokens
                    .record_launch(token, fingerprint, &launched, window);
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
        let fingerprint = config.fingerprint(count);
        self.check_recent_token(call, token, fingerprint).await?;
        let recent = self
            .recent_tokens
            .fingerprint(token, self.capabilities.consistency_window);
        // A launch of this handle exists, although a read may not show it yet.
        let exists = recent == Some(fingerprint);
        if let Some(known) = self.known_launch(requested, exists).await? {
            return Ok(known);
        }
        for attempt in 1..=CLIENT_TOKENS {
            let client_token = token::client_token(token, config, attempt);
            if self.failed_launches.contains(&client_token) {
                continue;
            }
            let sent = Instant::now();
            let run = self.run(call, config, count, Some(client_token.clone()));
            match run.await? {
                Ok(natives) => return self.keep_one_launch(requested, natives, sent).await,
                Err(failure) if failure.code() == "IdempotentParameterMismatch" => {
                    let began = self.mismatch_began(client_token);
                    if let Some(known) = self.known_launch(requested, true).await? {
                        return Ok(known);
                    }
                    self.require_proof(call, began)?;
                }
                Err(failure) if failure.code() == "IdempotentInstanceTerminated" => {
                    if let Some(known) = self.known_launch(requested, true).await? {
                        return Ok(known);
                    }
                    // Only a launch that failed late leaves its token free.
                    let client_token = token::client_token(token, config, attempt);
                    if !self.failed_launches.contains(&client_token) {
                        return Err(failure.into_error(call, self.launch_context(config)));
                    }
                }
                Err(failure) => return Err(failure.into_error(call, self.launch_context(config))),
            }
        }
        Err(call.token_conflict(token))
    }

    /// Returns when EC2 first refused the client token because of other parameters: now, unless this handle
    /// remembers it.
    fn mismatch_began(&self, client_token: String) -> Instant {
        let known = self.mismatches.get(&client_token, MISMATCHES_KEPT);
        known.unwrap_or_else(|| {
            let now = Instant::now();
            self.mismatches
                .record([(client_token, now)], MISMATCHES_KEPT);
            now
        })
    }

    /// Decides about a launch whose client token EC2 has bound to other parameters: either they launched something
    /// that no read shows yet, or EC2 refused that request too. Refuses this launch until the consistency window
    /// has passed since the first refusal. After that, a launch would show, so nothing was launched.
    ///
    /// # Errors
    ///
    /// A conflict that may pass, without effect. A call waits only for the usual lag, which can be shorter than
    /// the window; the caller retries.
    fn require_proof(&self, call: &Call, began: Instant) -> Result<()> {
        let window = self.capabilities.consistency_window;
        let remaining = window.saturating_sub(began.elapsed());
        if remaining.is_zero() {
            return Ok(());
        }
        let message = "EC2 knows this launch with other options, and no read shows its instance yet; retry the \
                       same launch, which is sent with a new client token once reads cannot be stale anymore";
        let delay = remaining.min(self.capabilities.usual_lag());
        Err(call.conflict(message, RetryAdvice::After(delay)))
    }

    /// Returns the live launch of a token; `None` if it has launched nothing. With `wait`, or if a part of a
    /// batch is missing, reads until the launch is there or the usual lag of reads has passed.
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
        let read = || -> BoxFuture<'_, _> { Box::pin(self.find_launches(requested)) };
        let wanted = usize::try_from(count.get()).unwrap_or(usize::MAX);
        let requested_config = config.fingerprint(count);
        let is_settled = |found: &(Vec<Launch>, bool)| match found.0.first() {
            None => !wait || found.1,
            Some(launch) => {
                let other = |config| config != requested_config;
                launch.instances.len() >= wanted || launch.fingerprint().is_some_and(other)
            }
        };
        let found = read_until(&self.capabilities, read, is_settled).await;
        let (launches, _) = found.map_err(|error| error.with_effect(Effect::None))?;
        let Some(launch) = launches.into_iter().next() else {
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
    pub(crate) fn check_alive(
        &self,
        requested: Requested<'_>,
        infos: &[InstanceInfo],
    ) -> Result<()> {
        let window = self.capabilities.consistency_window;
        let is_ending = |info: &InstanceInfo| {
            info.state.is_ending() || self.recent_terminations.contains(&info.id, window)
        };
        if infos.iter().all(is_ending) {
            return Err(requested.call.token_spent(requested.token));
        }
        Ok(())
    }

    /// Reads the launches of the token that did not fail, its own first, and whether any other one failed.
    pub(crate) async fn find_launches(
        &self,
        requested: Requested<'_>,
    ) -> Result<(Vec<Launch>, bool)> {
        let list = |filter| -> BoxFuture<'_, _> {
            Box::pin(async move { self.client.list(&[filter], MAX_PAGE_SIZE).await })
        };
        let natives = self.token_reads.read(requested.token, list).await;
        let error = |failure: Failure| failure.into_error(requested.call, ErrorContext::default());
        Ok(self.launches_that_count(natives.map_err(error)?))
    }

    /// Sorts the instances of a token by launch, without the launches that failed late, which leave their token
    /// free. Also returns whether there are any of those.
    pub(crate) fn launches_that_count(&self, natives: Vec<Instance>) -> (Vec<Launch>, bool) {
        self.failed_launches.record(&natives);
        let mut launches = by_token::launches(natives);
        let all = launches.len();
        launches.retain(|launch| !self.failed_launches.are_all_of(launch));
        let has_failed = launches.len() < all;
        (launches, has_failed)
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
pub(crate) fn created(call: &Call, natives: &[Instance]) -> Result<Vec<InstanceInfo>> {
    if natives.is_empty() {
        let message = "EC2 accepted the launch and returned no instance";
        return Err(call.unexpected(Effect::Unknown, message));
    }
    read_infos(call, natives)
}
