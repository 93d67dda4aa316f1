//! Disruptions: what people do wrong around the façade, and what they correct later.

use std::time::Duration;

use fleetwright_chaos::SeededRng;

use super::{
    Change, Op, UpdateMode,
    op::{self, random_delay},
    pick,
};
use crate::{
    constants::{NETWORKS, SLOT_COUNT, SLOTS},
    environment::{Credentials, Entry},
};

macro_rules! disruptions {
    ($($(#[$docs:meta])* $name:ident = $text:literal,)*) => {
        /// What people do wrong around the façade.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Disruption {
            $($(#[$docs])* $name,)*
        }

        impl Disruption {
            /// Every disruption.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The name on the command line and in the summary.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

disruptions! {
    /// The cloud refuses the credentials for a while.
    Credentials = "credentials",
    /// The credentials belong to another account for a while, empty or not.
    Account = "account",
    /// The mapping lacks an entry that a spec needs, or cannot be parsed.
    MissingMapping = "missing-mapping",
    /// The mapping gets other native names while servers run.
    ChangedMapping = "changed-mapping",
    /// A catalog without entries that are in use is loaded.
    Catalog = "catalog",
    /// An operator deletes machines and native networks by hand.
    HandDeletion = "hand-deletion",
    /// The clock of a machine is set, forward or back.
    Clock = "clock",
    /// Two processes run at once.
    SecondProcess = "second-process",
    /// The cloud accepts less than the API: it withdraws a type, or refuses long user data.
    ProviderLimit = "provider-limit",
}

impl Disruption {
    /// The disruptions that scenarios have unless others are chosen: all of them.
    pub const DEFAULT: &'static [Self] = Self::ALL;
}

/// The operations of a disruption: its beginning, what others do meanwhile, and its end.
struct Episode {
    begin: Op,
    meanwhile: Vec<Op>,
    end: Option<Op>,
}

/// Adds random disruptions to the operations of a scenario, and returns which ones.
pub(super) fn add(
    rng: &mut SeededRng,
    enabled: &[Disruption],
    ops: &mut Vec<(Duration, Op)>,
) -> Vec<Disruption> {
    let count = match pick(rng, 8) {
        _ if enabled.is_empty() => 0,
        0 | 1 => 0,
        2..=4 => 1,
        5 | 6 => 2,
        _ => 3,
    };
    let mut chosen: Vec<Disruption> = (0..count)
        .filter_map(|_| enabled.get(pick(rng, enabled.len())).copied())
        .collect();
    chosen.sort_unstable();
    chosen.dedup();
    let two = chosen.contains(&Disruption::SecondProcess);
    for disruption in &chosen {
        if let Some(episode) = episode(rng, *disruption, two) {
            insert(rng, ops, episode);
        }
    }
    chosen
}

/// Inserts an episode at a random place, and its end at a later one.
fn insert(rng: &mut SeededRng, ops: &mut Vec<(Duration, Op)>, episode: Episode) {
    let mut at = pick(rng, ops.len() + 1);
    let mut insert = |rng: &mut SeededRng, at: usize, op| {
        let delay = random_delay(rng);
        ops.insert(at.min(ops.len()), (delay, op));
    };
    insert(rng, at, episode.begin);
    for op in episode.meanwhile {
        at += 1 + pick(rng, 2);
        insert(rng, at, op);
    }
    if let Some(end) = episode.end {
        at += 1 + pick(rng, 3);
        insert(rng, at, end);
    }
}

fn episode(rng: &mut SeededRng, disruption: Disruption, two_processes: bool) -> Option<Episode> {
    // With two processes, one of them or both are affected.
    let process = match pick(rng, 3) {
        choice @ (0 | 1) if two_processes => Some(choice),
        _ => None,
    };
    let slot = pick(rng, SLOT_COUNT - 1);
    let power = power_op(rng, slot);
    let request = request_op(rng, slot);
    let episode = match disruption {
        Disruption::Credentials => Episode {
            begin: Op::SetCredentials(process, Credentials::Refused),
            meanwhile: vec![power, request],
            end: Some(Op::SetCredentials(process, Credentials::Right)),
        },
        Disruption::Account => {
            let other = [Credentials::EmptyAccount, Credentials::OtherAccount];
            let meanwhile = match pick(rng, 3) {
                0 => Vec::new(),
                1 => vec![power, request],
                _ => vec![op::random_op(rng)],
            };
            Episode {
                begin: Op::SetCredentials(process, other[pick(rng, 2)]),
                meanwhile,
                end: Some(Op::SetCredentials(process, Credentials::Right)),
            }
        }
        Disruption::MissingMapping => {
            let entry = Entry::ALL[pick(rng, Entry::ALL.len())];
            let change = change_to(rng, entry);
            let remove = Op::RemoveMapping(process, entry);
            let (begin, meanwhile) = match pick(rng, 8) {
                0 => (Op::BreakMapping(process), vec![change, power]),
                // The change has begun when the entry is removed.
                choice @ (1 | 2) => {
                    let mut meanwhile = vec![
                        change,
                        remove,
                        Op::SetCredentials(process, Credentials::Right),
                    ];
                    if choice == 2 {
                        // A power request meets the change that has begun.
                        let changed = slot_of(change).unwrap_or(slot);
                        meanwhile.extend([power_op(rng, changed), Op::Pause]);
                    }
                    let begin = Op::SetCredentials(process, Credentials::Refused);
                    (begin, meanwhile)
                }
                _ => (remove, vec![change, power]),
            };
            Episode {
                begin,
                meanwhile,
                end: (pick(rng, 2) == 0).then_some(Op::CorrectMapping(process)),
            }
        }
        Disruption::ChangedMapping => {
            let entry = Entry::ALL[pick(rng, Entry::ALL.len())];
            Episode {
                begin: Op::RenameMapping(process, entry),
                meanwhile: vec![change_to(rng, entry)],
                end: (pick(rng, 2) == 0).then_some(Op::CorrectMapping(process)),
            }
        }
        Disruption::Catalog => {
            let names = ["small", "large", "gpu", "debian", "rocky"];
            let replace = Op::Replace(slot);
            let retire = Op::RetireEntry(names[pick(rng, names.len())]);
            let request = if pick(rng, 2) == 0 { replace } else { power };
            // One of two processes may still have the older catalog.
            let (begin, meanwhile) = match process {
                Some(_) => (Op::KeepCatalog(process, true), vec![retire, request]),
                None => (retire, vec![request]),
            };
            Episode {
                begin,
                meanwhile,
                end: (pick(rng, 2) == 0).then_some(Op::OfferFlavor),
            }
        }
        Disruption::HandDeletion => {
            let begin = match pick(rng, 3) {
                0 => Op::TerminateAll,
                1 => Op::DeleteSubnet(pick(rng, NETWORKS.len())),
                _ => Op::OperatorDeletesNetwork(pick(rng, NETWORKS.len())),
            };
            Episode {
                begin,
                meanwhile: vec![Op::Replace(slot), request],
                end: (pick(rng, 2) == 0).then_some(Op::Recover),
            }
        }
        Disruption::Clock => {
            // The façade relies on clocks that differ by less than the cloud's consistency window.
            let seconds: &[i64] = match process {
                Some(_) => &[-2, -1, 1, 2],
                None => &[-7200, -90, -20, 20, 90, 7200, 86_400],
            };
            Episode {
                begin: Op::SetClock(process, seconds[pick(rng, seconds.len())]),
                meanwhile: vec![power, request],
                end: (pick(rng, 3) > 0).then_some(Op::CorrectClock(process)),
            }
        }
        Disruption::SecondProcess => return None,
        Disruption::ProviderLimit => {
            let update = |change| Op::Update(slot, change, UpdateMode::WithConsent);
            let (begin, meanwhile) = match pick(rng, 4) {
                0 => (
                    Op::WithdrawType("large"),
                    vec![update(Change::Large), power],
                ),
                1 => (Op::WithdrawType("gpu"), vec![update(Change::Gpu), power]),
                2 => (Op::Probe(slot), vec![update(Change::LongUserData), power]),
                // The type is withdrawn between the stop and the start.
                _ => (
                    update(Change::Large),
                    vec![Op::Stop(slot), Op::WithdrawType("large"), Op::Start(slot)],
                ),
            };
            Episode {
                begin,
                meanwhile,
                end: (pick(rng, 2) == 0).then_some(Op::Recover),
            }
        }
    };
    Some(episode)
}

/// Returns the slot of a change or a replacement.
fn slot_of(op: Op) -> Option<usize> {
    if let Op::Update(slot, ..) | Op::Replace(slot) = op {
        return Some(slot);
    }
    None
}

fn power_op(rng: &mut SeededRng, slot: usize) -> Op {
    match pick(rng, 3) {
        0 => Op::Stop(slot),
        1 => Op::Start(slot),
        _ => Op::Reboot(slot),
    }
}

/// Returns a request that takes several steps.
fn request_op(rng: &mut SeededRng, slot: usize) -> Op {
    match pick(rng, 4) {
        0 => Op::Delete(slot),
        1 => Op::Snapshot(slot),
        2 => Op::Replace(slot),
        _ => Op::Update(slot, Change::Rocky, UpdateMode::WithConsent),
    }
}

/// Returns a request that needs an entry of the mapping.
fn change_to(rng: &mut SeededRng, entry: Entry) -> Op {
    let slots: Vec<_> = (0..SLOT_COUNT - 1).collect();
    let slot = pick(rng, slots.len());
    let update = |slot, change| Op::Update(slot, change, UpdateMode::WithConsent);
    let on = |network| {
        let found = slots.iter().find(|slot| SLOTS[**slot].network == network);
        found.copied().unwrap_or_default()
    };
    match entry {
        Entry::Flavor("large") => update(slot, Change::Large),
        Entry::Flavor("gpu") => update(slot, Change::Gpu),
        Entry::Image("rocky") => update(slot, Change::Rocky),
        Entry::Flavor(_) | Entry::Image(_) => Op::Replace(slot),
        Entry::Group(network) => update(on(network), Change::Group),
        Entry::Network(network) => Op::Replace(on(network)),
    }
}
