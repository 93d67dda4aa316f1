//! The meaning of a transaction, once for all stores: what is wrong with it in itself, and what of it does
//! not hold. Pure; a store gives the view and carries out what is left.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    Check, Claim, Conflict, Entry, Found, Holds, IndexName, Invalid, Key, Kind, Part, RecordId,
    Result, Revision, Schema, Transaction, Write,
    limits::{self, MAX_OPERATIONS, MAX_TRANSACTION_BYTES},
};

/// What the judge looks at. All answers are of one moment, and that moment lasts until the writes are
/// carried out.
pub trait View {
    /// The revision of a record, if it is there.
    fn revision(&mut self, id: &RecordId) -> Result<Option<Revision>>;

    /// Some of the records that have something beginning with `prefix` under an index: two, or all if there
    /// are fewer.
    fn two_holders(&mut self, kind: &Kind, index: &IndexName, prefix: &[u8]) -> Result<Vec<Key>>;
}

/// A transaction that is right in itself, with all that can be known without looking.
#[derive(Debug)]
pub struct Prepared<'t> {
    checks: Vec<(&'t Check, Vec<u8>)>,
    writes: Vec<PreparedWrite<'t>>,
}

/// One write of a [`Prepared`] transaction.
#[derive(Debug)]
pub struct PreparedWrite<'t> {
    /// Which record.
    pub id: &'t RecordId,
    /// What it becomes; nothing if it is deleted.
    pub put: Option<PreparedPut<'t>>,
}

/// What a record becomes.
#[derive(Debug)]
pub struct PreparedPut<'t> {
    /// What it says.
    pub value: &'t Value,
    /// The same as JSON.
    pub json: String,
    /// What it has under the indexes of its kind.
    pub entries: Vec<Entry>,
}

impl<'t> Prepared<'t> {
    /// Checks all that does not depend on what is stored.
    pub fn new(transaction: &'t Transaction, schema: &Schema) -> Result<Self, Invalid> {
        let Transaction { checks, writes } = transaction;
        for (what, count) in [("checks", checks.len()), ("writes", writes.len())] {
            if count > MAX_OPERATIONS {
                return Err(Invalid::new(format!(
                    "{count} {what}, more than {MAX_OPERATIONS}"
                )));
            }
        }
        let prepared = Self {
            checks: numbered(checks, Part::Check, |check| prepare_check(check, schema))?,
            writes: numbered(writes, Part::Write, |write| prepare_write(write, schema))?,
        };
        prepared.is_small_enough()?;
        prepared.writes_no_record_twice()?;
        prepared.claims_nothing_twice()?;
        Ok(prepared)
    }

    /// What is to be carried out if [`judge`](Self::judge) finds nothing against it.
    pub fn writes(&self) -> &[PreparedWrite<'t>] {
        &self.writes
    }

    /// Finds the first check that does not hold, then the first unique value that is taken.
    pub fn judge(&self, view: &mut impl View) -> Result<()> {
        for (position, (check, prefix)) in self.checks.iter().enumerate() {
            if let Some(found) = what_is_against(check, prefix, view)? {
                let (part, check) = (Part::Check(position), (*check).clone());
                return Err(Conflict { part, check, found }.into());
            }
        }
        for (position, write) in self.writes.iter().enumerate() {
            for entry in write.unique_entries() {
                self.is_unclaimed(position, write.id, entry, view)?;
            }
        }
        Ok(())
    }

    fn is_unclaimed(
        &self,
        position: usize,
        id: &RecordId,
        entry: &Entry,
        view: &mut impl View,
    ) -> Result<()> {
        // Who is written by the same transaction gives up what it held.
        let gives_up = |key: &Key| {
            let written =
                |write: &PreparedWrite<'_>| write.id.kind == id.kind && write.id.key == *key;
            self.writes.iter().any(written)
        };
        let holders = view.two_holders(&id.kind, &entry.index, &entry.bytes)?;
        let Some(holder) = holders.into_iter().find(|key| !gives_up(key)) else {
            return Ok(());
        };
        let claim = Claim::new(id.kind.clone(), entry.index.clone(), entry.value.clone());
        let conflict = Conflict {
            part: Part::Write(position),
            check: Check::Unclaimed(claim),
            found: Found::HeldBy(holder),
        };
        Err(conflict.into())
    }

