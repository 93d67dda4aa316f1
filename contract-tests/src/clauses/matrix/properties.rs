//! The properties of the matrix: what must hold in every cell.
//!
//! Owns the judgement of one cell, with the oracle's truth before and after it. Each property is a
//! clause of its own, so that a violation names one promise.

use fleetwright::{Effect, ErrorKind, ProvisionError, Result, RetryAdvice};

use super::{
    cell::Cell,
    content,
    faults::{Advice, Fault, What},
    operations::{Change, Got, OPERATIONS, Row},
    stock::{Stock, marker},
    token,
    truth::{Progress, Seen, changes, find},
};
use crate::{Failure, Time};

/// What must hold in every cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Property {
    Effect,
    Kind,
    Advice,
    Token,
    Bystanders,
    Content,
    Leftovers,
    Secrets,
}

impl Property {
    /// Returns whether the cells of an operation and a fault are tried for the property.
    ///
    /// In real time, each operation has one fault of each group of faults that are alike, and not the same
    /// one for every property. Virtual time is for free, and has all of them.
    pub(super) fn applies(self, time: Time, row: usize, fault: &Fault) -> bool {
        let turn = row + self as usize;
        let thinned = time == Time::Real && self != Self::Kind && !fault.is_in_turn(turn);
        !thinned && self.is_about(&OPERATIONS[row], fault)
    }

    /// Returns whether the cells of an operation and a fault say anything about the property.
    fn is_about(self, row: &Row, fault: &Fault) -> bool {
        match self {
            Self::Effect | Self::Kind | Self::Advice | Self::Secrets => fault.returns(),
            Self::Token => row.change.launches() > 0,
            Self::Bystanders | Self::Leftovers => row.change != Change::Nothing,
            Self::Content => true,
        }
    }

    /// Judges a cell, and repeats its call until it has its full effect. Returns whether it has.
    pub(super) async fn judge(self, cell: &Cell<'_>, stock: &Stock<'_>) -> Result<bool, Failure> {
        match self {
            Self::Effect => effect(cell).await?,
            Self::Kind => kind(cell)?,
            Self::Advice => return advice(cell).await,
            Self::Token => return token::judge(cell).await,
            Self::Bystanders => {
                let settled = settle(cell).await;
                bystanders(cell, stock).await?;
                return Ok(settled);
            }
            Self::Content => return content::judge(cell).await,
            Self::Leftovers => {}
            Self::Secrets => secrets(cell)?,
        }
        Ok(settle(cell).await)
    }
}

/// Returns whether every item of the call succeeded.
pub(super) fn succeeded(cell: &Cell<'_>) -> bool {
    let all_ok = |results: &Vec<Result<Got>>| results.iter().all(Result::is_ok);
    cell.results.as_ref().is_some_and(all_ok)
}

/// Repeats the call of a cell if it did not succeed. Returns whether it has its full effect.
async fn settle(cell: &Cell<'_>) -> bool {
    if succeeded(cell) {
        return true;
    }
    cell.row.change.can_be_repeated() && cell.repeat().await.is_ok()
}

/// MATRIX-01: what an error says about the effect of its call is true, and a success is one.
async fn effect(cell: &Cell<'_>) -> Result<(), Failure> {
    let seen = Seen::now(cell.cx, &cell.target).await?;
    for (item, result) in cell.results.iter().flatten().enumerate() {
        let Some(now) = seen.progress(cell, item) else {
            continue;
        };
        let error = match result {
            Ok(_) if cell.row.change.changes_no_instance() => {
                cell.require(now == Progress::Nothing, || {
                    "it has changed an instance".to_owned()
                })?;
                continue;
            }
            Ok(_) => {
                if now != Progress::Whole {
                    reaches(cell, item, "was a success, but is not carried out", |now| {
                        now == Progress::Whole
                    })
                    .await?;
                }
                continue;
            }
            Err(error) => error,
        };
        match error.effect() {
            Effect::None => cell.require(now == Progress::Nothing, || {
                let now = now.shown();
                format!("item {item} has no effect by its error, but the cloud carried out {now}")
            })?,
            // Nobody but the cloud knows whether a session was opened.
            Effect::Done if cell.row.change == Change::Session => {}
            Effect::Done if now == Progress::Nothing => {
                reaches(
                    cell,
                    item,
                    "was done by its error, but is not carried out",
                    |now| now != Progress::Nothing,
                )
                .await?;
            }
            Effect::Done | Effect::Unknown => {}
        }
        survivors(cell, error, &seen)?;
    }
    Ok(())
}

