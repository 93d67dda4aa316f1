//! Looking machines up by id, and the meaning of a machine that a read does not show.
//!
//! Owns that meaning. Azure keeps no record of deleted machines, its lists omit machines that exist,
//! and a GET can return 404 for a machine that exists. So no single read proves that a machine has
//! ended. A lookup must never change anything at Azure.
//!
//! An id contains the creation time. By Azure's clock, a machine that no read shows is
//!
//! | created | and | result |
//! | --- | --- | --- |
//! | less than a consistency window ago | | not found, may be retried |
//! | earlier | another machine has its name | terminated |
//! | earlier | this handle has deleted it, and three GETs in a row do not find it | terminated |
//! | earlier | this handle has deleted it, and the lists of [`crate::ends`] prove its end | terminated |
//! | earlier | three GETs in a row, over a consistency window, do not find it | terminated |
//!
//! The handle remembers what it has found to be terminated. From then on one read is enough.
//! Related trap in the README: 47 (reads omit machines that exist).

use std::time::Duration;

use chrono::{DateTime, Utc};
use fleetwright_provider_support::poll::poll_delays;
use futures_util::{StreamExt as _, stream};
use tokio::time::sleep;

use crate::{
    AzureProvisioner,
    address::{self, Address, lowercase},
    error::{AzureFailure as _, Failure},
    list::Statuses,
    machine::Machine,
};

/// Up to how many machines are read one by one. More are read with one list.
pub(crate) const FEW: usize = 3;

/// How many GETs in a row must not find a machine before it counts as absent.
pub(crate) const ABSENT_READS: u32 = 3;

/// The end of a machine that Azure has no record of.
const NO_RECORD: &str = "gone: no record kept";

/// What reads say about an id.
#[derive(Clone, Debug)]
pub(crate) enum Lookup {
    /// The machine exists.
    Found(Box<Machine>),
    /// It does not exist any more.
    Gone(Gone),
    /// It is not found, and so young that this proves nothing.
    NotShown,
    /// One read did not find it, which proves nothing.
    /// [`confirm_absences`](AzureProvisioner::confirm_absences) reads it again.
    Absent,
}

/// The end of a machine.
#[derive(Clone, Debug)]
pub(crate) struct Gone {
    /// The reason of its end.
    pub(crate) reason: String,
    /// Whether more than reads says so: this handle has deleted it, or another machine has its name.
    pub(crate) certain: bool,
}

/// What it means that a list does not show a machine that was created within the consistency window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Young {
    /// It does not show yet. Many machines can be described right after their launch without a GET of each.
    MayBeUnlisted,
    /// Nothing: it needs a GET. A change must not be refused because of a list.
    NeedsGet,
}

impl Young {
    /// Whether what a list says about a machine is enough.
    const fn accepts(self, listed: &Lookup) -> bool {
        match (self, listed) {
            (Self::NeedsGet, Lookup::NotShown) => false,
            (Self::NeedsGet, Lookup::Found(_) | Lookup::Gone(_) | Lookup::Absent)
            | (Self::MayBeUnlisted, _) => true,
        }
    }
}

/// The result of one lookup.
pub(crate) type LookupResult = std::result::Result<Lookup, Failure>;

/// One lookup per id; `None` for an id of another group.
pub(crate) type Lookups = Vec<Option<LookupResult>>;

impl AzureProvisioner {
    /// Looks up the machine of one id. Never returns [`Lookup::Absent`].
    pub(crate) async fn look_up(&self, at: &Address) -> LookupResult {
        let lookups = vec![Some(self.read_once(at).await)];
        let confirmed = self.confirm_absences(&[Some(at.clone())], lookups).await;
        confirmed
            .into_iter()
            .flatten()
            .next()
            .unwrap_or(Ok(Lookup::NotShown))
    }

    /// Looks up the machines of many ids, with one list if they are many. A failure of one read does
    /// not affect the others. Never returns [`Lookup::Absent`].
    pub(crate) async fn look_up_all(
        &self,
        all: &[Option<Address>],
    ) -> std::result::Result<Lookups, Failure> {
        let lookups = self.read_all_once(all, Young::MayBeUnlisted).await?;
        Ok(self.confirm_absences(all, lookups).await)
    }

    /// Reads the machines of many ids once: with one list if they are many, and with a GET of each
    /// machine that the list does not show. The ends of many that this handle has deleted are proved with
    /// lists.
    pub(crate) async fn read_all_once(
        &self,
        all: &[Option<Address>],
        young: Young,
    ) -> std::result::Result<Lookups, Failure> {
        let known = all.iter().flatten().count();
        // A machine that was created later may not be in the list.
        let began = Utc::now();
        let listed = if known > FEW {
            self.client.statuses().await?
        } else {
            None
        };
        let began = self.client.azure_time(began);
        if let Some(listed) = &listed {
            self.note_listed_ends(all, listed, began).await;
        }
        let each = all.iter().map(|at| {
            let listed = listed.as_ref();
            async move {
                let at = at.as_ref()?;
                let listed = listed.and_then(|listed| self.read_from_list(at, listed, began));
                let listed = listed.filter(|lookup| young.accepts(lookup));
                match listed {
                    Some(lookup) => Some(Ok(lookup)),
                    None => Some(self.read_once(at).await),
                }
            }
        });
        let each: Vec<_> = each.collect();
        Ok(stream::iter(each)
            .buffered(self.concurrency())
            .collect()
            .await)
    }

