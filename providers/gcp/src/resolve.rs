//! What a read means: the state of an instance that Compute Engine shows, or does not show.
//!
//! Owns where that knowledge comes from. Compute Engine shows an instance that is being deleted like
//! one that is being stopped, and has no record of one that was deleted. In this order:
//!
//! 1. What this handle remembers. A remembered operation is read by its name, if it matters how it ended.
//! 2. One list of operations for up to 100 instances, if somebody else stopped or deleted them. Compute
//!    Engine charges it for every operation of the project and may refuse it, so no other read needs one.
//! 3. Another instance that has the name.
//!
//! If operations cannot be listed because of throttling, an instance is reported as its read shows it:
//! stopping, or not found.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use fleetwright::{CloudInstanceState, InstanceInfo};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use crate::{
    GcpProvisioner,
    address::Address,
    convert,
    error::{Failure, GcpFailure as _},
    history::{self, History},
    operations::Outcome,
    read::{Histories, summary_of},
};

/// What happens to an instance that is stopping for a reason that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unclear {
    /// It is reported as stopping.
    Report,
    /// The read fails: the caller must know whether the instance is being deleted.
    Fail,
}

/// What is known of an instance that no read shows.
enum Absent {
    /// It is known.
    Known(Option<Box<InstanceInfo>>),
    /// It existed, and is gone for a reason that only operations may know.
    Gone,
    /// Only operations may know it.
    Unclear,
}

impl GcpProvisioner {
    /// Completes the states of instances that a read shows, in the same order.
    pub(crate) async fn resolve_shown(
        &self,
        mut infos: Vec<InstanceInfo>,
        unclear: Unclear,
    ) -> Result<Vec<InstanceInfo>, Failure> {
        self.complete_from_memory(&mut infos).await?;
        let unclear_at = |info: &InstanceInfo| {
            if info.state != CloudInstanceState::Stopping {
                return None;
            }
            let at = self.address(&info.id)?;
            (!self.memory.is_stopping(at.number)).then_some(at)
        };
        let addresses: Vec<_> = infos.iter().filter_map(unclear_at).collect();
        if addresses.is_empty() {
            return Ok(infos);
        }
        let histories = match self.histories_of(&addresses).await {
            Err(failure) if failure.is_throttled() && unclear == Unclear::Report => {
                Histories::default()
            }
            read => read?,
        };
        for info in &mut infos {
            let Some(at) = unclear_at(info) else { continue };
            self.remember_delete(&histories, at.number);
            // Compute Engine shows an instance whose creation failed as stopping while it removes it.
            if let History::Deleting | History::Deleted(_) | History::CreateFailed(_) =
                summary_of(&histories, at.number)
            {
                convert::mark_terminating(info);
            }
        }
        Ok(infos)
    }

    /// Completes instances from the memory: one that this handle deletes is terminating, whatever a
    /// stale read shows, unless its deletion failed. Reads only the operations of such deletions.
    async fn complete_from_memory(&self, infos: &mut [InstanceInfo]) -> Result<(), Failure> {
        let window = self.capabilities.consistency_window;
        let mut reads = Vec::new();
        for (index, info) in infos.iter_mut().enumerate() {
            let Some(number) = self.number(&info.id) else {
                continue;
            };
            if let Some(ended) = self.memory.end(number) {
                *info = ended;
            } else if let Some((operation, _)) = self.memory.delete(number, window) {
                if info.state == CloudInstanceState::Stopping {
                    convert::mark_terminating(info);
                } else if let Some(at) = self.address(&info.id) {
                    reads.push(self.is_deleted(index, at, operation));
                }
            }
        }
        if reads.is_empty() {
            return Ok(());
        }
        let width = self.options.concurrency.get() as usize;
        let deleted: Vec<_> = stream::iter(reads).buffered(width).try_collect().await?;
        for index in deleted.into_iter().flatten() {
            if let Some(info) = infos.get_mut(index) {
                convert::mark_terminating(info);
            }
        }
        Ok(())
    }

    /// Returns `index` if this deletion has not failed.
    async fn is_deleted(
        &self,
        index: usize,
        at: Address,
        operation: String,
    ) -> Result<Option<usize>, Failure> {
        Ok(match self.read_outcome(&at.zone, &operation).await? {
            Outcome::Running | Outcome::Succeeded => Some(index),
            Outcome::Failed(_) | Outcome::Expired => {
                self.memory.forget_delete(at.number);
                None
            }
        })
    }

