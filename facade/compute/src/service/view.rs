//! What an instance is to its tenant: a pure projection of its record, the region's pulse, its server's patience and the date.

use chrono::{DateTime, Utc};
use fleetwright_region::{
    ids::RegionId,
    monitor::RegionScan,
    server::{Health, Phase, Retry},
};
use fleetwright_runtime::clock::between;
use fleetwright_store::{Revision, Versioned};

use super::Instances;
use crate::{
    ComputeError,
    instance::{EventKind, Instance, Provisioning},
};

/// An instance as it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InstanceView {
    /// The record. Its user data is not shown by `Debug`.
    pub instance: Instance,
    /// The commit that wrote it last: what an update may ask to be made against.
    pub revision: Revision,
    /// How far it is.
    pub provisioning: Provisioning,
    /// How it fares. Unknown if the region was not looked at within two ticks of its monitor.
    pub health: Health,
    /// When its machine was last looked at.
    pub observed_at: Option<DateTime<Utc>>,
    /// What it is waiting for, if it is not what it is asked to be.
    pub waiting: Option<Waiting>,
}

/// What an instance is waiting for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waiting {
    /// What, in one line.
    pub what: String,
    /// Since when.
    pub since: DateTime<Utc>,
    /// What was done last to bring it about, if anything was.
    pub last_attempt: Option<LastAttempt>,
    /// When the next try is, as far as one is dated. It is not told in lists.
    pub next_attempt: Option<DateTime<Utc>>,
}

/// Something that was done for an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LastAttempt {
    /// When.
    pub at: DateTime<Utc>,
    /// What, and what came of it.
    pub what: String,
    /// How many calls of the cloud failed in a row. It is not told in lists.
    pub failures: Option<u32>,
}

impl InstanceView {
    /// A record as it is seen at `now`, with what the last look at its region came to.
    pub fn new(found: Versioned<Instance>, pulse: Option<&RegionScan>, now: DateTime<Utc>) -> Self {
        let instance = found.value;
        let observed_at = observed_at(&instance, pulse);
        Self {
            provisioning: instance.provisioning(),
            health: health(&instance, observed_at, pulse, now),
            observed_at,
            waiting: waiting(&instance),
            revision: found.revision,
            instance,
        }
    }

    /// The same with what its server knows of failed calls.
    #[must_use]
    fn with_retry(mut self, retry: Option<&Retry>) -> Self {
        let (Some(waiting), Some(retry)) = (&mut self.waiting, retry) else {
            return self;
        };
        waiting.next_attempt = Some(retry.not_before);
        if let Some(attempt) = &mut waiting.last_attempt {
            attempt.failures = Some(retry.failures);
        }
        self
    }
}

/// By the look that saw a change, or by a later one that saw none.
fn observed_at(instance: &Instance, pulse: Option<&RegionScan>) -> Option<DateTime<Utc>> {
    let seen = instance.status.observed_at?;
    Some(pulse.map_or(seen, |pulse| pulse.at.max(seen)))
}

fn health(
    instance: &Instance,
    observed_at: Option<DateTime<Utc>>,
    pulse: Option<&RegionScan>,
    now: DateTime<Utc>,
) -> Health {
    match instance.status.phase {
        // Known from what was done, whenever the machine was looked at.
        Phase::Failed | Phase::Lost => Health::Error,
        Phase::Pending | Phase::Building | Phase::Replacing | Phase::Deleting => Health::Unknown,
        Phase::Running | Phase::Stopping | Phase::Stopped => match (observed_at, pulse) {
            (Some(at), Some(pulse)) if between(at, now) <= pulse.tick * 2 => instance.status.health,
            (Some(_) | None, Some(_) | None) => Health::Unknown,
        },
    }
}

fn waiting(instance: &Instance) -> Option<Waiting> {
    let (what, since) = reason(instance)?;
    Some(Waiting {
        last_attempt: last_attempt(instance),
        next_attempt: None,
        what,
        since,
    })
}

/// The first that holds: what needs somebody's word, what is in the way, what is being done, what was asked last.
fn reason(instance: &Instance) -> Option<(String, DateTime<Utc>)> {
    let status = &instance.status;
    let conditions = || status.conditions.iter();
    let stuck = conditions().find(|condition| condition.kind.needs_decision());
    if let Some(condition) = stuck.or_else(|| conditions().next()) {
        return Some((condition.message.clone(), condition.since));
    }
    if let Some(deletion) = &instance.deletion {
        return Some(("the deletion of its server".to_owned(), deletion.at));
    }
    if let Some(pending) = &status.pending {
        return Some((pending.reason.clone(), pending.since));
    }
    if status.observed_generation == instance.generation {
        return None;
    }
    let asked = |kind: EventKind| match kind {
        EventKind::Created | EventKind::Updated | EventKind::Requested => true,
        EventKind::LossAccepted
        | EventKind::DeletionRequested
        | EventKind::Accessed
        | EventKind::ServerCreated
        | EventKind::Applied
        | EventKind::Phase
        | EventKind::Problem
        | EventKind::Completed => false,
    };
    let last = instance.events.iter().rfind(|event| asked(event.kind));
    let since = last.map_or(instance.created_at, |event| event.at);
    let what = if status.server.is_none() {
        "the creation of its server"
    } else if status.applied_generation < instance.generation {
        "the requested change to be applied"
    } else {
        "its machine to reach the requested state"
    };
    Some((what.to_owned(), since))
}

/// What the controller did last.
fn last_attempt(instance: &Instance) -> Option<LastAttempt> {
    let done = |kind: EventKind| match kind {
        EventKind::ServerCreated | EventKind::Applied | EventKind::Phase | EventKind::Problem => {
            true
        }
        EventKind::Created
        | EventKind::Updated
        | EventKind::Requested
        | EventKind::LossAccepted
        | EventKind::DeletionRequested
        | EventKind::Accessed
        | EventKind::Completed => false,
    };
    let last = instance.events.iter().rfind(|event| done(event.kind))?;
    Some(LastAttempt {
        at: last.at,
        what: last.message.clone(),
        failures: None,
    })
}

impl Instances {
    /// A record as its tenant sees it now.
    pub(super) async fn seen(
        &self,
        found: Versioned<Instance>,
    ) -> Result<InstanceView, ComputeError> {
        let pulse = self.pulse(&found.value.region).await?;
        let view = InstanceView::new(found, pulse.as_ref(), self.clock.now());
        if view.waiting.is_none() {
            return Ok(view);
        }
        let server = self.server_of(&view.instance).await?;
        let retry = server.and_then(|view| view.server.retry);
        Ok(view.with_retry(retry.as_ref()))
    }

    /// The same of a record that was just written: what was done is not told as a failure because something else cannot be read.
    pub(super) async fn view_after_write(&self, written: Versioned<Instance>) -> InstanceView {
        match self.seen(written.clone()).await {
            Ok(view) => view,
            Err(_) => InstanceView::new(written, None, self.clock.now()),
        }
    }

    pub(super) async fn pulse(
        &self,
        region: &RegionId,
    ) -> Result<Option<RegionScan>, ComputeError> {
        Ok(self.servers.region_scan(region).await?)
    }
}