    /// Returns what a list of states that began at `began` says about an id; `None` if it needs a GET.
    fn read_from_list(
        &self,
        at: &Address,
        listed: &Statuses,
        began: DateTime<Utc>,
    ) -> Option<Lookup> {
        let path = address::machine_path(&at.subscription, &at.group, &at.name);
        match listed.get(&lowercase(&path)) {
            Some(machine) if machine.vm_id == at.vm_id => Some(self.found(at, machine.clone())),
            Some(_) => None,
            None if at.is_recent(self.capabilities.consistency_window, began) => {
                Some(Lookup::NotShown)
            }
            None if self.deletions.is_gone(&at.vm_id) => {
                Some(Lookup::Gone(self.end(at, NO_RECORD)))
            }
            None => None,
        }
    }

    /// Reads the machine of one id once.
    async fn read_once(&self, at: &Address) -> LookupResult {
        match self.client.get(&at.name).await {
            Ok(machine) => Ok(self.check_vm_id(at, machine)),
            Err(failure) if failure.is_not_found() => {
                let now = address::azure_time(failure.server_time);
                Ok(if at.is_recent(self.capabilities.consistency_window, now) {
                    Lookup::NotShown
                } else if self.deletions.is_gone(&at.vm_id) {
                    Lookup::Gone(self.note_end(at, NO_RECORD))
                } else {
                    Lookup::Absent
                })
            }
            Err(failure) => Err(failure),
        }
    }

    /// Compares the VM id of a machine that has the right name.
    fn check_vm_id(&self, at: &Address, machine: Machine) -> Lookup {
        if machine.vm_id == at.vm_id {
            return self.found(at, machine);
        }
        // A stale read can show the previous machine of that name.
        let before = self.address_of(&machine).created < at.created;
        let now = self.client.azure_time(Utc::now());
        if before && at.is_recent(self.capabilities.consistency_window, now) {
            return Lookup::NotShown;
        }
        let gone = self.note_end(at, "gone: another machine has its name");
        Lookup::Gone(Gone {
            certain: true,
            ..gone
        })
    }

    /// Returns a machine that a read shows, unless this handle has seen its end and the read is
    /// stale.
    fn found(&self, at: &Address, machine: Machine) -> Lookup {
        let window = self.capabilities.consistency_window;
        if self.deletions.ended(&at.vm_id, window) {
            return Lookup::Gone(self.end(at, NO_RECORD));
        }
        Lookup::Found(Box::new(machine))
    }

    /// Returns the end of a machine, which reads have just shown, and remembers it.
    fn note_end(&self, at: &Address, otherwise: &str) -> Gone {
        let window = self.capabilities.consistency_window;
        self.deletions.note_end(&at.vm_id, window);
        self.end(at, otherwise)
    }

    /// Returns the end of a machine. The reason is the one that this handle knows.
    fn end(&self, at: &Address, otherwise: &str) -> Gone {
        let known = self.deletions.reason(&at.vm_id);
        Gone {
            reason: known.map_or_else(|| otherwise.to_owned(), |reason| reason.text),
            certain: self.deletions.is_deleted(&at.vm_id),
        }
    }

    /// Reads the machines again that one read did not find, all at the same time, until a read finds
    /// them or [`ABSENT_READS`] in a row did not. Removes every [`Lookup::Absent`].
    pub(crate) async fn confirm_absences(
        &self,
        all: &[Option<Address>],
        mut lookups: Lookups,
    ) -> Lookups {
        let is_absent = |lookup: &Option<LookupResult>| matches!(lookup, Some(Ok(Lookup::Absent)));
        for read in 1..ABSENT_READS {
            let absent: Vec<_> = all
                .iter()
                .zip(&lookups)
                .enumerate()
                .filter(|(_, (_, lookup))| is_absent(lookup))
                .filter_map(|(index, (at, _))| Some((index, at.as_ref()?)))
                .collect();
            if absent.is_empty() {
                return lookups;
            }
            let deleted = |(_, at): &(usize, &Address)| self.deletions.is_deleted(&at.vm_id);
            sleep(self.absence_delay(absent.iter().all(deleted), read)).await;
            let reads: Vec<_> = absent
                .iter()
                .map(|(index, at)| async move { (*index, self.read_once(at).await) })
                .collect();
            let reads = stream::iter(reads).buffered(self.concurrency());
            for (index, lookup) in reads.collect::<Vec<_>>().await {
                lookups[index] = Some(lookup);
            }
        }
        for (at, lookup) in all.iter().zip(&mut lookups) {
            if let (Some(at), true) = (at, is_absent(lookup)) {
                *lookup = Some(Ok(Lookup::Gone(self.note_end(at, NO_RECORD))));
            }
        }
        lookups
    }

    /// Returns the delay before read number `read` of machines that were not found. The end of a
    /// machine that this handle has deleted is expected, so its reads follow quickly; others are
    /// spread over a consistency window.
    pub(crate) fn absence_delay(&self, deleted: bool, read: u32) -> Duration {
        let spread = self.absence_spread();
        if !deleted {
            return spread;
        }
        let mut delays = poll_delays(self.options.poll_interval).skip(read as usize - 1);
        delays.next().unwrap_or(spread).min(spread)
    }

    /// Returns the delay between two of [`ABSENT_READS`] reads that span a consistency window.
    pub(crate) fn absence_spread(&self) -> Duration {
        self.capabilities.consistency_window / (ABSENT_READS - 1)
    }
}