/// Requires that the instances that an error names as survivors exist, and that it names all of them if it
/// says that the launch was done.
fn survivors(cell: &Cell<'_>, error: &ProvisionError, seen: &Seen) -> Result<(), Failure> {
    let live = super::truth::launched(&cell.target, &seen.instances);
    let named = error.survivors().iter().map(|info| &info.id);
    for id in named.clone() {
        cell.require(live.contains(id), || {
            format!("{id} is named as a survivor and does not exist")
        })?;
    }
    let launches = cell.row.change.launches() > 0 && error.effect() == Effect::Done;
    let missing = live.iter().find(|id| !named.clone().any(|one| one == *id));
    match missing {
        Some(id) if launches => {
            Err(cell.violated(format!("{id} exists and is not named as a survivor")))
        }
        Some(_) | None => Ok(()),
    }
}

/// Waits until an item of the call has got so far.
pub(super) async fn reaches(
    cell: &Cell<'_>,
    item: usize,
    observed: &str,
    far: impl Fn(Progress) -> bool + Send + Sync,
) -> Result<(), Failure> {
    let reached = cell.cx.eventually(observed, async || {
        let seen = Seen::now(cell.cx, &cell.target).await?;
        Ok(seen.progress(cell, item).is_none_or(&far).then_some(()))
    });
    match reached.await {
        Err(Failure::Violated(_)) => Err(cell.violated(format!("item {item} {observed}"))),
        result => result,
    }
}

/// MATRIX-02: kind, operation and number of the errors fit.
fn kind(cell: &Cell<'_>) -> Result<(), Failure> {
    let count = cell.results.as_ref().map(Vec::len);
    cell.require(count == Some(cell.items()), || {
        format!(
            "{} results are expected, and the call returned {}",
            cell.items(),
            crate::shown(&count)
        )
    })?;
    let provider = cell.cx.capabilities().provider.as_str();
    for (_, error) in cell.errors() {
        let fits = cell.struck && cell.fault.kinds.contains(&error.kind());
        let may_be = cell.struck && cell.row.kinds.contains(&error.kind());
        // Any call may be throttled at any time.
        let may_be = may_be || error.kind() == ErrorKind::Throttled || unknown_outcome(cell, error);
        cell.require(fits || may_be, || {
            format!("{} does not fit the fault", error.kind())
        })?;
        let operation = error.operation();
        let named = operation == cell.row.operation || operation == cell.row.single;
        cell.require(named && error.provider() == provider, || {
            format!("the error names {} and {operation}", error.provider())
        })?;
        let read = cell.row.change == Change::Nothing;
        cell.require(!read || error.effect() == Effect::None, || {
            format!("a read has {}", error.effect())
        })?;
        let line = error.to_string();
        cell.require(!line.contains(|c: char| c.is_control()), || {
            "the error has more than one line".to_owned()
        })?;
    }
    Ok(())
}

/// Returns whether an error says that the outcome of a change is unknown: an earlier native call has requested it, and
/// the one that failed only asked how it went.
fn unknown_outcome(cell: &Cell<'_>, error: &ProvisionError) -> bool {
    let late = cell.struck && cell.nth > 1 && cell.row.change != Change::Nothing;
    let kind = matches!(error.kind(), ErrorKind::Timeout | ErrorKind::Unavailable);
    late && kind && error.effect() == Effect::Unknown && error.retry().delay().is_some()
}

