//! The calls of one clause and what came of them, for the message of a violation.
//!
//! Owns the lines and their limit. It never decides whether something is a violation.
//!
//! A line has the time since the clause started, on the clock of the harness: of one moment, or from
//! when a call was made to when it returned. Then it says who acted: `handle <number>`, where handles
//! are numbered in the order in which the clause opened them, `external actor`, `faults`, or nobody
//! for a note of the clause. Equal lines that follow each other are counted, and have the time from the
//! first to the last. Of a long transcript the first and the last lines are kept.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::DetectedBy;

/// The most lines that are kept from the beginning.
const FIRST: usize = 150;

/// The most lines that are kept from the end.
const LAST: usize = 250;

/// The calls of all handles of one clause, in the order in which they returned.
#[derive(Clone, Default)]
pub(crate) struct Transcript(Arc<Mutex<Log>>);

/// What the transcript has recorded so far.
#[derive(Default)]
struct Log {
    /// When the clause started. Unset before the runtime with the harness's clock exists.
    start: Option<Instant>,
    first: Vec<Line>,
    last: VecDeque<Line>,
    /// How many lines there were between the first and the last.
    left_out: usize,
    /// Whether later calls are ignored.
    closed: bool,
    /// How many handles were opened.
    handles: usize,
    /// The first call that panicked or never returned.
    broken: Option<String>,
    timed_out: bool,
    /// The delay of the throttling that the clause injects at the moment.
    injected_delay: Option<Duration>,
}

/// A line, and how often it was recorded in a row.
struct Line {
    text: String,
    times: u32,
    from: Duration,
    to: Duration,
}

impl Transcript {
    fn with<T>(&self, use_log: impl FnOnce(&mut Log) -> T) -> T {
        use_log(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Starts the clock of the lines. Called in the runtime of the clause, before its first call.
    pub(crate) fn start(&self) {
        self.with(|log| log.start = log.start.or_else(|| Some(Instant::now())));
    }

    /// Returns the lines with their times, and how many were left out.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.with(|log| {
            let width = log
                .first
                .iter()
                .chain(&log.last)
                .map(|line| line.period().len());
            let width = width.max().unwrap_or(0);
            let shown = |line: &Line| line.format(width);
            let mut lines: Vec<_> = log.first.iter().map(shown).collect();
            if log.left_out > 0 {
                lines.push(format!("... {} lines are left out ...", log.left_out));
            }
            lines.extend(log.last.iter().map(shown));
            lines
        })
    }

    /// Returns the first call that panicked or never returned. It breaks the contract, whatever the
    /// clause is about.
    pub(crate) fn broken(&self) -> Option<String> {
        self.with(|log| log.broken.clone())
    }

    /// Adds a line about this moment.
    pub(crate) fn note(&self, line: impl Into<String>) {
        self.note_since(Instant::now(), line);
    }

    /// Adds a line about something that began at `start` and has just ended, or counts it if the text
    /// equals that of the previous one.
    pub(crate) fn note_since(&self, start: Instant, line: impl Into<String>) {
        let (text, now) = (line.into(), Instant::now());
        self.with(|log| {
            if log.closed {
                return;
            }
            let zero = *log.start.get_or_insert(start);
            let (from, to) = (start.duration_since(zero), now.duration_since(zero));
            let previous = log.last.back_mut().or_else(|| log.first.last_mut());
            match previous.filter(|previous| previous.text == text) {
                Some(previous) => {
                    previous.times += 1;
                    previous.to = to;
                }
                None => log.push(Line {
                    text,
                    times: 1,
                    from,
                    to,
                }),
            }
        });
    }

    /// Says that the clause injects throttling with this delay, or that it has ended.
    pub(crate) fn set_injected_delay(&self, delay: Option<Duration>) {
        self.with(|log| log.injected_delay = delay);
    }

    /// Returns whether the clause itself may have caused a throttled call. It wants its error, and not a
    /// retry.
    pub(crate) fn is_injected(&self, delay: Duration) -> bool {
        self.with(|log| log.injected_delay.is_some_and(|injected| delay >= injected))
    }

    /// Ignores all later calls: calls after a violation do not explain it.
    pub(crate) fn close(&self) {
        self.with(|log| log.closed = true);
    }

    /// Returns [`DetectedBy::Timeout`] if a call did not return within the budget.
    pub(crate) fn detected_by(&self) -> Option<DetectedBy> {
        self.with(|log| log.timed_out.then_some(DetectedBy::Timeout))
    }

    /// Records a call, made at `start`, that did not return within the budget.
    pub(crate) fn record_timeout(&self, start: Instant, what: String) {
        self.with(|log| log.timed_out = true);
        self.record_violation(start, what);
    }

    /// Records a call, made at `start`, that breaks the contract in any clause, and ends the transcript.
    pub(crate) fn record_violation(&self, start: Instant, what: String) {
        self.note_since(start, what.clone());
        self.with(|log| log.broken = log.broken.take().or(Some(what)));
        self.close();
    }

    /// Returns the number of a new handle, from 1.
    pub(crate) fn next_handle(&self) -> usize {
        self.with(|log| {
            log.handles += 1;
            log.handles
        })
    }
}

impl Log {
    fn push(&mut self, line: Line) {
        if self.first.len() < FIRST {
            self.first.push(line);
            return;
        }
        self.last.push_back(line);
        if self.last.len() > LAST {
            self.last.pop_front();
            self.left_out += 1;
        }
    }
}

impl Line {
    fn period(&self) -> String {
        let (from, to) = (seconds(self.from), seconds(self.to));
        if from == to {
            from
        } else {
            format!("{from} to {to}")
        }
    }

    fn format(&self, width: usize) -> String {
        let Self { text, times, .. } = self;
        let period = self.period();
        match times {
            1 => format!("{period:width$}  {text}"),
            _ => format!("{period:width$}  {text} ({times} times)"),
        }
    }
}

/// Returns a duration in seconds with milliseconds, for instance `1.400s`.
pub(crate) fn seconds(duration: Duration) -> String {
    format!("{}.{:03}s", duration.as_secs(), duration.subsec_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_transcript_keeps_its_first_and_last_lines() {
        let transcript = Transcript::default();
        let many = FIRST + LAST + 7;
        for number in 1..=many {
            transcript.note(format!("call {number}"));
        }
        let lines = transcript.lines();
        assert_eq!(lines.len(), FIRST + LAST + 1);
        assert!(lines[0].ends_with(" call 1"), "{}", lines[0]);
        assert_eq!(lines[FIRST], "... 7 lines are left out ...");
        let last = lines.last().unwrap();
        assert!(last.ends_with(&format!(" call {many}")), "{last}");
    }

    #[tokio::test(start_paused = true)]
    async fn equal_lines_are_counted_and_have_the_whole_time() {
        let transcript = Transcript::default();
        transcript.start();
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        for _ in 0..3 {
            let start = Instant::now();
            tokio::time::sleep(Duration::from_secs(1)).await;
            transcript.note_since(start, "same");
        }
        transcript.note("other");
        transcript.close();
        transcript.note("ignored");
        let lines = transcript.lines();
        assert_eq!(
            lines,
            [
                "1.500s to 4.500s  same (3 times)",
                "4.500s            other"
            ]
        );
    }
}
