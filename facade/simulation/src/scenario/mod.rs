//! What a seed stands for: what is asked of the region, what others do, and what goes wrong.

mod aim;
mod op;

use std::{fmt, time::Duration};

use fleetwright::OptionalVerb;
use fleetwright_chaos::SeededRng;

pub use op::{Change, Op, Word};

use crate::{
    fault::{self, Fault, Kind, Site},
    names::FIRST,
};

/// A scenario.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Where all chance comes from.
    pub seed: u64,
    /// What happens, and how long after the one before.
    pub ops: Vec<(Duration, Op)>,
    /// What goes wrong.
    pub faults: Vec<Fault>,
    /// For how long reads lag.
    pub window: Duration,
    /// How long a call takes.
    pub latency: Duration,
    /// For how long terminated machines are told of.
    pub memory: Duration,
    /// What the cloud cannot do.
    pub without: Vec<OptionalVerb>,
}

impl Scenario {
    /// The scenario of a seed.
    pub fn of(seed: u64) -> Self {
        let mut dice = SeededRng::for_purpose(seed, 1);
        let (site, kind) = fault::pair(seed);
        let mut ops = Vec::new();
        let mut timed = |dice: &mut SeededRng, (after, op): aim::Timed| {
            let gap = op::gap(dice);
            ops.push((after.unwrap_or(gap), op));
        };
        for op in aim::before(site) {
            timed(&mut dice, op);
        }
        for slot in 0..FIRST {
            timed(&mut dice, (None, Op::Create(slot)));
        }
        // What is aimed at comes at once, or after something else.
        if pick(&mut dice, 3) == 0 {
            let between = op::random(&mut dice);
            timed(&mut dice, (None, between));
        }
        for op in aim::wishes(site) {
            timed(&mut dice, op);
        }
        for _ in 0..2 + pick(&mut dice, 6) {
            let op = op::random(&mut dice);
            timed(&mut dice, (None, op));
        }
        if pick(&mut dice, 3) > 0 {
            timed(&mut dice, (None, Op::Recover));
            let slot = pick(&mut dice, FIRST);
            timed(&mut dice, (None, Op::Delete(slot)));
        }
        let nth = turn(&mut dice, site, 2);
        let mut faults = vec![Fault { site, nth, kind }];
        if site == Site::FindLaunch {
            // It is asked for only where the answer of a launch is lost.
            let (site, kind) = (Site::Launch, Kind::LostReply);
            faults.extend((1..=3).map(|nth| Fault { site, nth, kind }));
        }
        if site == Site::Status {
            // Each change of its server has it written again.
            let kind = Kind::Error;
            faults.extend((1..=8).map(|nth| Fault { site, nth, kind }));
        }
        for _ in 0..pick(&mut dice, 6) {
            let (site, kind) = fault::pair(dice.bits() >> 8);
            let nth = turn(&mut dice, site, 6);
            faults.push(Fault { site, nth, kind });
        }
        let choose = |dice: &mut SeededRng, from: &[u64]| {
            let chosen = from.get(pick(dice, from.len())).copied();
            Duration::from_millis(chosen.unwrap_or_default())
        };
        let window = choose(&mut dice, &[0, 3000, 6000]);
        let latency = choose(&mut dice, &[0, 40, 400]);
        let memory = choose(&mut dice, &[15_000, 3_600_000]);
        let verbs = [
            OptionalVerb::ResizeInstance,
            OptionalVerb::ReimageInstance,
            OptionalVerb::UpdateTags,
            OptionalVerb::RebootInstance,
        ];
        let wanted = [Site::Resize, Site::Reimage, Site::Retag, Site::Reboot];
        let without = verbs.into_iter().zip(wanted);
        let needed =
            |wanted: Site| wanted == site || (site == Site::Attempt && wanted == Site::Reimage);
        let without = without.filter(|(_, wanted)| !needed(*wanted) && pick(&mut dice, 4) == 0);
        Self {
            seed,
            ops,
            faults,
            window,
            latency,
            memory: memory.max(window * 2),
            without: without.map(|(verb, _)| verb).collect(),
        }
    }
}

/// Which time it goes wrong: one of the first. What is done all the time goes wrong at any time.
fn turn(dice: &mut SeededRng, site: Site, most: usize) -> u64 {
    let often = [Site::ReadService, Site::ReadInstances, Site::ReadRegion];
    let steady = [
        Site::WatchInstances,
        Site::WatchRegion,
        Site::List,
        Site::Beat,
    ];
    let most = if often.contains(&site) {
        150
    } else if steady.contains(&site) {
        30
    } else {
        most
    };
    1 + pick(dice, most) as u64
}

/// One of the first `count` numbers.
pub fn pick(dice: &mut SeededRng, count: usize) -> usize {
    let bits = dice.bits() >> 11;
    // It is below `count`.
    (bits % (count.max(1) as u64)) as usize
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "seed {}: reads lag {:?}, calls take {:?}, without {:?}",
            self.seed, self.window, self.latency, self.without
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
