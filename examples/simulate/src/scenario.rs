//! What a seed stands for: what is asked of the region, what others do, and what goes wrong.

use std::{fmt, time::Duration};

use fleetwright::OptionalVerb;
use fleetwright_chaos::Dice;

use crate::fault::{self, Fault, Kind, Site};

/// How many servers a scenario is about.
pub const SERVERS: usize = 3;

/// Something that is asked for, or that somebody else does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "each is what its name says; a number is a server's"
)]
pub enum Op {
    Make(usize),
    Stop(usize),
    Start(usize),
    Reboot(usize),
    Replace(usize),
    Delete(usize),
    Flavor(usize),
    Image(usize),
    Tags(usize),
    /// A public address is asked for, or none, which takes another machine.
    Address(usize),
    OutsideStop(usize),
    OutsideStart(usize),
    OutsideTerminate(usize),
    OutsideRetag(usize),
    /// A machine of another region that carries the server's tag.
    Decoy(usize),
    /// A machine with the region's tag that no server claims.
    Orphan,
    /// A machine of somebody else.
    Foreign,
    /// So many of the next launches end before they boot.
    Doom(usize),
    /// No more machines than these.
    Capacity(u64),
    /// The second zone cannot be reached.
    CutOff,
    /// Everything can be reached and there is room again.
    Recover,
}

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
        let mut dice = Dice::for_purpose(seed, 1);
        let (site, kind) = fault::pair(seed);
        let mut ops: Vec<_> = (0..SERVERS).map(Op::Make).collect();
        ops.splice(0..0, before(site));
        let wished = wishes(site);
        let extra = 4 + pick(&mut dice, 8);
        for _ in 0..extra {
            ops.push(random(&mut dice));
        }
        let at = SERVERS + pick(&mut dice, 3);
        let at = at.min(ops.len());
        ops.splice(at..at, wished);
        if pick(&mut dice, 3) > 0 {
            ops.push(Op::Recover);
            ops.push(Op::Delete(pick(&mut dice, SERVERS)));
        }
        let ops = ops.into_iter().map(|op| (gap(&mut dice), op)).collect();
        let nth = 1 + pick(&mut dice, 2) as u64;
        let mut faults = vec![Fault { site, nth, kind }];
        if site == Site::FindLaunch {
            // It is asked for only where the answer of a launch is lost.
            let (site, kind) = (Site::Launch, Kind::LostReply);
            faults.extend((1..=3).map(|nth| Fault { site, nth, kind }));
        }
        for _ in 0..pick(&mut dice, 6) {
            let (site, kind) = fault::pair(dice.bits() >> 8);
            let nth = 1 + pick(&mut dice, 6) as u64;
            faults.push(Fault { site, nth, kind });
        }
        let choose = |dice: &mut Dice, from: &[u64]| {
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

/// What must be so before the servers are made, for a step to come about.
fn before(site: Site) -> Vec<Op> {
    if matches!(site, Site::Resend | Site::Note) {
        vec![Op::Capacity(0)]
    } else if site == Site::FindLaunch {
        // What looks like the machine that is looked for must not be taken for it.
        (0..SERVERS).map(Op::Decoy).collect()
    } else {
        Vec::new()
    }
}

/// What must be asked for, for a step to come about.
fn wishes(site: Site) -> Vec<Op> {
    match site {
        Site::Resend | Site::Note => vec![Op::Recover],
        Site::Ending | Site::Ended | Site::Forget | Site::Terminate | Site::Describe => {
            vec![Op::Delete(0)]
        }
        Site::Change | Site::Stop => vec![Op::Stop(0)],
        Site::Start => vec![Op::Stop(0), Op::Start(0)],
        Site::Reboot => vec![Op::Reboot(0), Op::Reboot(1)],
        Site::Resize => vec![Op::Flavor(0), Op::Flavor(1)],
        Site::Reimage | Site::Attempt => vec![Op::Image(0), Op::Image(1)],
        Site::Retag => vec![Op::Tags(0), Op::Tags(1)],
        Site::Sweep => vec![Op::Orphan, Op::Orphan],
        Site::Make
        | Site::Ask
        | Site::Begin
        | Site::Record
        | Site::Observe
        | Site::Beat
        | Site::Launch
        | Site::FindLaunch
        | Site::List => Vec::new(),
    }
}

fn random(dice: &mut Dice) -> Op {
    let server = pick(dice, SERVERS);
    match pick(dice, 24) {
        0 | 1 => Op::Stop(server),
        2 | 3 => Op::Start(server),
        4 => Op::Reboot(server),
        5 | 6 => Op::Replace(server),
        7 => Op::Delete(server),
        8 => Op::Flavor(server),
        9 => Op::Image(server),
        10 => Op::Tags(server),
        11 => Op::Address(server),
        12 => Op::OutsideStop(server),
        13 => Op::OutsideStart(server),
        14 => Op::OutsideTerminate(server),
        15 => Op::OutsideRetag(server),
        16 => Op::Decoy(server),
        17 => Op::Orphan,
        18 => Op::Foreign,
        19 => Op::Doom(1 + pick(dice, 4)),
        20 => Op::Capacity(pick(dice, 2) as u64),
        21 => Op::CutOff,
        22 => Op::Recover,
        _ => Op::Make(server),
    }
}

/// Mostly at once or soon, sometimes so late that all has settled.
fn gap(dice: &mut Dice) -> Duration {
    let most = match pick(dice, 4) {
        0 => 100,
        1 => 3_000,
        2 => 15_000,
        _ => 60_000,
    };
    dice.up_to(Duration::from_millis(most))
}

/// One of the first `count` numbers.
pub fn pick(dice: &mut Dice, count: usize) -> usize {
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
