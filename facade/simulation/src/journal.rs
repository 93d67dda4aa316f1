//! The journal of a run: which steps ran, which faults were injected, and which rule was broken
//! first.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use chrono::{DateTime, Utc};
use fleetwright::InstanceId;
use fleetwright_chaos::SeededRng;
use fleetwright_compute::instance::{InstanceId as Instance, InstanceSpec};
use fleetwright_region::{
    ids::NetworkId,
    server::{Consent, ServerId, ServerSpec},
};
use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};

use crate::{
    fault::{Fault, FaultKind, FaultPoint},
    life::Life,
};

/// How many lines of a run's log are kept.
const LOG_LINES: usize = 60;

/// Shared by all parts of a run. It outlives the processes.
#[derive(Debug)]
pub struct Journal {
    faults: Vec<Fault>,
    inner: Mutex<Inner>,
    violated: Notify,
    started: Instant,
}

#[derive(Debug)]
struct Inner {
    rng: SeededRng,
    counts: BTreeMap<FaultPoint, u64>,
    occurred: BTreeSet<(FaultPoint, FaultKind)>,
    crashes: u64,
    violation: Option<String>,
    trace: VecDeque<(Duration, Line)>,
    facts: Facts,
}

/// A line of the log. A step is formatted only if the line is printed.
#[derive(Debug)]
enum Line {
    Step(FaultPoint, u64, Option<FaultKind>),
    Text(String),
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Step(point, nth, None) => write!(f, "{point:?} #{nth}"),
            Self::Step(point, nth, Some(kind)) => write!(f, "{point:?} #{nth}  <- {kind:?}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// Facts that the rules need and that are in no record.
#[derive(Debug, Default)]
pub struct Facts {
    /// What the rules know of each process, by its number.
    pub processes: BTreeMap<usize, ProcessFacts>,
    /// Machines that the monitor may terminate.
    pub orphans: BTreeSet<InstanceId>,
    /// Machines that no part of the façade may touch.
    pub foreign: BTreeSet<InstanceId>,
    /// How many of the next launches fail before they boot.
    pub failing_boots: usize,
    /// How often an external actor terminated a machine.
    pub external_terminations: usize,
    /// Whether the second zone is unreachable.
    pub disconnected: bool,
    /// The names of images at the cloud whose record was removed without a native id.
    pub lost_images: BTreeSet<String>,
    /// Whether the capacity of the cloud is limited.
    pub limited: bool,
    /// Native networks that an operator deleted at the cloud.
    pub deleted_subnets: BTreeSet<String>,
    /// Instance types that the cloud withdrew.
    pub withdrawn: BTreeSet<&'static str>,
    /// Servers for which the cloud failed a resize, a reimage or a launch, and instances that requested what it refuses.
    pub failed_changes: BTreeSet<ServerId>,
    /// The process whose failed call set the delay in the record of each server.
    pub delayed_by: BTreeMap<ServerId, usize>,
    /// Whether a clock was ever set.
    pub clocks_were_set: bool,
    /// When a clock was last set or corrected.
    pub clock_set_at: Option<DateTime<Utc>>,
    /// The update that a tenant is requesting now.
    pub pending_update: Option<PendingUpdate>,
    /// The server spec that each tenant's last update consented to.
    pub last_consent: BTreeMap<Instance, ServerSpec>,
    /// Every server spec that was ever consented to.
    pub consents: BTreeMap<Instance, Vec<ServerSpec>>,
    /// How many replacements were requested at most.
    pub requested_replacements: BTreeMap<Instance, u64>,
    /// Instances whose deletion a tenant requested.
    pub requested_deletions: BTreeSet<Instance>,
    /// Networks whose deletion, with their instances, a tenant requested.
    pub deleted_networks: BTreeSet<NetworkId>,
    /// Instances whose server an operator deleted.
    pub deleted_by_operator: BTreeSet<Instance>,
}

impl Facts {
    /// Returns how many machines may have failed to boot: those that others terminated, and one whose boot seemed to take too long when a
    /// clock was set forward.
    pub fn failed_boots(&self) -> usize {
        self.external_terminations + usize::from(self.clocks_were_set)
    }

    /// Returns whether a machine belongs to somebody else, or to no server.
    pub fn is_of_others(&self, machine: &InstanceId) -> bool {
        self.foreign.contains(machine) || self.orphans.contains(machine)
    }
}

/// Facts about one process.
#[derive(Debug, Default)]
pub struct ProcessFacts {
    /// When the monitor's last successful list began, and whether it was complete.
    pub list: Option<(DateTime<Utc>, Complete)>,
    /// When the list of the last recorded scan began.
    pub recorded_list: Option<DateTime<Utc>>,
    /// When the last successful description of machines between two scans began.
    pub description: Option<DateTime<Utc>>,
    /// Whether the current scan has no list.
    pub list_failed: bool,
    /// When a call for a server last failed, and for which generation.
    pub last_failure: BTreeMap<ServerId, (DateTime<Utc>, u64)>,
}

/// An update as a tenant requests it.
#[derive(Clone, Debug)]
pub struct PendingUpdate {
    /// The instance.
    pub id: Instance,
    /// The requested spec.
    pub spec: InstanceSpec,
    /// The consent that comes with it.
    pub consent: Consent,
}

/// Whether a list was complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Complete {
    /// It had no gaps.
    Yes,
    /// It had gaps.
    No,
}

/// The result of a run.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Steps: store and cloud calls of all processes.
    pub steps: u64,
    /// Crashes of a process.
    pub crashes: u64,
    /// The pairs of fault point and fault kind that occurred.
    pub occurred: BTreeSet<(FaultPoint, FaultKind)>,
    /// The first rule that was broken, if any.
    pub violation: Option<String>,
    /// The last lines of the log.
    pub trace: Vec<String>,
}

