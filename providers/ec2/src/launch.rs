//! Launching.
//!
//! Owns when a launch is sent. EC2 itself makes a launch with a client token idempotent, so a replay is sent
//! again and EC2 returns the first instances. What EC2 does not check is checked here before: that the token
//! was not used with another config, and is not spent.
//!
//! The check comes before the launch and is not atomic with it. Within one zone and type EC2 closes the
//! gap, because it compares the parameters itself. Across zones or types two handles that use one
//! token at the same moment can both launch; the README describes it.

use std::{num::NonZeroU32, sync::PoisonError};

use aws_sdk_ec2::types::Instance;
use fleetwright::{Call, Effect, InstanceConfig, InstanceInfo, LaunchToken, Result};

use crate::{
    Ec2Provisioner, convert,
    error::{ErrorContext, Failure},
    plan::{self, Plan},
    read::infos,
    token,
};

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
        if let Some(token) = &config.launch_token {
            self.check_token(call, token, config, count).await?;
        }
        let context = ErrorContext {
            config: Some(config),
            zone: plan::zone(&self.launch, config),
            network: plan::subnet(&self.launch, config),
            token: config.launch_token.as_ref(),
            ..ErrorContext::default()
        };
        let error = |failure: Failure| failure.into_error(call, context);
        let root_device = self.root_device(config).await.map_err(|failure| {
            // The launch was not sent, whatever became of this read.
            error(failure).with_effect(Effect::None)
        })?;
        let plan = Plan::new(&self.launch, config, count, root_device.as_deref());
        let natives = self.client.run(plan).await.map_err(error)?;
        let infos = infos(call, &natives)?;
        if infos.is_empty() {
            let message = "EC2 accepted the launch and returned no instance";
            return Err(call.unexpected(Effect::Unknown, message));
        }
        let window = self.capabilities.consistency_window;
        if let Some(token) = &config.launch_token {
            if all_are_ending(&infos) {
                return Err(call.token_spent(token));
            }
            let fingerprint = config.fingerprint(count);
            self.recent_tokens.record(token, fingerprint, window);
        }
        self.recent_launches.record(&infos, window);
        Ok(infos)
    }

    /// Checks that a token was not used with another config and is not spent. EC2 compares only launches of
    /// the same type in the same zone by itself.
    ///
    /// A token that this handle has used within the consistency window is compared without a call,
    /// because a list might not show its instances yet.
    async fn check_token(
        &self,
        call: &Call,
        token: &LaunchToken,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<()> {
        let requested = config.fingerprint(count);
        let window = self.capabilities.consistency_window;
        match self.recent_tokens.fingerprint(token, window) {
            Some(recent) if recent == requested => return Ok(()),
            Some(_) => return Err(call.token_conflict(token)),
            None => {}
        }
        let natives = self.list_by_token(token).await.map_err(|failure| {
            let error = failure.into_error(call, ErrorContext::default());
            error.with_effect(Effect::None)
        })?;
        // EC2 removes the tags of a terminated instance before the instance itself.
        let first = natives.iter().find_map(convert::fingerprint);
        if first.is_some_and(|first| first != requested) {
            return Err(call.token_conflict(token));
        }
        let infos = infos(call, &natives).map_err(|error| error.with_effect(Effect::None))?;
        if !infos.is_empty() && all_are_ending(&infos) {
            return Err(call.token_spent(token));
        }
        Ok(())
    }

    /// Lists everything that a token launched, in all zones and of all types.
    pub(crate) async fn list_by_token(
        &self,
        token: &LaunchToken,
    ) -> Result<Vec<Instance>, Failure> {
        let filter = convert::value_filter("client-token", &token::pattern(token));
        self.client
            .list(&[filter], self.options.page_size.get())
            .await
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

/// Whether every instance is terminating or terminated, so that the token is spent.
fn all_are_ending(infos: &[InstanceInfo]) -> bool {
    infos.iter().all(|info| info.state.is_ending())
}
