//! Histories: concurrent launches, stops, starts and terminates, recorded and checked.
//!
//! Two to four callers, each with up to five calls, act on two tokens at the same time through two
//! handles. For every call the history has the request, the result, and two ticks of a logical
//! clock: one when the call was made and one when it returned. At the end a list of each token is
//! added as one more call.
//!
//! For each token there must be an order of its calls that respects which call returned before
//! which other one was made, and in which a cloud that does one thing at a time would have returned
//! the same results. The module `check` searches for it.
//!
//! Three rules decide what counts:
//!
//! * A call that was refused without effect, for a reason that has nothing to do with the token, is
//!   left out: it can be anywhere in the order.
//! * If the outcome of a call is unknown, the history of its token is not checked, because any
//!   order may explain it.
//! * No id may be returned to launches with different tokens.
//!
//! The cases depend on a seed alone (the module `seed`). Time passes only where a caller pauses, so
//! a case is the same in every run in virtual time.

mod chart;
mod check;

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    sync::Arc,
    time::Duration,
};

use fleetwright::{
    Effect, ErrorKind, InstanceConfig, InstanceId, InstanceProvisioner, ProvisionError,
};
use futures_util::future::join_all;
use proptest::prelude::*;
use tokio::time::Instant;

use chart::{Recorded, chart};
use check::{CallResult, Event, Request, Rules, is_linearizable};

use crate::{
    Context, Factory, Failure, Outcome, Pass, Time, context::names, seed, suite::run_case,
};

/// How many tokens the callers share.
const TOKENS: usize = 2;

/// The next call of one caller, as generated.
#[derive(Clone, Copy, Debug)]
struct PlannedCall {
    /// The number of the token, from 0.
    token: usize,
    verb: Verb,
    /// How long the caller waits before the call: 0 to 7 milliseconds. Different pauses change which
    /// calls of different callers overlap.
    pause: Duration,
}

/// A kind of call. All but a launch use the id that a launch with the token last returned.
#[derive(Clone, Copy, Debug)]
enum Verb {
    /// With one config of the token or the other: 0 or 1.
    Launch(u8),
    Stop,
    Start,
    Terminate,
}

/// Runs the clause: 64 cases in virtual time, 8 in real time, each on a fresh account.
pub(crate) fn run(factory: &Factory) -> Outcome {
    let cases = match factory().time() {
        Time::Virtual => 64,
        Time::Real => 8,
    };
    let callers = prop::collection::vec(prop::collection::vec(planned_call(), 1..6), 2..5);
    seed::for_all("CONCURRENCY-04", cases, &callers, |callers| {
        run_case(factory, "CONCURRENCY-04", async |cx| {
            execute_case(cx, &callers).await
        })
        .map(drop)
    })
}

/// Generates one call. Launches are the most frequent, because they make everything else possible.
fn planned_call() -> impl Strategy<Value = PlannedCall> {
    let verb = prop_oneof![
        4 => (0_u8..2).prop_map(Verb::Launch),
        2 => Just(Verb::Terminate),
        2 => Just(Verb::Stop),
        1 => Just(Verb::Start),
    ];
    (0..TOKENS, verb, 0_u64..8).prop_map(|(token, verb, pause)| {
        let pause = Duration::from_millis(pause);
        PlannedCall { token, verb, pause }
    })
}

/// What the callers of a case share: the configs of the tokens, the id that each token was last known
/// for, the calls so far, and the logical clock that orders them.
struct History {
    configs: Vec<[InstanceConfig; 2]>,
    known: RefCell<BTreeMap<usize, InstanceId>>,
    events: RefCell<Vec<Recorded>>,
    clock: Cell<u64>,
    /// When the callers started.
    zero: Instant,
}

/// Who makes a call, and when it was made: on the logical clock and on that of the harness.
#[derive(Clone, Copy)]
struct Begun {
    /// The number of the caller, from 1; 0 after all callers are done.
    caller: usize,
    /// The number of the handle, from 1.
    handle: usize,
    start: u64,
    from: Duration,
}

