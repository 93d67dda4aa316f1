//! What is asked for, and what others do.

use std::time::Duration;

use fleetwright_chaos::SeededRng;

use super::pick;
use crate::names::SLOTS;

/// Something that is asked for, or that somebody else does. A number is that of an instance's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is what its name says")]
pub enum Op {
    Create(usize),
    /// Everybody asks for their instances at once, each twice.
    Crowd,
    Update(usize, Change, Word),
    /// Several things at once.
    Race(usize),
    Stop(usize),
    Start(usize),
    Reboot(usize),
    Replace(usize),
    Delete(usize),
    Snapshot(usize),
    /// The key and the console are looked at.
    Look(usize),
    /// Those who may not try everything.
    Probe(usize),
    /// A network is asked to go, with what stands in it.
    Condemn(usize),
    /// A flavor is taken from the catalog.
    Retire,
    /// It is offered again.
    Offer,
    /// An operator deletes a server behind its owner's back.
    Order(usize),
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

/// What is to be changed of an instance, and to what: the same if it is asked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is what its name says")]
pub enum Change {
    Small,
    Large,
    Gpu,
    Linux,
    Bsd,
    Tag(usize),
    Group,
    NoGroup,
    Public,
    Private,
    Authority,
    UserData(usize),
    Words(usize),
}

/// How an update is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// Whatever it destroys.
    Agreed,
    /// Only if it destroys nothing.
    Keep,
    /// Only what it would take is asked for.
    Dry,
}

/// Any.
pub(super) fn random(dice: &mut SeededRng) -> Op {
    let slot = pick(dice, SLOTS);
    match pick(dice, 42) {
        0 | 1 => Op::Stop(slot),
        2 | 3 => Op::Start(slot),
        4 => Op::Reboot(slot),
        5 | 6 => Op::Replace(slot),
        7 | 8 => Op::Delete(slot),
        9..=18 => update(dice, slot),
        19 => Op::OutsideStop(slot),
        20 => Op::OutsideStart(slot),
        21 => Op::OutsideTerminate(slot),
        22 => Op::OutsideRetag(slot),
        23 => Op::Decoy(slot),
        24 => Op::Orphan,
        25 => Op::Foreign,
        26 => Op::Doom(1 + pick(dice, 4)),
        27 => Op::Capacity(pick(dice, 2) as u64),
        28 => Op::CutOff,
        29 => Op::Recover,
        30 => Op::Snapshot(slot),
        31 => Op::Look(slot),
        32 => Op::Probe(slot),
        33 => Op::Condemn(pick(dice, 3)),
        34 => Op::Retire,
        35 => Op::Offer,
        36 => Op::Order(slot),
        37 => Op::Crowd,
        38 | 39 => Op::Race(slot),
        _ => Op::Create(slot),
    }
}

fn update(dice: &mut SeededRng, slot: usize) -> Op {
    let number = pick(dice, 3);
    let change = match pick(dice, 16) {
        0 => Change::Small,
        1 | 2 => Change::Large,
        3 | 4 => Change::Gpu,
        5 => Change::Linux,
        6 | 7 => Change::Bsd,
        8 => Change::Tag(number),
        9 => Change::Group,
        10 => Change::NoGroup,
        11 | 12 => Change::Public,
        13 => Change::Private,
        14 => Change::Authority,
        _ if number == 0 => Change::Words(number),
        _ => Change::UserData(number),
    };
    let word = match pick(dice, 8) {
        0..=3 => Word::Agreed,
        4..=6 => Word::Keep,
        _ => Word::Dry,
    };
    Op::Update(slot, change, word)
}

/// Mostly at once or soon, sometimes so late that all has settled.
pub(super) fn gap(dice: &mut SeededRng) -> Duration {
    let most = match pick(dice, 4) {
        0 => 100,
        1 => 3_000,
        2 => 15_000,
        _ => 60_000,
    };
    dice.up_to(Duration::from_millis(most))
}
