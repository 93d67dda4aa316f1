//! Scenarios: the requests, external actions and faults that a seed stands for.

mod disruption;
mod op;
mod target;

use std::{fmt, time::Duration};

use fleetwright::OptionalVerb;
use fleetwright_chaos::SeededRng;

pub use disruption::Disruption;
pub use op::{Change, Op, UpdateMode};

use crate::{
    constants::FIRST_SLOTS,
    fault::{self, Fault, FaultKind, FaultPoint},
};

/// A scenario.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The seed of all randomness.
    pub seed: u64,
    /// The operations, each with the delay after the one before.
    pub ops: Vec<(Duration, Op)>,
    /// The injected faults.
    pub faults: Vec<Fault>,
    /// What people do wrong in it.
    pub disruptions: Vec<Disruption>,
    /// How many processes run at once.
    pub processes: usize,
    /// The cloud's read lag.
    pub read_lag: Duration,
    /// The latency of a cloud call.
    pub latency: Duration,
    /// How long the cloud shows terminated machines.
    pub terminated_visible: Duration,
    /// Optional verbs that the cloud does not support.
    pub unsupported: Vec<OptionalVerb>,
    /// How the processes store user data.
    pub user_data: UserDataAtRest,
}

/// How the processes store user data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserDataAtRest {
    /// Sealed, as a service does.
    Sealed,
    /// In clear, as an installation from before user data was sealed did.
    Clear,
}

impl Scenario {
    /// Creates the scenario of a seed, with the default disruptions.
    pub fn from_seed(seed: u64) -> Self {
        Self::with_disruptions(seed, Disruption::DEFAULT)
    }

    /// Creates the scenario of a seed with some of these disruptions.
    pub fn with_disruptions(seed: u64, enabled: &[Disruption]) -> Self {
        let mut rng = SeededRng::for_purpose(seed, 1);
        let (point, kind) = fault::pair(seed);
        let mut ops = Vec::new();
        let mut push = |rng: &mut SeededRng, (after, op): target::TimedOp| {
            let delay = op::random_delay(rng);
            ops.push((after.unwrap_or(delay), op));
        };
        for op in target::setup_ops(point) {
            push(&mut rng, op);
        }
        for slot in 0..FIRST_SLOTS {
            push(&mut rng, (None, Op::Create(slot)));
        }
        // The target operations come first or after one random operation.
        if pick(&mut rng, 3) == 0 {
            let between = op::random_op(&mut rng);
            push(&mut rng, (None, between));
        }
        for op in target::target_ops(point) {
            push(&mut rng, op);
        }
        for _ in 0..2 + pick(&mut rng, 6) {
            let op = op::random_op(&mut rng);
            push(&mut rng, (None, op));
        }
        if pick(&mut rng, 3) > 0 {
            push(&mut rng, (None, Op::Recover));
            let slot = pick(&mut rng, FIRST_SLOTS);
            push(&mut rng, (None, Op::Delete(slot)));
        }
        let mut people = SeededRng::for_purpose(seed, 5);
        let disruptions = disruption::add(&mut people, enabled, &mut ops);
        let two = disruptions.contains(&Disruption::SecondProcess);
        let mut extras = SeededRng::for_purpose(seed, 6);
        let user_data = if pick(&mut extras, 2) == 0 {
            UserDataAtRest::Sealed
        } else {
            UserDataAtRest::Clear
        };
        if pick(&mut extras, 4) == 0 {
            op::add_image(&mut extras, &mut ops);
        }
        let nth = nth_run(&mut rng, point, 2);
        let mut faults = vec![Fault { point, nth, kind }];
        if point == FaultPoint::FindLaunch {
            // A launch is looked up only if its response was lost.
            let (point, kind) = (FaultPoint::Launch, FaultKind::LostResponse);
            faults.extend((1..=3).map(|nth| Fault { point, nth, kind }));
        }
        if point == FaultPoint::WriteStatus {
            // Each change of the server makes the controller write the status again.
            let kind = FaultKind::Error;
            faults.extend((1..=8).map(|nth| Fault { point, nth, kind }));
        }
        for _ in 0..pick(&mut rng, 6) {
            let (point, kind) = fault::pair(rng.bits() >> 8);
            let nth = nth_run(&mut rng, point, 6);
            faults.push(Fault { point, nth, kind });
        }
        let choose = |rng: &mut SeededRng, from: &[u64]| {
            let chosen = from.get(pick(rng, from.len())).copied();
            Duration::from_millis(chosen.unwrap_or_default())
        };
        let read_lag = choose(&mut rng, &[0, 3000, 6000]);
        let latency = choose(&mut rng, &[0, 40, 400]);
        let terminated_visible = choose(&mut rng, &[15_000, 3_600_000]);
        let verbs = [
            OptionalVerb::ResizeInstance,
            OptionalVerb::ReimageInstance,
            OptionalVerb::UpdateTags,
            OptionalVerb::RebootInstance,
        ];
        let wanted = [
            FaultPoint::Resize,
            FaultPoint::Reimage,
            FaultPoint::Retag,
            FaultPoint::Reboot,
        ];
        let unsupported = verbs.into_iter().zip(wanted);
        let needed = |wanted: FaultPoint| {
            wanted == point || (point == FaultPoint::BeginChange && wanted == FaultPoint::Reimage)
        };
        let unsupported =
            unsupported.filter(|(_, wanted)| !needed(*wanted) && pick(&mut rng, 4) == 0);
        Self {
            seed,
            ops,
            faults,
            processes: if two { 2 } else { 1 },
            disruptions,
            read_lag,
            latency,
            terminated_visible: terminated_visible.max(read_lag * 2),
            unsupported: unsupported.map(|(verb, _)| verb).collect(),
            user_data,
        }
    }
}

/// Chooses which run of a step gets the fault: an early one, but any one of a background step.
fn nth_run(rng: &mut SeededRng, point: FaultPoint, most: usize) -> u64 {
    let often = [
        FaultPoint::ReadService,
        FaultPoint::ReadInstances,
        FaultPoint::ReadRegion,
    ];
    let background = [
        FaultPoint::WatchInstances,
        FaultPoint::WatchRegion,
        FaultPoint::List,
        FaultPoint::WriteScan,
    ];
    let most = if often.contains(&point) {
        150
    } else if background.contains(&point) {
        30
    } else {
        most
    };
    1 + pick(rng, most) as u64
}

/// Returns a number below `count`, or 0.
pub fn pick(rng: &mut SeededRng, count: usize) -> usize {
    let bits = rng.bits() >> 11;
    // The remainder is below `count`, a usize.
    (bits % (count.max(1) as u64)) as usize
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "seed {}: {} processes, read lag {:?}, call latency {:?}, unsupported verbs {:?}, user data {:?}",
            self.seed,
            self.processes,
            self.read_lag,
            self.latency,
            self.unsupported,
            self.user_data
        )?;
        for (gap, op) in &self.ops {
            writeln!(f, "  after {gap:>10.3?}  {op:?}")?;
        }
        for fault in &self.faults {
            writeln!(f, "  fault: {fault}")?;
        }
        Ok(())
    }
}