impl History {
    /// Advances the clock by one and returns its time.
    fn next_time(&self) -> u64 {
        self.clock.set(self.clock.get() + 1);
        self.clock.get()
    }

    /// Starts the record of a call that is about to be made.
    fn begin(&self, caller: usize, handle: usize) -> Begun {
        Begun {
            caller,
            handle,
            start: self.next_time(),
            from: self.zero.elapsed(),
        }
    }

    /// Adds a call that has just returned.
    fn add(&self, token: usize, requested: Request, result: CallResult, begun: Begun) {
        let event = Event {
            requested,
            result,
            start: begun.start,
            end: self.next_time(),
        };
        self.events.borrow_mut().push(Recorded {
            token,
            caller: begun.caller,
            handle: begun.handle,
            from: begun.from,
            to: self.zero.elapsed(),
            event,
        });
    }

    /// Returns the violation `observed`, with the chart of the calls with this token, or of all calls.
    fn violation(&self, observed: &str, token: Option<usize>) -> Failure {
        let events = self.events.borrow();
        let ours = events.iter();
        let ours = ours.filter(|recorded| token.is_none_or(|token| token == recorded.token));
        let ours: Vec<_> = ours.collect();
        Failure::violated(format!("{observed}; the calls were:{}", chart(&ours)))
    }
}

/// Carries out one case: all callers concurrently, then a list of each token, then the check.
async fn execute_case(cx: &Context, callers: &[Vec<PlannedCall>]) -> Outcome {
    let configs = (0..TOKENS).map(|token| configs(cx, token));
    let history = History {
        configs: configs.collect::<Result<_, Failure>>()?,
        known: RefCell::default(),
        events: RefCell::default(),
        clock: Cell::new(0),
        zero: Instant::now(),
    };
    let handles = [cx.shared_provisioner(), cx.open_handle().await];
    let calling = callers.iter().enumerate().map(|(number, moves)| {
        let at = number % handles.len();
        let handle = Arc::clone(&handles[at]);
        let history = &history;
        async move {
            for planned in moves {
                cx.advance_time(planned.pause).await;
                call(&*handle, history, planned, (number + 1, at + 1)).await;
            }
        }
    });
    join_all(calling).await;
    cx.wait_for_consistent_reads().await;
    for token in 0..TOKENS {
        record_list(cx, &history, token).await?;
    }
    let rules = Rules {
        tokens_may_be_forgotten: history.zero.elapsed() >= cx.capabilities().token_after_terminate,
        records_may_be_forgotten: history.zero.elapsed() >= cx.capabilities().terminated_visible,
    };
    require_linearizable(&history, rules)?;
    Ok(Pass::Held)
}

/// Returns two configs for one token. A tag distinguishes them from those of other tokens.
fn configs(cx: &Context, token: usize) -> Result<[InstanceConfig; 2], Failure> {
    let mut config = cx.config_with_token();
    let tagged = config.tags.insert("kit-token", token.to_string());
    tagged.map_err(|error| Failure::KitError(error.to_string()))?;
    let mut other = config.clone();
    let tagged = other.tags.insert("kit-other", "yes");
    tagged.map_err(|error| Failure::KitError(error.to_string()))?;
    Ok([config, other])
}

