//! The operations of a scenario.

use std::time::Duration;

use fleetwright_chaos::SeededRng;

use super::pick;
use crate::{
    constants::SLOT_COUNT,
    environment::{Credentials, Entry},
};

/// A request of a tenant or operator, or an external action. A `usize` is a slot unless documented
/// otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub enum Op {
    Create(usize),
    /// Every tenant creates all its instances at once, each one twice.
    CreateAllAtOnce,
    Update(usize, Change, UpdateMode),
    /// Several requests for one instance at once.
    Race(usize),
    Stop(usize),
    Start(usize),
    Reboot(usize),
    Replace(usize),
    Delete(usize),
    Snapshot(usize),
    /// The tenant deletes the image that the snapshot of a slot has created.
    DeleteImage(usize),
    /// The tenant reads key and console.
    ReadKeyAndConsole(usize),
    /// Principals without permission try every call.
    Probe(usize),
    /// The tenant deletes a network (by index) with its instances.
    DeleteNetwork(usize),
    /// An operator removes a flavor from the catalog.
    RetireFlavor,
    /// An operator adds that flavor again.
    OfferFlavor,
    /// An operator deletes a server directly.
    DeleteServer(usize),
    ExternalStop(usize),
    ExternalStart(usize),
    ExternalTerminate(usize),
    ExternalRetag(usize),
    /// Launches a machine of another region that carries the server's tag.
    ForeignWithServerTag(usize),
    /// Launches a machine with the region's tag that no server claims.
    Orphan,
    /// Launches a machine that has nothing to do with the façade.
    Foreign,
    /// Makes this many of the next launches fail before they boot.
    FailBoots(usize),
    /// Limits the cloud to this many machines.
    Capacity(u64),
    /// Makes the second zone unreachable.
    DisconnectZone,
    /// Makes every zone reachable, removes the capacity limit, and offers every type and subnet.
    Recover,
    /// An operator sets the credentials of a process, or of all.
    SetCredentials(Option<usize>, Credentials),
    /// An operator removes an entry from the mapping of a process, or of all.
    RemoveMapping(Option<usize>, Entry),
    /// An operator changes the native name of an entry.
    RenameMapping(Option<usize>, Entry),
    /// An operator writes half a mapping file.
    BreakMapping(Option<usize>),
    /// An operator corrects the mapping.
    CorrectMapping(Option<usize>),
    /// An operator loads a catalog without a flavor or an image.
    RetireEntry(&'static str),
    /// A process keeps the catalog that it has, or follows the store again.
    KeepCatalog(Option<usize>, bool),
    /// An operator terminates every machine of the region at the cloud.
    TerminateAll,
    /// An operator deletes the native network of a network (by index).
    DeleteSubnet(usize),
    /// An operator deletes a network (by index) that nobody uses, or tries to.
    OperatorDeletesNetwork(usize),
    /// The clock of a process, or of all, is set this many seconds forward or back.
    SetClock(Option<usize>, i64),
    /// The clock of a process, or of all, is corrected.
    CorrectClock(Option<usize>),
    /// The cloud withdraws an instance type.
    WithdrawType(&'static str),
    /// Nobody does anything for longer than a power request may take.
    Pause,
}

/// A change of an instance's spec. Applying it twice has the effect of applying it once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub enum Change {
    Small,
    Large,
    Gpu,
    Debian,
    Rocky,
    Tag(usize),
    Group,
    NoGroup,
    Public,
    Private,
    Authority,
    UserData(usize),
    /// User data that the API accepts and the provider does not.
    LongUserData,
    Description(usize),
}

/// How an update is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateMode {
    /// With consent to destroy data.
    WithConsent,
    /// Without consent.
    WithoutConsent,
    /// As a dry run that returns the plan.
    PlanOnly,
}

/// Returns a random operation.
pub(super) fn random_op(rng: &mut SeededRng) -> Op {
    let slot = pick(rng, SLOT_COUNT);
    match pick(rng, 42) {
        0 | 1 => Op::Stop(slot),
        2 | 3 => Op::Start(slot),
        4 => Op::Reboot(slot),
        5 | 6 => Op::Replace(slot),
        7 | 8 => Op::Delete(slot),
        9..=18 => update(rng, slot),
        19 => Op::ExternalStop(slot),
        20 => Op::ExternalStart(slot),
        21 => Op::ExternalTerminate(slot),
        22 => Op::ExternalRetag(slot),
        23 => Op::ForeignWithServerTag(slot),
        24 => Op::Orphan,
        25 => Op::Foreign,
        26 => Op::FailBoots(1 + pick(rng, 4)),
        27 => Op::Capacity(pick(rng, 2) as u64),
        28 => Op::DisconnectZone,
        29 => Op::Recover,
        30 => Op::Snapshot(slot),
        31 => Op::ReadKeyAndConsole(slot),
        32 => Op::Probe(slot),
        33 => Op::DeleteNetwork(pick(rng, 3)),
        34 => Op::RetireFlavor,
        35 => Op::OfferFlavor,
        36 => Op::DeleteServer(slot),
        37 => Op::CreateAllAtOnce,
        38 | 39 => Op::Race(slot),
        _ => Op::Create(slot),
    }
}

fn update(rng: &mut SeededRng, slot: usize) -> Op {
    let number = pick(rng, 3);
    let change = match pick(rng, 16) {
        0 => Change::Small,
        1 | 2 => Change::Large,
        3 | 4 => Change::Gpu,
        5 => Change::Debian,
        6 | 7 => Change::Rocky,
        8 => Change::Tag(number),
        9 => Change::Group,
        10 => Change::NoGroup,
        11 | 12 => Change::Public,
        13 => Change::Private,
        14 => Change::Authority,
        _ if number == 0 => Change::Description(number),
        _ => Change::UserData(number),
    };
    let mode = match pick(rng, 8) {
        0..=3 => UpdateMode::WithConsent,
        4..=6 => UpdateMode::WithoutConsent,
        _ => UpdateMode::PlanOnly,
    };
    Op::Update(slot, change, mode)
}

/// Adds a snapshot at a random place, the deletion of its image at a later one, and sometimes another snapshot of the same name.
pub(super) fn add_image(rng: &mut SeededRng, ops: &mut Vec<(Duration, Op)>) {
    let slot = pick(rng, SLOT_COUNT - 1);
    let again = pick(rng, 2) == 0;
    let mut at = pick(rng, ops.len() + 1);
    for op in [Op::Snapshot(slot), Op::DeleteImage(slot)]
        .into_iter()
        .chain(again.then_some(Op::Snapshot(slot)))
    {
        let delay = random_delay(rng);
        ops.insert(at.min(ops.len()), (delay, op));
        at += 1 + pick(rng, 3);
    }
}

/// Returns a random delay: mostly short, sometimes long enough for everything to settle.
pub(super) fn random_delay(rng: &mut SeededRng) -> Duration {
    let most = match pick(rng, 4) {
        0 => 100,
        1 => 3_000,
        2 => 15_000,
        _ => 60_000,
    };
    rng.up_to(Duration::from_millis(most))
}