    /// Returns what is known of instances that a read at `now`, on the cloud's clock, does not show.
    /// `is_replaced` returns whether another instance has the name.
    pub(crate) async fn resolve_absent(
        &self,
        absent: Vec<Address>,
        now: Option<DateTime<Utc>>,
        is_replaced: impl Fn(&Address) -> bool,
    ) -> Result<Vec<InstanceInfo>, Failure> {
        let remembered = absent.iter().map(|at| self.absent_from_memory(at));
        let remembered: Vec<_> = remembered.collect();
        let remembered: Vec<_> = stream::iter(remembered)
            .buffered(self.options.concurrency.get() as usize)
            .try_collect()
            .await?;
        let both = || absent.iter().zip(&remembered);
        let unclear = both().filter(|(_, known)| !matches!(known, Absent::Known(_)));
        let unclear: Vec<_> = unclear.map(|(at, _)| at.clone()).collect();
        let histories = match self.histories_of(&unclear).await {
            Err(failure) if failure.is_throttled() => Histories::default(),
            read => read?,
        };
        let mut found = Vec::new();
        for (at, known) in absent.iter().zip(remembered) {
            let info = match known {
                Absent::Known(info) => info.map(|info| *info),
                Absent::Gone | Absent::Unclear => {
                    let history = summary_of(&histories, at.number);
                    self.remember_delete(&histories, at.number);
                    let info = self.absent_by_history(at, &history, now).await?;
                    match (info, known) {
                        (None, Absent::Gone) => {
                            convert::gone_info(at, "gone: no record of its end")
                        }
                        (None, _) if is_replaced(at) => {
                            convert::gone_info(at, "gone: another instance has its name")
                        }
                        (info, _) => info,
                    }
                }
            };
            if let Some(info) = &info {
                self.memory.record_end(at.number, info);
            }
            found.extend(info);
        }
        Ok(found)
    }

    /// Returns what this handle remembers of an instance that no read shows.
    async fn absent_from_memory(&self, at: &Address) -> Result<Absent, Failure> {
        if let Some(ended) = self.memory.end(at.number) {
            return Ok(Absent::Known(Some(Box::new(ended))));
        }
        let window = self.capabilities.consistency_window;
        let info =
            |history: &History| Absent::Known(convert::absent_info(at, history).map(Box::new));
        if let Some((operation, recent)) = self.memory.delete(at.number, window) {
            // It existed when the deletion was accepted. Past the window, a read that does not show it
            // is not from before that; past the window of its launch, it is not from before that either.
            if !recent || self.memory.is_older_than(at.number, window) {
                return Ok(info(&History::Deleted(history::DELETED.to_owned())));
            }
            match self.read_outcome(&at.zone, &operation).await? {
                Outcome::Running => return Ok(info(&History::Deleting)),
                Outcome::Succeeded | Outcome::Expired => {
                    return Ok(info(&History::Deleted(history::DELETED.to_owned())));
                }
                Outcome::Failed(_) => self.memory.forget_delete(at.number),
            }
        }
        let Some((operation, recent)) = self.memory.insert(at.number, window) else {
            return Ok(Absent::Unclear);
        };
        Ok(match self.read_outcome(&at.zone, &operation).await? {
            Outcome::Running => info(&History::Creating),
            Outcome::Failed(failure) => info(&History::CreateFailed(failure)),
            Outcome::Succeeded | Outcome::Expired if recent => Absent::Known(None),
            Outcome::Succeeded | Outcome::Expired => Absent::Gone,
        })
    }

    /// Returns what operations say about an instance that no read shows. One that was created is gone
    /// if its last operation ended before the consistency window, by the cloud's own clock.
    async fn absent_by_history(
        &self,
        at: &Address,
        history: &History,
        now: Option<DateTime<Utc>>,
    ) -> Result<Option<InstanceInfo>, Failure> {
        let History::Created(activity) = history else {
            return Ok(convert::absent_info(at, history));
        };
        let now = match now {
            Some(now) => Some(now),
            None => self.read_clock(at).await?,
        };
        let age = now.zip(activity.last_change);
        let age = age.and_then(|(now, last)| (now - last).to_std().ok());
        let is_gone = age.is_some_and(|age| age >= self.capabilities.consistency_window);
        let reason = activity.preemption.as_deref();
        let reason = reason.unwrap_or("gone: no record of its end");
        Ok(is_gone.then(|| convert::gone_info(at, reason)).flatten())
    }

    /// Reads the cloud's clock from the response to a read of an instance that does not exist. Returns
    /// `None` if it exists, or if the response has no date.
    async fn read_clock(&self, at: &Address) -> Result<Option<DateTime<Utc>>, Failure> {
        match self.client.get(&at.zone, &at.number.to_string()).await {
            Ok(_) => Ok(None),
            Err(failure) if failure.is_not_found() => Ok(failure.server_time),
            Err(failure) => Err(failure),
        }
    }

    /// Lists the operations on these instances. Sends nothing for none.
    async fn histories_of(&self, addresses: &[Address]) -> Result<Histories, Failure> {
        let numbers: BTreeSet<_> = addresses.iter().map(|at| at.number).collect();
        let numbers: Vec<_> = numbers.into_iter().collect();
        let zones = addresses.iter().map(|at| at.zone.as_str());
        self.histories(zones, &numbers).await
    }

    /// Remembers the deletion that operations show, so that later reads need no list.
    fn remember_delete(&self, histories: &Histories, number: u64) {
        let operations = histories.get(&number).into_iter().flatten();
        if let Some(delete) = operations.into_iter().find(|one| history::is_delete(one)) {
            self.memory.record_delete(delete);
        }
    }
}
