//! Creates an instance, or returns the one that its name has.
//!
//! Owns the order of look-up and launch. The launch token follows from controller and name, so that a creation that was killed is found by
//! the next one, and never repeated.

use std::{num::NonZeroU32, time::Duration};

use fleetwright::{
    Effect, ErrorKind, InstanceConfig, InstanceInfo, LaunchRecord, LaunchToken, ProvisionError,
};
use tokio::time::{Instant, sleep};

use super::{Fleet, Polls, find::MAX_ATTEMPTS};
use crate::{
    answer::ProviderInstance,
    failure::Failure,
    identity::{InstanceName, key},
};

/// How long a creation waits for the end of an instance that had the same name.
const MAX_WAIT: Duration = Duration::from_secs(600);

/// What is created.
#[derive(Clone, Debug)]
pub(crate) struct NewInstance {
    /// The name.
    pub(crate) name: InstanceName,
    /// What is launched. The tags of the controller are in it, the launch token is not.
    pub(crate) config: InstanceConfig,
}

/// What to do after a launch that returned no instance.
enum Next {
    /// The instance exists already.
    Found(Box<InstanceInfo>),
    /// An instance of this token is ending or has ended.
    Spent,
    /// The same again, after this time.
    Again(Duration),
}

impl Fleet<'_> {
    /// Creates an instance. A second call with the same name returns the same instance, whatever else has changed.
    ///
    /// # Errors
    /// That of the launch. A launch whose outcome is not known is found by the next call.
    pub(crate) async fn create(&self, new: &NewInstance) -> Result<ProviderInstance, Failure> {
        let token = self.controller.token(&new.name);
        if self.has_attempts() {
            // After an hour a cloud may have forgotten the first attempts, and not the instance of a later one.
            if let Some(found) = self.live_one(&new.name).await? {
                return self.answer(&found);
            }
        }
        let deadline = Instant::now() + MAX_WAIT;
        let mut attempt = NonZeroU32::MIN;
        loop {
            let token = token.attempt(attempt);
            let mut config = new.config.clone();
            config.launch_token = Some(token.clone());
            let error = match self.cloud.launch_instance(&config).await {
                Ok(info) => return self.answer(&info),
                Err(error) => error,
            };
            match self.after(&token, &error).await? {
                Next::Found(info) => return self.answer(&info),
                Next::Spent if self.has_attempts() && attempt.get() < MAX_ATTEMPTS => {
                    attempt = attempt.saturating_add(1);
                }
                // The token is free once the instance is gone.
                Next::Spent if !self.has_attempts() && Instant::now() < deadline => {
                    sleep(self.interval()).await;
                }
                Next::Again(delay) if Instant::now() < deadline => {
                    sleep(delay.max(self.interval())).await;
                }
                Next::Spent | Next::Again(_) => return Err(error.into()),
            }
        }
    }

    /// Decides what a failed launch means.
    async fn after(&self, token: &LaunchToken, error: &ProvisionError) -> Result<Next, Failure> {
        let is_taken = error.kind() == ErrorKind::TokenConflict;
        if error.kind() == ErrorKind::TokenSpent {
            return Ok(Next::Spent);
        }
        // The user data has a new instance token each time, so the second creation of a name is always another config.
        if !is_taken && error.effect() == Effect::None {
            return Err(error.clone().into());
        }
        match self.launched(token).await? {
            LaunchRecord::Found(infos) => match self.confirmed(infos).await? {
                Some(info) => Ok(Next::Found(Box::new(info))),
                None => Ok(Next::Spent),
            },
            LaunchRecord::Terminated(_) => Ok(Next::Spent),
            LaunchRecord::NotFound => match error.retry().delay() {
                Some(delay) if is_taken => Ok(Next::Again(delay)),
                // The instance that had the name has gone since, which frees the token.
                None if is_taken && !self.has_attempts() => Ok(Next::Again(Duration::ZERO)),
                Some(_) | None => Err(error.clone().into()),
            },
        }
    }

    /// Looks a launch up. A wrong "not found" costs only another call, so the usual lag is enough: GARM deletes the name after a failure.
    async fn launched(&self, token: &LaunchToken) -> Result<LaunchRecord, Failure> {
        let mut polls = Polls::new(self.cloud, self.cloud.capabilities().usual_lag());
        loop {
            let record = self.cloud.find_launch(token).await?;
            if record != LaunchRecord::NotFound || !polls.next().await {
                return Ok(record);
            }
        }
    }

    /// Finds the instance that a name has already.
    async fn live_one(&self, name: &InstanceName) -> Result<Option<InstanceInfo>, Failure> {
        let filter = self.controller.filter()?;
        let filter = filter.with_tag(key::NAME, name.as_str());
        let filter = filter.map_err(|invalid| Failure::new(invalid.to_string()))?;
        let mut found = self.cloud.list_instances(&filter).await?;
        found.retain(|info| self.controller.owns(info) && !info.state.is_ending());
        if found.len() > 1 {
            return Err(Self::several(name.as_str(), &found));
        }
        self.confirmed(found).await
    }

    /// Returns an instance that was found, if it still lives once reads can be trusted to show its end.
    async fn confirmed(&self, found: Vec<InstanceInfo>) -> Result<Option<InstanceInfo>, Failure> {
        let mut live = found.into_iter().filter(|info| !info.state.is_ending());
        let Some(mut info) = live.next() else {
            return Ok(None);
        };
        self.refuse_other_owner(&info)?;
        let mut polls = Polls::new(self.cloud, self.cloud.capabilities().usual_lag());
        loop {
            match self.cloud.describe_instance(&info.id).await {
                Ok(status) if status.state.is_ending() => return Ok(None),
                Ok(status) => {
                    info.state = status.state;
                    info.launch_failure = status.launch_failure;
                    info.state_reason = status.state_reason;
                    info.private_ip = status.private_ip.or(info.private_ip);
                    info.public_ip = status.public_ip;
                }
                // It was read a moment ago, so this is a stale read, or its end.
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    if !polls.next().await {
                        return Ok(None);
                    }
                    continue;
                }
                Err(error) => return Err(error.into()),
            }
            if !polls.next().await {
                return Ok(Some(info));
            }
        }
    }

    fn answer(&self, info: &InstanceInfo) -> Result<ProviderInstance, Failure> {
        ProviderInstance::of(info).ok_or_else(|| Self::no_name(info))
    }

    fn interval(&self) -> Duration {
        let interval = self.cloud.capabilities().poll_interval;
        interval.max(Duration::from_millis(1))
    }
}
