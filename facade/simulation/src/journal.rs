//! What is known of a run beside the world itself: which steps were made, what went wrong, and which rules were broken.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use chrono::{DateTime, Utc};
use fleetwright::InstanceId;
use fleetwright_chaos::SeededRng;
use fleetwright_compute::instance::{InstanceId as Instance, InstanceSpec};
use fleetwright_region::server::{Consent, ServerSpec};
use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};

use crate::fault::{Fault, Kind, Site};

/// How many steps of a run are kept for people.
const KEPT: usize = 60;

/// Shared by all that takes part in a run. It outlives the processes.
#[derive(Debug)]
pub struct Journal {
    faults: Vec<Fault>,
    inner: Mutex<Inner>,
    crash: Notify,
    began: Instant,
}

#[derive(Debug)]
struct Inner {
    dice: SeededRng,
    counts: BTreeMap<Site, u64>,
    hit: BTreeSet<(Site, Kind)>,
    crashed: bool,
    crashes: u64,
    violation: Option<String>,
    trace: Vec<String>,
    notes: Notes,
}

/// What the rules are checked against.
#[derive(Debug, Default)]
pub struct Notes {
    /// When the monitor's last list began that came to an end, and whether it had gaps.
    pub list: Option<(DateTime<Utc>, Complete)>,
    /// Whether the present look has a list at all.
    pub list_failed: bool,
    /// Machines that may be swept.
    pub orphans: BTreeSet<InstanceId>,
    /// Machines that nobody here may touch.
    pub foreign: BTreeSet<InstanceId>,
    /// How many of the next launches end before they boot.
    pub doomed: usize,
    /// How often a machine was destroyed from outside.
    pub destroyed: usize,
    /// When a call for a server last failed.
    pub failed: BTreeMap<String, DateTime<Utc>>,
    /// The update that a tenant is asking for now.
    pub asking: Option<Asking>,
    /// What each tenant agreed to lose for, by the last word there is.
    pub agreed: BTreeMap<Instance, ServerSpec>,
    /// All that was ever agreed to.
    pub agreed_ever: BTreeMap<Instance, Vec<ServerSpec>>,
    /// How often another machine was asked for, at the most.
    pub replaces: BTreeMap<Instance, u64>,
    /// Instances whose servers an operator has deleted.
    pub ordered: BTreeSet<Instance>,
}

/// An update as a tenant asks for it.
#[derive(Clone, Debug)]
pub struct Asking {
    /// Of which instance.
    pub id: Instance,
    /// What it is to be.
    pub spec: InstanceSpec,
    /// What may be lost for it.
    pub consent: Consent,
}

/// Whether a list had gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Complete {
    /// It had none.
    Yes,
    /// It had.
    No,
}

/// What a run came to.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// How many steps were made.
    pub steps: u64,
    /// How often a process died.
    pub crashes: u64,
    /// How many things went wrong in all.
    pub faults: u64,
    /// Which.
    pub hit: BTreeSet<(Site, Kind)>,
    /// The first rule that was broken.
    pub violation: Option<String>,
    /// The last steps.
    pub trace: Vec<String>,
}

impl Journal {
    /// Of a run with these faults.
    pub fn new(seed: u64, faults: &[Fault]) -> Self {
        Self {
            faults: faults.to_vec(),
            inner: Mutex::new(Inner {
                dice: SeededRng::for_purpose(seed, 2),
                counts: BTreeMap::new(),
                hit: BTreeSet::new(),
                crashed: false,
                crashes: 0,
                violation: None,
                trace: Vec::new(),
                notes: Notes::default(),
            }),
            crash: Notify::new(),
            began: Instant::now(),
        }
    }

    /// A step is about to be made: what goes wrong with it.
    pub fn strike(&self, site: Site) -> Option<Kind> {
        let mut inner = self.lock();
        let count = inner.counts.entry(site).or_default();
        *count += 1;
        let nth = *count;
        let mut faults = self.faults.iter();
        let found = faults.find(|fault| fault.site == site && fault.nth == nth);
        let kind = found.map(|fault| fault.kind);
        if let Some(kind) = kind {
            inner.hit.insert((site, kind));
        }
        let fault = kind.map_or_else(String::new, |kind| format!("  <- {kind:?}"));
        // Steady steps are told only where something goes wrong with them.
        if kind.is_some() || !is_steady(site) {
            inner.tell(self.began.elapsed(), &format!("{site:?} #{nth}{fault}"));
        }
        kind
    }

    /// Waits for a moment by chance, and for ever once the process is dead.
    pub async fn pause(&self, most: Duration) {
        let (delay, dead) = {
            let mut inner = self.lock();
            (inner.dice.up_to(most), inner.crashed)
        };
        if dead {
            std::future::pending::<()>().await;
        }
        if !delay.is_zero() {
            sleep(delay).await;
        }
        if self.lock().crashed {
            std::future::pending::<()>().await;
        }
    }

    /// The process dies here.
    pub async fn die(&self) {
        {
            let mut inner = self.lock();
            inner.crashed = true;
            inner.crashes += 1;
            inner.tell(self.began.elapsed(), "the process dies");
        }
        self.crash.notify_one();
        std::future::pending::<()>().await;
    }

    /// Waits until the process dies, or a rule is broken.
    pub async fn death(&self) {
        self.crash.notified().await;
    }

    /// A new process begins, after some time.
    pub fn revive(&self) -> Duration {
        let mut inner = self.lock();
        inner.crashed = false;
        // A failure that was not written down died with the process.
        inner.notes.failed.clear();
        // What a dead process was about to do is not done.
        inner.notes.list_failed = true;
        inner.notes.asking = None;
        inner.dice.up_to(Duration::from_secs(30))
    }

    /// A rule is broken.
    pub fn violated(&self, rule: impl Into<String>) {
        let mut inner = self.lock();
        let rule = rule.into();
        inner.tell(self.began.elapsed(), &format!("VIOLATION: {rule}"));
        if inner.violation.is_none() {
            inner.violation = Some(rule);
        }
        drop(inner);
        self.crash.notify_one();
    }

    /// Whether a rule is broken.
    pub fn is_violated(&self) -> bool {
        self.lock().violation.is_some()
    }

    /// Adds a line for people.
    pub fn tell(&self, line: &str) {
        self.lock().tell(self.began.elapsed(), line);
    }

    /// What the rules are checked against.
    pub fn notes<T>(&self, look: impl FnOnce(&mut Notes) -> T) -> T {
        look(&mut self.lock().notes)
    }

    /// What it all came to.
    pub fn outcome(&self) -> Outcome {
        let inner = self.lock();
        Outcome {
            steps: inner.counts.values().sum(),
            crashes: inner.crashes,
            faults: inner.hit.len() as u64,
            hit: inner.hit.clone(),
            violation: inner.violation.clone(),
            trace: inner.trace.clone(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Steps that are made all the time.
fn is_steady(site: Site) -> bool {
    use Site::{
        Beat, List, ReadInstances, ReadNetworks, ReadRegion, ReadService, WatchInstances,
        WatchNetworks, WatchRegion,
    };
    let steady = [
        List,
        Beat,
        ReadService,
        ReadInstances,
        ReadNetworks,
        ReadRegion,
        WatchInstances,
        WatchNetworks,
        WatchRegion,
    ];
    steady.contains(&site)
}

impl Inner {
    fn tell(&mut self, at: Duration, line: &str) {
        self.trace
            .push(format!("{:>9.3}s {line}", at.as_secs_f64()));
        let surplus = self.trace.len().saturating_sub(KEPT);
        self.trace.drain(..surplus);
    }
}
