//! One token in two zones at the same moment.
//!
//! Owns the decision which of two launches keeps its instances. Names are unique in a zone only, and the
//! lookup before the insert cannot see an instance that another handle creates in another zone after it.
//! Therefore a launch with a token reads the other zones again after its insert, if several zones are configured, until
//! the read shows what the launch has created itself, for the usual lag of reads: such a read also shows what is older.
//!
//! 1. No instance of the token is in another zone: the launch keeps its own.
//! 2. One is there that was created earlier, or at the same moment in a zone that sorts first: this launch
//!    deletes the instances that *it* has created, and fails with a conflict.
//! 3. Otherwise the other launch will see this one and give way. If it has not done so within the consistency
//!    window, and at least [`TWIN_TIMEOUT`], because its process died, this launch gives way.
//!
//! A launch must never delete an instance that it did not create. If the second read stays stale or fails,
//! both instances remain: both are found by their token, and each replay returns the same one.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use fleetwright::{Effect, InstanceInfo, LaunchToken, ProvisionError, Result, RetryAdvice};
use fleetwright_provider_support::launch::{Attempt, LaunchCalls as _};
use google_cloud_compute_v1::model::{Instance, Operation as NativeOperation};
use tokio::time::{Instant, sleep};

use crate::{
    address::{self, Address, last_part},
    convert, history,
    launch::GcpLaunch,
    operations::Outcome,
};

/// How long another launch gets to give way, at least.
const TWIN_TIMEOUT: Duration = Duration::from_secs(5);

/// How far the clocks of two zones may differ.
const SKEW: TimeDelta = TimeDelta::seconds(1);

impl GcpLaunch<'_> {
    /// Gives way to an instance of the token in another zone. Returns the error of this launch, or
    /// `None` if it keeps what it has created.
    pub(crate) async fn yield_to_twin(
        &self,
        attempts: &[Attempt<InstanceInfo, NativeOperation>],
    ) -> Option<ProvisionError> {
        let token = self.context.token?;
        let created = attempts.iter().filter_map(|attempt| match attempt {
            Attempt::Accepted { creation, .. } => Some(creation),
            Attempt::Existing { .. } => None,
        });
        let created: Vec<_> = created.collect();
        let since = created
            .first()?
            .insert_time
            .as_deref()
            .and_then(history::time);
        if self.gcp.launch.zones.len() < 2 {
            return None;
        }
        let timeout = self.gcp.capabilities.consistency_window.max(TWIN_TIMEOUT);
        let began = Instant::now();
        loop {
            // Without the second read, both may remain. The launch itself has succeeded.
            let (twins, shows_own) = self.read_twins(token, &created).await.ok()?;
            let first = twins.iter().find(|twin| self.is_first(twin, since));
            let late = began.elapsed() >= timeout;
            if let Some(twin) = first.or_else(|| twins.first().filter(|_| late)) {
                return Some(self.withdraw(token, twin, &created).await);
            }
            if twins.is_empty() && (shows_own || self.is_read_enough(began, &created).await) {
                return None;
            }
            sleep(self.gcp.capabilities.poll_interval).await;
        }
    }

    /// Whether no further read is useful, although none shows what this launch has created: the usual lag has
    /// passed, or the insert has failed.
    async fn is_read_enough(&self, began: Instant, created: &[&NativeOperation]) -> bool {
        if began.elapsed() >= self.gcp.capabilities.usual_lag() {
            return true;
        }
        let Some(name) = created.first().and_then(|insert| insert.name.as_deref()) else {
            return true;
        };
        let outcome = self.gcp.read_outcome(self.plan.zone.as_str(), name).await;
        !matches!(outcome, Ok(Outcome::Running | Outcome::Succeeded))
    }

    /// Reads the instances of the token in other zones that are not being removed, and whether the read shows
    /// an instance that this launch has created.
    async fn read_twins(
        &self,
        token: &LaunchToken,
        created: &[&NativeOperation],
    ) -> Result<(Vec<Instance>, bool)> {
        let pattern = address::pattern_of(token);
        let natives = self.gcp.list_token_instances(self.context.call, &pattern);
        let mut natives = natives.await?;
        let is_own = |native: &Instance| {
            let mut targets = created.iter().filter_map(|insert| insert.target_id);
            targets.any(|target| native.id == Some(target))
        };
        let shows_own = natives.iter().any(is_own);
        natives.retain(|native| {
            let state = native.status.as_ref().and_then(|status| status.name());
            convert::owner(native) == self.context.owner
                && zone(native) != self.plan.zone.as_str()
                && state != Some("STOPPING")
        });
        Ok((natives, shows_own))
    }

    /// Whether an instance in another zone came before this launch, which began at `since`.
    fn is_first(&self, twin: &Instance, since: Option<DateTime<Utc>>) -> bool {
        let created = twin.creation_timestamp.as_deref().and_then(history::time);
        let sorts_first = zone(twin) < self.plan.zone.as_str();
        match created.zip(since) {
            Some((created, since)) if (created - since).abs() > SKEW => created < since,
            Some(_) | None => sorts_first,
        }
    }

    /// Deletes what this launch has created, and returns its error.
    async fn withdraw(
        &self,
        token: &LaunchToken,
        twin: &Instance,
        created: &[&NativeOperation],
    ) -> ProvisionError {
        let call = self.context.call;
        let mut complete = true;
        for operation in created {
            let at = convert::operation_target(self.gcp.client.project(), operation);
            complete &= match at {
                Some(at) => self.delete_own(&at).await,
                None => false,
            };
        }
        let error = if self.marks(twin).fingerprint == Some(self.context.fingerprint) {
            let message = format!(
                "another launch of the same token has created its instance in zone {}; retry to get it",
                zone(twin)
            );
            let retry = RetryAdvice::After(self.gcp.capabilities.poll_interval);
            call.conflict(&message, retry)
        } else {
            call.token_conflict(token)
        };
        if complete {
            error
        } else {
            error.with_effect(Effect::Unknown)
        }
    }

    /// Deletes an instance that this launch has created. A delete can be refused while the insert runs, so it is
    /// repeated for [`TWIN_TIMEOUT`]. Returns whether Compute Engine accepted it.
    async fn delete_own(&self, at: &Address) -> bool {
        let began = Instant::now();
        loop {
            if let Ok(operation) = self.gcp.client.delete(at).await {
                self.gcp.memory.record_delete(&operation);
                return true;
            }
            if began.elapsed() >= TWIN_TIMEOUT {
                return false;
            }
            sleep(self.gcp.capabilities.poll_interval).await;
        }
    }
}

/// Returns the zone of an instance.
fn zone(native: &Instance) -> &str {
    native.zone.as_deref().map(last_part).unwrap_or_default()
}