    fn is_small_enough(&self) -> Result<(), Invalid> {
        let puts = self.writes.iter().filter_map(|write| write.put.as_ref());
        let bytes: usize = puts.map(|put| put.json.len()).sum();
        if bytes > MAX_TRANSACTION_BYTES {
            return Err(Invalid::new(format!(
                "values of {bytes} bytes in all, more than {MAX_TRANSACTION_BYTES}"
            )));
        }
        Ok(())
    }

    fn writes_no_record_twice(&self) -> Result<(), Invalid> {
        let mut seen = BTreeMap::new();
        for (position, write) in self.writes.iter().enumerate() {
            if let Some(before) = seen.insert(write.id, position) {
                return Err(Invalid::new(format!(
                    "writes {before} and {position} are both of {}",
                    write.id
                )));
            }
        }
        Ok(())
    }

    fn claims_nothing_twice(&self) -> Result<(), Invalid> {
        let mut seen = BTreeMap::new();
        for (position, write) in self.writes.iter().enumerate() {
            for entry in write.unique_entries() {
                let claim = (&write.id.kind, &entry.index, &entry.bytes);
                if let Some(before) = seen.insert(claim, position) {
                    return Err(Invalid::new(format!(
                        "writes {before} and {position} both claim {} of {} = {}",
                        entry.index, write.id.kind, entry.value
                    )));
                }
            }
        }
        Ok(())
    }
}

impl PreparedWrite<'_> {
    fn unique_entries(&self) -> impl Iterator<Item = &Entry> {
        let entries = self.put.iter().flat_map(|put| &put.entries);
        entries.filter(|entry| entry.holds == Holds::One)
    }
}

fn numbered<'t, T, U>(
    items: &'t [T],
    part: fn(usize) -> Part,
    prepare: impl Fn(&'t T) -> Result<U, Invalid>,
) -> Result<Vec<U>, Invalid> {
    let each = items
        .iter()
        .enumerate()
        .map(|(position, item)| prepare(item).map_err(|invalid| invalid.within(part(position))));
    each.collect()
}

fn prepare_check<'t>(check: &'t Check, schema: &Schema) -> Result<(&'t Check, Vec<u8>), Invalid> {
    let prefix = match check {
        Check::Absent(id) | Check::Exists(id) | Check::At(id, _) => {
            schema.indexes(&id.kind)?;
            Vec::new()
        }
        Check::Unclaimed(claim) => schema.prefix(&claim.kind, &claim.index, &claim.value)?,
    };
    Ok((check, prefix))
}

fn prepare_write<'t>(write: &'t Write, schema: &Schema) -> Result<PreparedWrite<'t>, Invalid> {
    let id = write.id();
    schema.indexes(&id.kind)?;
    let put = match write {
        Write::Put(_, value) => Some(PreparedPut {
            value,
            json: limits::written(value).map_err(|invalid| invalid.within(id))?,
            entries: schema
                .entries(&id.kind, value)
                .map_err(|invalid| invalid.within(id))?,
        }),
        Write::Delete(_) => None,
    };
    Ok(PreparedWrite { id, put })
}

fn what_is_against(check: &Check, prefix: &[u8], view: &mut impl View) -> Result<Option<Found>> {
    Ok(match check {
        Check::Absent(id) => view.revision(id)?.map(Found::At),
        Check::Exists(id) => match view.revision(id)? {
            Some(_) => None,
            None => Some(Found::Absent),
        },
        Check::At(id, wanted) => match view.revision(id)? {
            Some(revision) if revision == *wanted => None,
            Some(revision) => Some(Found::At(revision)),
            None => Some(Found::Absent),
        },
        Check::Unclaimed(claim) => {
            let holders = view.two_holders(&claim.kind, &claim.index, prefix)?;
            let counts = |key: &Key| claim.except.as_ref() != Some(key);
            holders.into_iter().find(counts).map(Found::HeldBy)
        }
    })
}
