//! The evaluation of a transaction, shared by all stores.
//!
//! Validates a transaction on its own, then evaluates its checks against a [`View`] of the store. It
//! never writes: the store carries out the writes if nothing failed.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    Check, Claim, Conflict, Entry, Found, Holds, IndexName, Invalid, Key, Kind, Part, RecordId,
    Result, Revision, Schema, Transaction, Write,
    limits::{self, MAX_OPERATIONS, MAX_TRANSACTION_BYTES},
};

/// The state that a transaction is evaluated against.
///
/// All results must be from one moment, which lasts until the writes are carried out.
pub trait View {
    /// Returns the revision of a record, or `None` if it does not exist.
    fn revision(&mut self, id: &RecordId) -> Result<Option<Revision>>;

    /// Returns up to two records whose value in the index starts with `prefix`.
    fn find_two_holders(
        &mut self,
        kind: &Kind,
        index: &IndexName,
        prefix: &[u8],
    ) -> Result<Vec<Key>>;
}

/// A valid transaction, with everything that can be computed without the store's state.
#[derive(Debug)]
pub struct Prepared<'t> {
    checks: Vec<(&'t Check, Vec<u8>)>,
    writes: Vec<PreparedWrite<'t>>,
}

/// One write of a [`Prepared`] transaction.
#[derive(Debug)]
pub struct PreparedWrite<'t> {
    /// The record.
    pub id: &'t RecordId,
    /// The new value, or `None` for a delete.
    pub put: Option<PreparedPut<'t>>,
}

/// The new value of a record.
#[derive(Debug)]
pub struct PreparedPut<'t> {
    /// The value.
    pub value: &'t Value,
    /// The value as JSON text.
    pub json: String,
    /// Its entries in the indexes of its kind.
    pub entries: Vec<Entry>,
}

impl<'t> Prepared<'t> {
    /// Validates everything that does not depend on the stored state.
    ///
    /// # Errors
    ///
    /// The transaction is invalid: unknown kinds or indexes, limits exceeded, or contradicting writes.
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
        prepared.check_size()?;
        prepared.writes_no_record_twice()?;
        prepared.claims_nothing_twice()?;
        Ok(prepared)
    }

    /// Returns the writes to carry out after [`evaluate`](Self::evaluate) succeeded.
    pub fn writes(&self) -> &[PreparedWrite<'t>] {
        &self.writes
    }

    /// Evaluates the checks in order, then the unique values.
    ///
    /// # Errors
    ///
    /// The first failed check or the first unique value that is taken, as a conflict; or the view failed.
    pub fn evaluate(&self, view: &mut impl View) -> Result<()> {
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
        // A record that the same transaction writes releases its old values.
        let releases = |key: &Key| {
            let written =
                |write: &PreparedWrite<'_>| write.id.kind == id.kind && write.id.key == *key;
            self.writes.iter().any(written)
        };
        let holders = view.find_two_holders(&id.kind, &entry.index, &entry.bytes)?;
        let Some(holder) = holders.into_iter().find(|key| !releases(key)) else {
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

    fn check_size(&self) -> Result<(), Invalid> {
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
            let holders = view.find_two_holders(&claim.kind, &claim.index, prefix)?;
            let counts = |key: &Key| claim.except.as_ref() != Some(key);
            holders.into_iter().find(counts).map(Found::HeldBy)
        }
    })
}
