//! The chart of a history: one line for each call, with a bar from when it was made to when it
//! returned, so that calls that overlap are seen at a glance.
//!
//! Owns the layout of the lines. It never judges them.

use std::time::Duration;

use super::check::Event;
use crate::transcript::seconds;

/// A call with its token, who made it, and when on the clock of the harness.
#[derive(Clone, Debug)]
pub(super) struct Recorded {
    /// The number of the token, from 0.
    pub(super) token: usize,
    /// The number of the caller, from 1; 0 for the list after all callers are done.
    pub(super) caller: usize,
    /// The number of the handle, from 1.
    pub(super) handle: usize,
    pub(super) from: Duration,
    pub(super) to: Duration,
    pub(super) event: Event,
}

/// Returns the lines, each after a line break, in the order in which the calls were made.
pub(super) fn chart(calls: &[&Recorded]) -> String {
    let mut calls = calls.to_vec();
    calls.sort_by_key(|call| call.event.start);
    // One column for each moment at which a call of the chart was made or returned.
    let moments = calls
        .iter()
        .flat_map(|call| [call.event.start, call.event.end]);
    let mut moments: Vec<_> = moments.collect();
    moments.sort_unstable();
    let column = |moment: u64| moments.partition_point(|other| *other < moment);
    let several_tokens = calls.iter().any(|call| call.token != calls[0].token);
    let period = |call: &Recorded| format!("{} to {}", seconds(call.from), seconds(call.to));
    let width = calls
        .iter()
        .map(|call| period(call).len())
        .max()
        .unwrap_or(0);
    let mut lines = String::new();
    for call in &calls {
        let (start, end) = (column(call.event.start), column(call.event.end));
        let bar = format!("{:start$}[{:=<2$}]", "", "", end - start - 1);
        let who = match call.caller {
            0 => "at the end".to_owned(),
            caller => format!("caller {caller}, handle {}", call.handle),
        };
        let token = match several_tokens {
            true => format!("token {}: ", call.token + 1),
            false => String::new(),
        };
        lines += &format!(
            "\n    {who:18}  {bar:columns$}  {:width$}  {token}{}",
            period(call),
            call.event,
            columns = moments.len(),
        );
    }
    lines
}

#[cfg(test)]
mod tests {
    use fleetwright::InstanceId;

    use super::{
        super::check::{CallResult, Request},
        *,
    };

    fn recorded(caller: usize, token: usize, (start, end): (u64, u64), event: Request) -> Recorded {
        let id = InstanceId::new("i-1").unwrap();
        let result = match event {
            Request::Launch(_) => CallResult::Instance(id),
            Request::Stop(_) | Request::Start(_) | Request::Terminate(_) => CallResult::Done,
            Request::List => CallResult::Live(None),
        };
        Recorded {
            token,
            caller,
            handle: 1,
            from: Duration::from_millis(start),
            to: Duration::from_millis(end),
            event: Event {
                requested: event,
                result,
                start,
                end,
            },
        }
    }

    #[test]
    fn overlapping_calls_have_overlapping_bars() {
        let id = InstanceId::new("i-1").unwrap();
        let launch = recorded(1, 0, (1, 4), Request::Launch(0));
        let end = recorded(2, 0, (3, 7), Request::Terminate(id));
        let list = recorded(0, 0, (9, 11), Request::List);
        assert_eq!(
            chart(&[&end, &launch, &list]),
            "\n    caller 1, handle 1  [=]     0.001s to 0.004s  launch with config 0 -> i-1\
             \n    caller 2, handle 1   [=]    0.003s to 0.007s  terminate i-1 -> ok\
             \n    at the end              []  0.009s to 0.011s  list -> nothing"
        );
    }

    #[test]
    fn several_tokens_are_named() {
        let one = recorded(1, 0, (1, 2), Request::Launch(0));
        let other = recorded(2, 1, (3, 4), Request::Launch(1));
        let text = chart(&[&one, &other]);
        assert!(text.contains("token 1: launch with config 0"), "{text}");
        assert!(text.contains("token 2: launch with config 1"), "{text}");
    }
}