impl Journal {
    /// Creates the journal of a run with these faults.
    pub fn new(seed: u64, faults: &[Fault]) -> Self {
        Self {
            faults: faults.to_vec(),
            inner: Mutex::new(Inner {
                rng: SeededRng::for_purpose(seed, 2),
                counts: BTreeMap::new(),
                occurred: BTreeSet::new(),
                crashes: 0,
                violation: None,
                trace: VecDeque::new(),
                facts: Facts::default(),
            }),
            violated: Notify::new(),
            started: Instant::now(),
        }
    }

    /// Counts a step that is about to run and returns the fault to inject, if any.
    pub fn next_fault(&self, point: FaultPoint) -> Option<FaultKind> {
        let mut inner = self.lock();
        let count = inner.counts.entry(point).or_default();
        *count += 1;
        let nth = *count;
        let mut faults = self.faults.iter();
        let found = faults.find(|fault| fault.point == point && fault.nth == nth);
        let kind = found.map(|fault| fault.kind);
        if let Some(kind) = kind {
            inner.occurred.insert((point, kind));
        }
        // Background steps are logged only with a fault.
        if kind.is_some() || !is_background(point) {
            inner.log(self.started.elapsed(), Line::Step(point, nth, kind));
        }
        kind
    }

    /// Waits for a random time up to `most`, or forever once the process has crashed.
    pub async fn pause(&self, life: &Life, most: Duration) {
        life.wait_if_over().await;
        let delay = self.lock().rng.up_to(most);
        if !delay.is_zero() {
            sleep(delay).await;
        }
        life.wait_if_over().await;
    }

    /// Crashes a process: the caller never continues.
    pub async fn crash(&self, life: &Life) {
        {
            let mut inner = self.lock();
            inner.crashes += 1;
            let line = match life.number {
                0 => "the process crashes".to_owned(),
                number => format!("process {number} crashes"),
            };
            inner.log(self.started.elapsed(), Line::Text(line));
        }
        life.end();
        std::future::pending::<()>().await;
    }

    /// Waits until a rule is broken.
    pub async fn wait_for_violation(&self) {
        self.violated.notified().await;
    }

    /// Prepares for a new process in place of one that ended, and returns how long to wait before it
    /// starts.
    pub fn restart(&self, number: usize) -> Duration {
        let mut inner = self.lock();
        // A failure that was not stored is unknown to the next process, and nothing that the crashed
        // process had begun continues. Its last list stays known: it is how old the scan record is.
        let facts = inner.facts.processes.entry(number).or_default();
        facts.last_failure.clear();
        facts.list_failed = true;
        inner.rng.up_to(Duration::from_secs(30))
    }

    /// Reports a broken rule. The first one is the run's result.
    pub fn report_violation(&self, rule: impl Into<String>) {
        let mut inner = self.lock();
        let rule = rule.into();
        let line = Line::Text(format!("VIOLATION: {rule}"));
        inner.log(self.started.elapsed(), line);
        if inner.violation.is_none() {
            inner.violation = Some(rule);
        }
        drop(inner);
        self.violated.notify_one();
    }

    /// Returns whether a rule was broken.
    pub fn has_violation(&self) -> bool {
        self.lock().violation.is_some()
    }

    /// Adds a line to the log.
    pub fn log(&self, line: impl Into<String>) {
        let line = Line::Text(line.into());
        self.lock().log(self.started.elapsed(), line);
    }

    /// Facts that the rules need and that are in no record.
    pub fn facts<T>(&self, access: impl FnOnce(&mut Facts) -> T) -> T {
        access(&mut self.lock().facts)
    }

    /// Facts about one process.
    pub fn process<T>(&self, number: usize, access: impl FnOnce(&mut ProcessFacts) -> T) -> T {
        access(self.lock().facts.processes.entry(number).or_default())
    }

    /// Returns the result of the run.
    pub fn outcome(&self) -> Outcome {
        let inner = self.lock();
        Outcome {
            steps: inner.counts.values().sum(),
            crashes: inner.crashes,
            occurred: inner.occurred.clone(),
            violation: inner.violation.clone(),
            trace: inner.lines(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a step runs all the time in the background.
fn is_background(point: FaultPoint) -> bool {
    use FaultPoint::{
        List, OpenWatch, ReadCatalog, ReadInstances, ReadMapping, ReadNetworks, ReadOperator,
        ReadRegion, ReadService, WatchCatalog, WatchInstances, WatchNetworks, WatchRegion,
        WriteScan,
    };
    let steady = [
        List,
        WriteScan,
        ReadService,
        ReadInstances,
        ReadNetworks,
        ReadRegion,
        WatchInstances,
        WatchNetworks,
        WatchRegion,
        ReadCatalog,
        WatchCatalog,
        ReadOperator,
        OpenWatch,
        ReadMapping,
    ];
    steady.contains(&point)
}

impl Inner {
    fn log(&mut self, at: Duration, line: Line) {
        if self.trace.len() == LOG_LINES {
            self.trace.pop_front();
        }
        self.trace.push_back((at, line));
    }

    fn lines(&self) -> Vec<String> {
        let lines = self.trace.iter();
        lines
            .map(|(at, line)| format!("{:>9.3}s {line}", at.as_secs_f64()))
            .collect()
    }
}
