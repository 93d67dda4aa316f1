//! Counts the calls by operation, and records the latest ones.

use std::collections::{BTreeMap, VecDeque};

use serde::Serialize;

/// How many calls are recorded.
const MAX_RECORDS: usize = 10_000;

/// The maximum length of a recorded parameter, in characters. Longer values are cut.
const MAX_VALUE: usize = 256;

/// The record of one call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CallRecord {
    /// The operation.
    pub operation: String,
    /// The parameters, without credentials. Values of more than 256 characters are cut.
    pub parameters: BTreeMap<String, String>,
    /// The request id that the response names.
    pub request_id: String,
    /// The HTTP status of the response, whether it was delivered or not; `None` if the call was
    /// lost before its effect.
    pub status: Option<u16>,
    /// The error code, if the call was refused.
    pub code: Option<String>,
    /// The injected fault, in Rust's debug format.
    pub fault: Option<String>,
}

/// How many different unknown operations are counted by their names. Further ones are counted together.
const MAX_UNKNOWN: usize = 1_000;

/// The name under which further unknown operations are counted.
const OTHERS: &str = "others";

/// Counts and the latest records.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    counts: BTreeMap<&'static str, u64>,
    unknown: BTreeMap<String, u64>,
    latest: VecDeque<CallRecord>,
}

impl Calls {
    /// Counts a call.
    pub(crate) fn count(&mut self, operation: &'static str) {
        *self.counts.entry(operation).or_default() += 1;
    }

    /// Counts a request for an operation that is not emulated.
    pub(crate) fn count_unknown(&mut self, operation: &str) {
        let operation: String = operation.chars().take(MAX_VALUE).collect();
        let is_new = !self.unknown.contains_key(&operation);
        let operation = if is_new && self.unknown.len() >= MAX_UNKNOWN {
            OTHERS.to_owned()
        } else {
            operation
        };
        *self.unknown.entry(operation).or_default() += 1;
    }

    /// Records a call, and drops the oldest record if there are too many.
    pub(crate) fn record(&mut self, mut record: CallRecord) {
        let texts = std::iter::once(&mut record.operation).chain(record.parameters.values_mut());
        for value in texts {
            if value.len() > MAX_VALUE {
                *value = value.chars().take(MAX_VALUE).chain(['…']).collect();
            }
        }
        if self.latest.len() == MAX_RECORDS {
            self.latest.pop_front();
        }
        self.latest.push_back(record);
    }

    pub(crate) fn counts(&self) -> BTreeMap<String, u64> {
        let count = |(name, count): (&&str, &u64)| ((*name).to_owned(), *count);
        let mut counts = self.unknown.clone();
        counts.extend(self.counts.iter().map(count));
        counts
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
        for number in 0..=MAX_RECORDS {
            calls.count("CreateTags");
            calls.record(CallRecord {
                operation: number.to_string(),
                parameters: [("A".to_owned(), "x".repeat(MAX_VALUE + 1))].into(),
                request_id: String::new(),
                status: None,
                code: None,
                fault: None,
            });
        }
        let latest = calls.latest();
        assert_eq!(
            (latest.len(), latest[0].operation.as_str()),
            (MAX_RECORDS, "1")
        );
        assert_eq!(latest[0].parameters["A"].chars().count(), MAX_VALUE + 1);
        assert_eq!(calls.counts()["CreateTags"], MAX_RECORDS as u64 + 1);
    }

    #[test]
    fn unknown_operations_are_counted_within_a_bound() {
        let mut calls = Calls::default();
        for number in 0..MAX_UNKNOWN + 5 {
            calls.count_unknown(&format!("Unknown{number}"));
        }
        calls.count_unknown("Unknown0");
        let counts = calls.counts();
        assert_eq!(counts.len(), MAX_UNKNOWN + 1);
        assert_eq!((counts["Unknown0"], counts[OTHERS]), (2, 5));
    }
}