/// Makes a call and records it. Without a known id, only a launch is made. `who` is the number of the
/// caller and of its handle.
async fn call(
    handle: &dyn InstanceProvisioner,
    history: &History,
    planned: &PlannedCall,
    who: (usize, usize),
) {
    let window = handle.capabilities().consistency_window;
    let known = history.known.borrow().get(&planned.token).cloned();
    let begun = history.begin(who.0, who.1);
    if let Verb::Launch(config) = planned.verb {
        let result = handle
            .launch_instance(&history.configs[planned.token][usize::from(config)])
            .await;
        if let Ok(info) = &result {
            history
                .known
                .borrow_mut()
                .insert(planned.token, info.id.clone());
        }
        let result = call_result(result.map(|info| CallResult::Instance(info.id)), window);
        history.add(planned.token, Request::Launch(config), result, begun);
        return;
    }
    let Some(id) = known else { return };
    let (requested, result) = match planned.verb {
        Verb::Stop => (Request::Stop(id.clone()), handle.stop_instance(&id).await),
        Verb::Start => {
            let result = handle.start_instance(&id).await.map(drop);
            (Request::Start(id), result)
        }
        Verb::Terminate | Verb::Launch(_) => {
            let result = handle.terminate_instance(&id).await;
            (Request::Terminate(id), result)
        }
    };
    history.add(
        planned.token,
        requested,
        call_result(result.map(|()| CallResult::Done), window),
        begun,
    );
}

/// Records the list of a token after all callers are done. Two live instances are a violation.
async fn record_list(cx: &Context, history: &History, token: usize) -> Result<(), Failure> {
    let begun = history.begin(0, 1);
    let mut filter = cx.filter();
    for (key, value) in &history.configs[token][0].tags {
        // They were valid in a `Tags` before.
        let _ = filter.tags.insert(key, value);
    }
    let mut list = cx.list(&filter).await?;
    list.retain(|info| !info.state.is_ending());
    if list.len() > 1 {
        let observed = format!("one token has {} at the same time", names(&list));
        return Err(history.violation(&observed, Some(token)));
    }
    let observed = CallResult::Live(list.pop().map(|info| info.id));
    history.add(token, Request::List, observed, begun);
    Ok(())
}

/// Translates a result into the terms of the check. Errors that say nothing about the token become
/// [`CallResult::Refused`] or, if there may be an effect, [`CallResult::Unknown`]. `window` is the
/// consistency window.
fn call_result(result: Result<CallResult, ProvisionError>, window: Duration) -> CallResult {
    let kinds = [
        (ErrorKind::TokenConflict, CallResult::TokenConflict),
        (ErrorKind::TokenSpent, CallResult::TokenSpent),
        (ErrorKind::WrongState, CallResult::WrongState),
        (ErrorKind::NotFound, CallResult::NotFound),
    ];
    result.unwrap_or_else(|error| {
        // Within the window, not found says nothing about an instance that another handle launched.
        let hidden = error.kind() == ErrorKind::NotFound && !window.is_zero();
        let reported = kinds.into_iter().find(|(kind, _)| *kind == error.kind());
        let reported = reported.filter(|_| !hidden);
        match (reported, error.effect()) {
            (Some((_, result)), _) => result,
            (None, Effect::None) => CallResult::Refused,
            (None, Effect::Done | Effect::Unknown) => CallResult::Unknown,
        }
    })
}

/// Requires that no id belongs to two tokens, and that the calls of each token can be ordered.
fn require_linearizable(history: &History, rules: Rules) -> Result<(), Failure> {
    let all = history.events.borrow();
    let mut owners: BTreeMap<&InstanceId, usize> = BTreeMap::new();
    for recorded in all.iter() {
        if let CallResult::Instance(id) = &recorded.event.result {
            let owner = *owners.entry(id).or_insert(recorded.token);
            if owner != recorded.token {
                let observed = format!("{id} was returned to launches with different tokens");
                return Err(history.violation(&observed, None));
            }
        }
    }
    for token in 0..TOKENS {
        let ours = all.iter().filter(|recorded| recorded.token == token);
        let mut events: Vec<_> = ours.map(|recorded| recorded.event.clone()).collect();
        events.retain(|event| event.result != CallResult::Refused);
        // A call with an unknown outcome may be anywhere in the order.
        let all_known = events
            .iter()
            .all(|event| event.result != CallResult::Unknown);
        if all_known && !is_linearizable(&events, rules) {
            let observed = "no order of the calls with one token explains their results";
            return Err(history.violation(observed, Some(token)));
        }
    }
    Ok(())
}
