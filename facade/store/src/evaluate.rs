//! The evaluation of a transaction, shared by all stores.
//!
//! Validates a transaction on its own ([`Prepared::new`]), then evaluates its checks against a
//! [`View`] of the store ([`Prepared::evaluate`]). It never writes: the store applies the writes if
//! nothing failed, in the same exclusive section as the evaluation.
//!
//! The order is part of the contract: checks first, in their order, then the unique values of the
//! writes. The first failure is the conflict (TXN-06).

use std::collections::BTreeMap;

use crate::{
    Check, Claim, Conflict, Entry, Found, Holds, IndexName, Invalid, Json, Key, Kind, Part,
    RecordId, Result, Revision, Schema, Transaction, Write,
    limits::{self, MAX_OPERATIONS, MAX_TRANSACTION_BYTES},
};

/// The state that a transaction is evaluated against.
///
/// All results must be from one moment, which lasts until the writes are applied. [`Prepared`] has an example.
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

/// A valid transaction, with everything that can be computed without the store's state. It shares the transaction's names and
/// values, so it can be sent to the thread that writes.
///
/// ```
/// use fleetwright_store::{Check, IndexName, Key, Kind, Prepared, RecordId, Result, Revision, Schema, Transaction, View};
/// use serde_json::json;
///
/// struct Empty; // the view of a store without records
///
/// impl View for Empty {
///     fn revision(&mut self, _: &RecordId) -> Result<Option<Revision>> {
///         Ok(None)
///     }
///     fn find_two_holders(&mut self, _: &Kind, _: &IndexName, _: &[u8]) -> Result<Vec<Key>> {
///         Ok(Vec::new())
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let schema = Schema::builder().kind("server").build()?;
/// let id = RecordId::new("server", "s-1")?;
///
/// let create = Transaction::new().create(id.clone(), json!({}));
/// let prepared = Prepared::new(&create, &schema)?;
/// prepared.evaluate(&mut Empty)?;
/// assert_eq!(prepared.writes().len(), 1); // the store applies them
///
/// let replace = Transaction::new().check(Check::Exists(id));
/// assert!(Prepared::new(&replace, &schema)?.evaluate(&mut Empty).is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Prepared {
    checks: Vec<(Check, Vec<u8>)>,
    writes: Vec<PreparedWrite>,
}

/// One write of a [`Prepared`] transaction.
#[derive(Debug)]
pub struct PreparedWrite {
    /// The record.
    pub id: RecordId,
    /// The new value, or `None` for a delete.
    pub put: Option<PreparedPut>,
}

/// The new value of a record.
#[derive(Debug)]
pub struct PreparedPut {
    /// The value.
    pub value: Json,
    /// The value as JSON text.
    pub json: String,
    /// Its entries in the indexes of its kind.
    pub entries: Vec<Entry>,
}

impl Prepared {
    /// Validates everything that does not depend on the stored state.
    ///
    /// # Errors
    ///
    /// The transaction is invalid: unknown kinds or indexes, limits exceeded, or contradicting
    /// writes.
    pub fn new(transaction: &Transaction, schema: &Schema) -> Result<Self, Invalid> {
        let Transaction { checks, writes } = transaction;
        for (what, count) in [("checks", checks.len()), ("writes", writes.len())] {
            if count > MAX_OPERATIONS {
                return Err(Invalid::new(format!(
                    "the transaction has {count} {what}, more than {MAX_OPERATIONS}"
                )));
            }
        }
        let prepared = Self {
            checks: prepare_all(checks, Part::Check, |check| prepare_check(check, schema))?,
            writes: prepare_all(writes, Part::Write, |write| prepare_write(write, schema))?,
        };
        prepared.check_size()?;
        prepared.check_records_differ()?;
        prepared.check_claims_differ()?;
        Ok(prepared)
    }

    /// Returns the writes to apply after [`evaluate`](Self::evaluate) succeeded.
    pub fn writes(&self) -> &[PreparedWrite] {
        &self.writes
    }