/// MATRIX-03: the advice fits the fault, and who follows it succeeds once the fault is gone.
async fn advice(cell: &Cell<'_>) -> Result<bool, Failure> {
    let mut longest = std::time::Duration::ZERO;
    let mut all_retry = true;
    for (_, error) in cell.errors().filter(|_| cell.struck) {
        let fits = cell.fault.kinds.contains(&error.kind());
        let demanded = cell.cx.throttle_delay();
        let right = match cell.fault.advice {
            Advice::AfterDelay => {
                let most = demanded.saturating_mul(2);
                let delay = error.retry().delay();
                delay.is_some_and(|delay| demanded <= delay && delay <= most)
            }
            Advice::Retry => error.retry().delay().is_some(),
            Advice::NotAtOnce => error.retry() != RetryAdvice::SameToken,
            Advice::Anything => true,
        };
        // Otherwise it advises something about another kind of error.
        cell.require(right || !fits, || {
            let wanted = match cell.fault.advice {
                Advice::AfterDelay => format!("a retry after {demanded:?}"),
                Advice::Retry => "a retry".to_owned(),
                Advice::NotAtOnce | Advice::Anything => "no retry at once".to_owned(),
            };
            format!("the error must advise {wanted}")
        })?;
        longest = longest.max(error.retry().delay().unwrap_or_default());
        all_retry &= error.retry().delay().is_some();
    }
    if succeeded(cell) || !cell.row.change.can_be_repeated() {
        return Ok(succeeded(cell));
    }
    // A delay that a cloud can express costs a second of real time, for each of many cells. The fault
    // is gone, so the cloud no longer demands it.
    let waits = cell.fault.what != What::Throttled || cell.cx.harness().time() == Time::Virtual;
    if waits {
        cell.cx.advance_time(longest).await;
    }
    match cell.repeat().await {
        Ok(_) => Ok(true),
        Err(_) if !all_retry => Ok(false),
        Err(error) => Err(cell.violated(format!("the advised retry failed: {error}"))),
    }
}

/// MATRIX-05: instances that the call does not name are as before.
async fn bystanders(cell: &Cell<'_>, stock: &Stock<'_>) -> Result<(), Failure> {
    let seen = Seen::now(cell.cx, &cell.target).await?;
    let other = |id| !cell.target.ids.contains(id) && stock.is_stable(id);
    let before = cell.before.instances.iter();
    for before in before.filter(|truth| other(&truth.info.id)) {
        let id = &before.info.id;
        let changed = match find(&seen.instances, Some(id)) {
            Some(now) if before.info.state.is_ending() => {
                let came_back = !now.info.state.is_ending();
                came_back.then(|| now.info.state.to_string())
            }
            Some(now) => Some(changes(before, &now).join("; ")).filter(|text| !text.is_empty()),
            None if before.info.state.is_ending() => None,
            None => Some("it is gone".to_owned()),
        };
        if let Some(changed) = changed {
            return Err(cell.violated(format!("{id}, which is not concerned, changed: {changed}")));
        }
    }
    Ok(())
}

/// MATRIX-08: no error and no debug output contains the user data.
fn secrets(cell: &Cell<'_>) -> Result<(), Failure> {
    let secret = marker(cell.cx);
    let data = cell.target.config.user_data.as_ref();
    let coded = serde_json::to_string(&data).unwrap_or_default();
    let coded = coded.trim_matches('"');
    let hides = |what: &str, shown: String| {
        let found = shown.contains(&secret) || (data.is_some() && shown.contains(coded));
        if found {
            // The message must not show it either.
            Err(Failure::violated(format!(
                "{cell}: {what} contains the user data"
            )))
        } else {
            Ok(())
        }
    };
    for result in cell.results.iter().flatten() {
        hides("the debug output of a result", format!("{result:?}"))?;
        let Err(error) = result else {
            continue;
        };
        hides("an error", error.to_string())?;
        hides("the message of an error", error.message().to_owned())?;
        let code = error.native_code().unwrap_or_default();
        hides("the code of an error", code.to_owned())?;
        let mut source = std::error::Error::source(error);
        while let Some(cause) = source {
            hides("the cause of an error", cause.to_string())?;
            source = cause.source();
        }
    }
    Ok(())
}
