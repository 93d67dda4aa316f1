//! The calls that were made: how many of each operation, and what the latest ones said.

use std::collections::{BTreeMap, VecDeque};

use serde::Serialize;

/// How many calls are kept in full.
const KEPT: usize = 10_000;

/// The longest value that is kept in full.
const LONGEST: usize = 256;

/// One call, as a tap on the wire saw it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CallRecord {
    /// The operation.
    pub operation: String,
    /// Its parameters, without those that prove who asks; long values are cut.
    pub parameters: BTreeMap<String, String>,
    /// The id of the request.
    pub request_id: String,
    /// The status that it came to, whether the reply arrived or not; none if it did not get so far.
    pub status: Option<u16>,
    /// The code of its refusal.
    pub code: Option<String>,
    /// The fault that struck it.
    pub fault: Option<String>,
}

/// Counts and the latest records.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    counts: BTreeMap<&'static str, u64>,
    latest: VecDeque<CallRecord>,
}

impl Calls {
    /// Counts a call.
    pub(crate) fn count(&mut self, operation: &'static str) {
        *self.counts.entry(operation).or_default() += 1;
    }

    /// Keeps a call's record.
    pub(crate) fn keep(&mut self, mut record: CallRecord) {
        for value in record.parameters.values_mut() {
            if value.len() > LONGEST {
                *value = value.chars().take(LONGEST).chain(['…']).collect();
            }
        }
        if self.latest.len() == KEPT {
            self.latest.pop_front();
        }
        self.latest.push_back(record);
    }

    pub(crate) fn counts(&self) -> BTreeMap<String, u64> {
        let count = |(name, count): (&&str, &u64)| ((*name).to_owned(), *count);
        self.counts.iter().map(count).collect()
    }

    pub(crate) fn latest(&self) -> Vec<CallRecord> {
        self.latest.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_bounded_in_number_and_length() {
        let mut calls = Calls::default();
        for number in 0..=KEPT {
            calls.count("CreateTags");
            calls.keep(CallRecord {
                operation: number.to_string(),
                parameters: [("A".to_owned(), "x".repeat(LONGEST + 1))].into(),
                request_id: String::new(),
                status: None,
                code: None,
                fault: None,
            });
        }
        let latest = calls.latest();
        assert_eq!((latest.len(), latest[0].operation.as_str()), (KEPT, "1"));
        assert_eq!(latest[0].parameters["A"].chars().count(), LONGEST + 1);
        assert_eq!(calls.counts()["CreateTags"], KEPT as u64 + 1);
    }
}