    /// Evaluates the checks in order, then the unique values.
    ///
    /// # Errors
    ///
    /// The first failed check or the first unique value that is taken, as a conflict; or the view
    /// failed.
    pub fn evaluate(&self, view: &mut impl View) -> Result<()> {
        for (position, (check, prefix)) in self.checks.iter().enumerate() {
            if let Some(found) = find_obstacle(check, prefix, view)? {
                let (part, check) = (Part::Check(position), check.clone());
                return Err(Conflict { part, check, found }.into());
            }
        }
        for (position, write) in self.writes.iter().enumerate() {
            for entry in write.unique_entries() {
                self.require_unclaimed(position, &write.id, entry, view)?;
            }
        }
        Ok(())
    }

    /// Requires that no record has a unique value, except for records that this transaction writes.
    fn require_unclaimed(
        &self,
        position: usize,
        id: &RecordId,
        entry: &Entry,
        view: &mut impl View,
    ) -> Result<()> {
        // A record that the same transaction writes releases its old values.
        let releases = |key: &Key| {
            let written = |write: &PreparedWrite| write.id.kind == id.kind && write.id.key == *key;
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

    /// Checks the sum of the values.
    fn check_size(&self) -> Result<(), Invalid> {
        let puts = self.writes.iter().filter_map(|write| write.put.as_ref());
        let bytes: usize = puts.map(|put| put.json.len()).sum();
        if bytes > MAX_TRANSACTION_BYTES {
            return Err(Invalid::new(format!(
                "the values have {bytes} bytes together, more than {MAX_TRANSACTION_BYTES}"
            )));
        }
        Ok(())
    }

    /// Checks that no two writes change the same record: it would be undefined which one wins.
    fn check_records_differ(&self) -> Result<(), Invalid> {
        let mut positions = BTreeMap::new();
        for (position, write) in self.writes.iter().enumerate() {
            if let Some(before) = positions.insert(&write.id, position) {
                return Err(Invalid::new(format!(
                    "writes {before} and {position} both change {}",
                    write.id
                )));
            }
        }
        Ok(())
    }

    /// Checks that no two writes claim the same unique value.
    fn check_claims_differ(&self) -> Result<(), Invalid> {
        let mut positions = BTreeMap::new();
        for (position, write) in self.writes.iter().enumerate() {
            for entry in write.unique_entries() {
                let claim = (&write.id.kind, &entry.index, &entry.bytes);
                if let Some(before) = positions.insert(claim, position) {
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

impl PreparedWrite {
    /// Returns the entries in unique indexes.
    fn unique_entries(&self) -> impl Iterator<Item = &Entry> {
        let entries = self.put.iter().flat_map(|put| &put.entries);
        entries.filter(|entry| entry.holds == Holds::One)
    }
}

/// Prepares every item. An error names the part and its position.
fn prepare_all<T, U>(
    items: &[T],
    part: fn(usize) -> Part,
    prepare: impl Fn(&T) -> Result<U, Invalid>,
) -> Result<Vec<U>, Invalid> {
    let each = items
        .iter()
        .enumerate()
        .map(|(position, item)| prepare(item).map_err(|invalid| invalid.within(part(position))));
    each.collect()
}

/// Checks the kind and the index, and encodes the claimed value.
fn prepare_check(check: &Check, schema: &Schema) -> Result<(Check, Vec<u8>), Invalid> {
    let prefix = match check {
        Check::Absent(id) | Check::Exists(id) | Check::At(id, _) => {
            schema.indexes(&id.kind)?;
            Vec::new()
        }
        Check::Unclaimed(claim) => schema.prefix(&claim.kind, &claim.index, &claim.value)?,
    };
    Ok((check.clone(), prefix))
}

/// Checks the kind and the limits, and computes the JSON text and the index entries.
fn prepare_write(write: &Write, schema: &Schema) -> Result<PreparedWrite, Invalid> {
    let id = write.id();
    schema.indexes(&id.kind)?;
    let put = match write {
        Write::Put(_, value) => Some(PreparedPut {
            value: value.clone(),
            json: limits::to_json(value).map_err(|invalid| invalid.within(id))?,
            entries: schema
                .entries(&id.kind, value)
                .map_err(|invalid| invalid.within(id))?,
        }),
        Write::Delete(_) => None,
    };
    let id = id.clone();
    Ok(PreparedWrite { id, put })
}

/// Returns what contradicts a check, or `None` if it holds.
fn find_obstacle(check: &Check, prefix: &[u8], view: &mut impl View) -> Result<Option<Found>> {
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
