//! An instance as its tenant sees it: a pure projection of its record, the region's last scan, its server's retry state and the date.

use chrono::{DateTime, Utc};
use fleetwright_region::{
    ids::RegionId,
    monitor::RegionScan,
    server::{Health, Phase, Retry, is_from_the_future},
};
use fleetwright_runtime::clock::between;
use fleetwright_store::{Revision, StoreError, Versioned};

use super::Instances;
use crate::{
    ComputeError,
    instance::{EventKind, Instance, Provisioning},
    schema::INSTANCE_USER_DATA,
};

/// What an instance waits for if a newer version of this program wrote its record or that of its machine.
const LEFT_ALONE: &str = "a newer version of this program changed its records, and this version leaves it alone: it continues where the newer version runs, or once this one is upgraded";

/// An instance as a caller reads it.
///
/// ```
/// use fleetwright_compute::prelude::*;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use fleetwright_facade_testkit::{TestFacade, project_user, tenant};
/// # let facade = TestFacade::new().await;
/// # let (ada, network) = (project_user(tenant(1, 1)), facade.network("blue").await);
/// # let id = facade.create(network, "web-1").await.instance.id;
/// let view = facade.instances.read(&ada, id).await?;
/// match (view.provisioning, view.waiting) {
///     (Provisioning::Provisioned, _) => println!("{:?}", view.instance.status.public_ip),
///     (progress, Some(waiting)) => println!("{progress:?} since {}: {}", waiting.since, waiting.what),
///     (progress, None) => println!("{progress:?}"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InstanceView {
    /// The record. Its user data is not shown by `Debug`.
    pub instance: Instance,
    /// The commit that last wrote the record. Pass it as [`if_revision`](super::UpdateInstance::if_revision) to update only what was read.
    pub revision: Revision,
    /// Its progress.
    pub provisioning: Provisioning,
    /// Its health. Unknown if its region was not scanned within two intervals of the monitor.
    pub health: Health,
    /// When its machine was last observed.
    pub observed_at: Option<DateTime<Utc>>,
    /// What it waits for, or `None` if the desired state is applied. An instance of a newer version always waits, for that version.
    pub waiting: Option<Waiting>,
    /// The places of the record, as JSON pointers, that cannot be shown: what [`instance`](Self::instance) has there is not what is stored.
    /// Either a newer version of this program wrote them, and only that one can change the instance; or it is the user data, and its
    /// [key is missing](crate::instance::InstanceSpec::sealed_user_data).
    pub unknown: Vec<String>,
}

/// What an instance waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waiting {
    /// The reason: a sentence in one line.
    pub what: String,
    /// The time since which it holds.
    pub since: DateTime<Utc>,
    /// The last step that was taken for it, if any.
    pub last_attempt: Option<LastAttempt>,
    /// When the next attempt is made, if that is known. Lists do not have it.
    pub next_attempt: Option<DateTime<Utc>>,
}

/// A step that was taken for an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LastAttempt {
    /// The time.
    pub at: DateTime<Utc>,
    /// The step and its result, in one line.
    pub what: String,
    /// How many calls to the cloud failed in a row. Lists do not have it.
    pub failures: Option<u32>,
}

impl InstanceView {
    /// Projects a record at `now`, with the last scan of its region.
    pub fn new(found: Versioned<Instance>, scan: Option<&RegionScan>, now: DateTime<Utc>) -> Self {
        let instance = found.value;
        let observed_at = observed_at(&instance, scan, now);
        let sealed = instance.spec.sealed_user_data.as_ref();
        let unknown = sealed.map(|_| INSTANCE_USER_DATA.pointer.to_owned());
        Self {
            provisioning: instance.provisioning(),
            health: health(&instance, observed_at, scan, now),
            observed_at,
            waiting: waiting(&instance),
            revision: found.revision,
            unknown: unknown.into_iter().collect(),
            instance,
        }
    }

    /// Names the places that this version does not understand, and says why nothing happens here.
    #[must_use]
    pub(super) fn with_unknown(mut self, unknown: Vec<String>) -> Self {
        if !unknown.is_empty() {
            self.unknown.extend(unknown);
            self.set_left_alone();
        }
        self
    }

    /// Says that this version does nothing for the instance. It is computed and not stored: a condition in the record would be written by
    /// this version and removed by the newer one, again and again.
    fn set_left_alone(&mut self) {
        let instance = &self.instance;
        let modified = instance.modified.as_ref().map(|change| change.at);
        let since = instance.events.last().map(|event| event.at).or(modified);
        let waiting = self.waiting.get_or_insert_with(|| Waiting {
            what: String::new(),
            since: since.unwrap_or(instance.created_at),
            last_attempt: last_attempt(instance),
            next_attempt: None,
        });
        LEFT_ALONE.clone_into(&mut waiting.what);
    }

