//! The records of the instances, by number.
//!
//! Numbers grow, so neighbours in time are neighbours here: a page has the records of a range of numbers, and a look-up reads one slot
//! of it. There are few pages, so that finding one stays in the processor's caches with a hundred thousand records.

use std::collections::BTreeMap;

use super::{Record, Seq};

/// How many numbers a page has.
const PAGE: u64 = 256;

/// The records in the order of launch.
#[derive(Debug, Default)]
pub(crate) struct Records {
    /// By the number of the page. None is empty.
    pages: BTreeMap<u64, Page>,
}

#[derive(Debug)]
struct Page {
    slots: Box<[Option<Box<Record>>]>,
    used: usize,
}

impl Records {
    pub(super) fn get(&self, seq: &Seq) -> Option<&Record> {
        let page = self.pages.get(&(seq / PAGE))?;
        page.slots.get(slot(seq))?.as_deref()
    }

    pub(super) fn get_mut(&mut self, seq: &Seq) -> Option<&mut Record> {
        let page = self.pages.get_mut(&(seq / PAGE))?;
        page.slots.get_mut(slot(seq))?.as_deref_mut()
    }

    /// Adds a record with a new number.
    pub(super) fn insert(&mut self, seq: Seq, record: Record) {
        let page = self.pages.entry(seq / PAGE).or_insert_with(Page::empty);
        if let Some(free) = page.slots.get_mut(slot(&seq)) {
            *free = Some(Box::new(record));
            page.used += 1;
        }
    }

    pub(super) fn remove(&mut self, seq: &Seq) -> Option<Box<Record>> {
        let page = self.pages.get_mut(&(seq / PAGE))?;
        let removed = page.slots.get_mut(slot(seq))?.take()?;
        page.used -= 1;
        if page.used == 0 {
            self.pages.remove(&(seq / PAGE));
        }
        Some(removed)
    }

    /// Returns the records in the order of launch.
    pub(crate) fn values(&self) -> impl Iterator<Item = &Record> {
        let slots = self.pages.values().flat_map(|page| &page.slots);
        slots.filter_map(|slot| slot.as_deref())
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }
}

impl Page {
    fn empty() -> Self {
        Self {
            slots: (0..PAGE).map(|_| None).collect(),
            used: 0,
        }
    }
}

/// The remainder is less than a page, so the cast loses nothing.
fn slot(seq: &Seq) -> usize {
    (seq % PAGE) as usize
}
