//! Launching: what a token has launched already, and what is launched anew.

use std::{
    collections::HashMap,
    num::NonZeroU32,
    sync::{Mutex, PoisonError},
};

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
    pub(crate) async fn launched(
        &self,
        call: &Call,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        config
            .check(&self.capabilities)
            .map_err(|value| call.invalid(value))?;
        if let Some(token) = &config.launch_token {
            self.compare(call, token, config, count).await?;
        }
        let about = ErrorContext {
            config: Some(config),
            token: config.launch_token.as_ref(),
            ..ErrorContext::default()
        };
        let told = |failure: Failure| failure.into_error(call, about);
        let root_device = self.root_device(config).await.map_err(|failure| {
            // Nothing was launched yet, whatever became of the question.
            told(failure).with_effect(Effect::None)
        })?;
        let plan = Plan::new(&self.launch, config, count, root_device.as_deref());
        let natives = self.client.run(plan).await.map_err(told)?;
        let infos = infos(call, &natives)?;
        if natives.is_empty() {
            return Err(call.unexpected(Effect::Unknown, "EC2 launched nothing and says no reason"));
        }
        if let Some(token) = config
            .launch_token
            .as_ref()
            .filter(|_| all_are_ending(&infos))
        {
            return Err(call.token_spent(token));
        }
        let window = self.capabilities.consistency_window;
        self.fresh.record(&infos, window);
        if let Some(token) = &config.launch_token {
            self.used.record(token, config.fingerprint(count), window);
        }
        Ok(infos)
    }

    /// Refuses a token that was used with another config. EC2 compares by itself only what goes into
    /// the same zone with the same type; and it alone knows what a token launched, so a launch that
    /// is the same is sent again.
    pub(crate) async fn compare(
        &self,
        call: &Call,
        token: &LaunchToken,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<()> {
        let asked = config.fingerprint(count);
        let window = self.capabilities.consistency_window;
        match self.used.fingerprint(token, window) {
            Some(known) if known == asked => return Ok(()),
            Some(_) => return Err(call.token_conflict(token)),
            None => {}
        }
        let looked = self.with_token(token).await;
        let natives = looked.map_err(|failure| {
            let error = failure.into_error(call, ErrorContext::default());
            error.with_effect(Effect::None)
        })?;
        // Tags of terminated instances go before the instances do.
        let known = natives.iter().find_map(convert::fingerprint);
        if known.is_some_and(|known| known != asked) {
            return Err(call.token_conflict(token));
        }
        let infos = infos(call, &natives).map_err(|error| error.with_effect(Effect::None))?;
        if !infos.is_empty() && all_are_ending(&infos) {
            return Err(call.token_spent(token));
        }
        Ok(())
    }

    pub(crate) async fn with_token(&self, token: &LaunchToken) -> Result<Vec<Instance>, Failure> {
        let filter = convert::of_one("client-token", &token::pattern(token));
        let size = self.options.page_size.get();
        self.client.all(&[filter], size).await
    }

    pub(crate) async fn root_device(
        &self,
        config: &InstanceConfig,
    ) -> Result<Option<String>, Failure> {
        if !plan::needs_root_device(&self.launch, config) {
            return Ok(None);
        }
        let known = |devices: &Mutex<HashMap<_, _>>| {
            let devices = devices.lock().unwrap_or_else(PoisonError::into_inner);
            devices.get(&config.image).cloned()
        };
        if let Some(name) = known(&self.root_devices) {
            return Ok(Some(name));
        }
        let name = self.client.root_device(config.image.as_str()).await?;
        if let Some(name) = &name {
            let mut devices = self
                .root_devices
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            devices.insert(config.image.clone(), name.clone());
        }
        Ok(name)
    }
}

fn all_are_ending(infos: &[InstanceInfo]) -> bool {
    infos.iter().all(|info| info.state.is_ending())
}