    /// Adds the retry state of its server.
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

/// The date of the scan that observed the last change, or of a later one that observed none. A date from before a clock was set back is
/// not counted.
fn observed_at(
    instance: &Instance,
    scan: Option<&RegionScan>,
    now: DateTime<Utc>,
) -> Option<DateTime<Utc>> {
    let known = |at: &DateTime<Utc>| !is_from_the_future(*at, now);
    let changed = instance.status.observed_at.filter(known)?;
    let confirmed = scan.map(|scan| scan.at).filter(known);
    Some(confirmed.map_or(changed, |at| at.max(changed)))
}

fn health(
    instance: &Instance,
    observed_at: Option<DateTime<Utc>>,
    scan: Option<&RegionScan>,
    now: DateTime<Utc>,
) -> Health {
    match instance.status.phase {
        // Known from the records, however old the observation is.
        Phase::Failed | Phase::Lost => Health::Error,
        Phase::Pending | Phase::Building | Phase::Replacing | Phase::Deleting => Health::Unknown,
        Phase::Running | Phase::Stopping | Phase::Stopped => match (observed_at, scan) {
            (Some(at), Some(scan)) if between(at, now) <= scan.tick * 2 => instance.status.health,
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

/// The first that applies: a condition that needs a decision, another condition, the deletion, the pending change, the last request.
fn reason(instance: &Instance) -> Option<(String, DateTime<Utc>)> {
    let status = &instance.status;
    let conditions = || status.conditions.iter();
    let stuck = conditions().find(|condition| condition.kind.needs_decision());
    if let Some(condition) = stuck.or_else(|| conditions().next()) {
        return Some((condition.message.clone(), condition.since));
    }
    if let Some(deletion) = &instance.deletion {
        return Some(("its deletion is not complete yet".to_owned(), deletion.at));
    }
    if let Some(pending) = &status.pending {
        return Some((pending.reason.clone(), pending.since));
    }
    if status.observed_generation == instance.generation {
        return None;
    }
    let is_request = |kind: EventKind| match kind {
        // A replacement, and an update with consent, is an accepted loss.
        EventKind::Created
        | EventKind::Updated
        | EventKind::Requested
        | EventKind::LossAccepted => true,
        EventKind::DeletionRequested
        | EventKind::Accessed
        | EventKind::Accepted
        | EventKind::Applied
        | EventKind::Phase
        | EventKind::Problem
        | EventKind::Completed => false,
    };
    let last = instance.events.iter().rfind(|event| is_request(event.kind));
    // The event may have been dropped since, as many later ones are kept.
    let modified = instance.modified.as_ref().map(|change| change.at);
    let since = last.map(|event| event.at).or(modified);
    let since = since.unwrap_or(instance.created_at);
    let what = if status.server.is_none() {
        "its launch is being prepared"
    } else if status.applied_generation < instance.generation {
        "the requested change is not applied yet"
    } else {
        "its machine has not reached the requested state yet"
    };
    Some((what.to_owned(), since))
}

/// The last step of the controller.
fn last_attempt(instance: &Instance) -> Option<LastAttempt> {
    let is_step = |kind: EventKind| match kind {
        EventKind::Accepted | EventKind::Applied | EventKind::Phase | EventKind::Problem => true,
        EventKind::Created
        | EventKind::Updated
        | EventKind::Requested
        | EventKind::LossAccepted
        | EventKind::DeletionRequested
        | EventKind::Accessed
        | EventKind::Completed => false,
    };
    let last = instance.events.iter().rfind(|event| is_step(event.kind))?;
    Some(LastAttempt {
        at: last.at,
        what: last.message.clone(),
        failures: None,
    })
}

impl Instances {
    /// Projects a record now, with the retry state of its server if it waits for something.
    pub(super) async fn view(
        &self,
        found: Versioned<Instance>,
    ) -> Result<InstanceView, ComputeError> {
        let scan = self.region_scan(&found.value.region).await?;
        let mut view = InstanceView::new(found, scan.as_ref(), self.clock.now());
        if view.waiting.is_none() {
            return Ok(view);
        }
        let server = match self.server_of(&view.instance).await {
            Err(ComputeError::Store(StoreError::Incompatible { .. })) => {
                view.set_left_alone();
                return Ok(view);
            }
            server => server?,
        };
        let retry = server.and_then(|view| view.server.retry);
        Ok(view.with_retry(retry.as_ref()))
    }

    /// Projects a record that was just written. A successful write is not reported as failed because another record cannot be read.
    pub(super) async fn view_after_write(&self, written: Versioned<Instance>) -> InstanceView {
        match self.view(written.clone()).await {
            Ok(view) => view,
            Err(_) => InstanceView::new(written, None, self.clock.now()),
        }
    }

    pub(super) async fn region_scan(
        &self,
        region: &RegionId,
    ) -> Result<Option<RegionScan>, ComputeError> {
        Ok(self.servers.region_scan(region).await?)
    }
}
