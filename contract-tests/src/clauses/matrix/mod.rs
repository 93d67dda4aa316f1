//! The matrix: every operation with every fault at every native call, judged by one property for
//! each clause.
//!
//! Other families prove their promises with examples. This one leaves no corner: it walks over the
//! cells of two tables, the operations and the faults, and a new row of either extends
//! every clause. A cell is one call with one fault at its first native call, at its second and so
//! on, until the call ends before the fault. The oracle's truth before and after a cell decides.
//!
//! | file | what it owns |
//! | --- | --- |
//! | `operations.rs`, `faults.rs` | the two tables |
//! | `stock.rs` | the instances and images that calls are made on |
//! | `cell.rs` | one call with its fault, and its repetition |
//! | `truth.rs` | how far a call got |
//! | `properties.rs`, `token.rs`, `content.rs` | what must hold |
//!
//! A backend keeps the liberties that the family Errors grants: it may look a token up and return what it
//! finds, it may repeat a read that failed, and the error of an item may name the batch or the call of one instance. A call
//! that cannot read how its accepted change went may say so: a timeout, with an unknown effect and the advice to retry.

mod cell;
mod content;
mod faults;
mod operations;
mod properties;
mod stock;
mod token;
mod truth;

use std::sync::Arc;

use fleetwright::{CloudInstanceState, InstanceId, InstanceProvisioner, OptionalVerb, Tags};

use self::{
    cell::Cell,
    faults::{FAULTS, Fault, What},
    operations::{Change, OPERATIONS, Row},
    properties::Property,
    stock::{Stock, image_tags},
    truth::{changes, find},
};
use crate::{Context, Failure, Faults, Outcome, Pass, SCOPE_TAG, Time, Truth, shown::in_words};

/// MATRIX-01: a backend must report as the effect of a failed call what the call has changed,
/// and success for what was done, for every operation and batch, whatever fault occurs at whichever
/// of its native calls.
///
/// After "no effect", a manager launches again, and after a success it never looks again. Needs: oracle, faults.
///
/// Compares each error's effect and survivors, and each success, with the oracle. No effect must be true at once; what was
/// done may take its time to show.
pub(crate) async fn matrix_01_effect_is_true(cx: &Context) -> Outcome {
    walk(cx, Property::Effect).await
}

/// MATRIX-02: a backend must return the kind of error that fits the fault, with the operation and
/// without an effect of a read, for every operation and each item of a batch, whatever fault occurs
/// at whichever of its native calls.
///
/// A control loop decides by the kind, whichever native call failed. Needs: oracle, faults.
///
/// Checks kind, provider, operation and line of every error, and the number of results of a batch.
pub(crate) async fn matrix_02_kind_fits_the_fault(cx: &Context) -> Outcome {
    walk(cx, Property::Kind).await
}

/// MATRIX-03: a backend must advise a retry after faults that pass, with the delay that the cloud
/// demands, and succeed when the advice is followed, for every operation and batch, whatever fault
/// occurred at whichever of its native calls.
///
/// A retry layer does what the advice says, and nothing else. Needs: oracle, faults.
///
/// Follows the advice of every error that allows a retry, with the same call and the same token.
/// A launch without a token and a reboot are not repeated.
pub(crate) async fn matrix_03_advice_leads_to_success(cx: &Context) -> Outcome {
    walk(cx, Property::Advice).await
}

/// MATRIX-04: a backend must find by its token exactly what a single or a batch launch has left,
/// and complete it by a replay without one instance more, whatever fault, crash or drop occurred at
/// whichever of its native calls.
///
/// The response to a batch can be lost like any other, in the middle of it. Needs: oracle, faults.
///
/// Compares the lookup after the consistency window, the result of a replay and the number of instances with the
/// oracle. A launch without a token must leave at most one instance.
pub(crate) async fn matrix_04_token_settles(cx: &Context) -> Outcome {
    walk(cx, Property::Token).await
}

/// MATRIX-05: a backend must leave every instance that a call does not name as it is, running,
/// stopped or terminated, its own or somebody else's, whatever fault, crash or drop occurs at
/// whichever of the call's native calls.
///
/// Code that handles a failure must not reach further than the call. Needs: oracle, faults.
///
/// Compares every field that the oracle has of all other instances before and after each call and its repetition.
pub(crate) async fn matrix_05_others_are_untouched(cx: &Context) -> Outcome {
    walk(cx, Property::Bystanders).await
}

/// MATRIX-06: a backend must leave and return exactly what was requested and what the cloud has
/// when a call succeeds, for every operation and batch, whatever fault, crash or drop occurred
/// before at whichever of its native calls.
///
/// A launch that is completed by a retry is used like any other. Needs: oracle, faults.
///
/// Compares user data, disk, tags, type, image and zone of what is launched and changed, and the results of reads, with the
/// oracle.
pub(crate) async fn matrix_06_content_is_that_of_the_cloud(cx: &Context) -> Outcome {
    walk(cx, Property::Content).await
}

/// MATRIX-07: a backend must leave nothing of an instance or an image once it is terminated or
/// deleted, whatever fault, crash or drop occurred at whichever native call of its launch, its
/// changes and its termination.
///
/// What a failed call leaves is listed nowhere, and is paid for. Needs: oracle, faults.
///
/// Terminates everything after the cells of each fault. The oracle must then have no leftovers.
pub(crate) async fn matrix_07_nothing_is_left(cx: &Context) -> Outcome {
    walk(cx, Property::Leftovers).await
}

/// MATRIX-08: a backend must show user data in no error and no result of any operation, whatever
/// fault occurs at whichever of its native calls.
///
/// The errors of rare faults are the ones that people paste into tickets. Needs: oracle, faults.
///
/// Looks for a marker in the text, the debug output and the causes of every error.
pub(crate) async fn matrix_08_secrets_are_never_shown(cx: &Context) -> Outcome {
    walk(cx, Property::Secrets).await
}

/// The most native calls of one operation into which a fault is injected.
const MOST_CALLS: u64 = 12;
/// The most polls after which a call is dropped, in virtual and in real time.
const MOST_POLLS: (u64, u64) = (24, 6);

/// Judges all cells by a property.
async fn walk(cx: &Context, property: Property) -> Outcome {
    let faults = cx.faults(&[])?;
    cx.oracle()?;
    let supported = |fault: &&Fault| fault.wire(cx).is_none_or(|wire| faults.supports(&wire));
    let offered: Vec<_> = FAULTS.iter().filter(supported).collect();
    if offered.iter().all(|fault| fault.wire(cx).is_none()) {
        return Err(Failure::NotRun(
            "the harness offers no such fault".to_owned(),
        ));
    }
    let foreign = Foreign::launch(cx, property).await?;
    let mut stock = Stock::new(cx, 0).await?;
    let plain = cx.open_unrecorded_handle().await;
    let (mut outcome, mut pairs) = (Ok(()), 0);
    for (number, fault) in offered.into_iter().enumerate() {
        let mut rows = rows(cx, property, fault);
        // MATRIX-07 launches a new stock after each fault, so one account has all cells of a fault.
        let by_fault = property == Property::Leftovers;
        rows.retain(|_| {
            pairs += 1;
            cx.has_case(if by_fault { number } else { pairs })
        });
        if rows.is_empty() {
            continue;
        }
        outcome = walk_fault(cx, &faults, &*plain, property, (fault, &rows), &mut stock).await;
        if property == Property::Bystanders && outcome.is_ok() {
            outcome = foreign.require_unchanged(cx, fault).await;
        }
        if property == Property::Leftovers && outcome.is_ok() {
            outcome = require_nothing_left(cx, fault, &mut stock).await;
            if outcome.is_ok() {
                stock = Stock::new(cx, stock.names).await?;
            }
        }
        if outcome.is_err() {
            break;
        }
    }
    foreign.terminate(cx).await;
    let cleared = stock.clear().await;
    outcome?;
    cleared?;
    Ok(Pass::Held)
}

/// Returns the operations whose calls are made with a fault.
fn rows(cx: &Context, property: Property, fault: &Fault) -> Vec<&'static Row> {
    let rows = OPERATIONS.iter().enumerate();
    let applies = |(number, row): &(usize, &Row)| {
        property.applies(cx.harness().time(), *number, fault)
            && is_offered(cx, row)
            && fault.strikes(row).is_some()
    };
    rows.filter(applies).map(|(_, row)| row).collect()
}

/// Judges the cells of one fault.
async fn walk_fault(
    cx: &Context,
    faults: &Arc<dyn Faults>,
    plain: &dyn InstanceProvisioner,
    property: Property,
    (fault, rows): (&'static Fault, &[&'static Row]),
    stock: &mut Stock<'_>,
) -> Result<(), Failure> {
    for row in rows {
        for nth in 1..=most(cx, fault) {
            let target = stock.take(row).await?;
            let cell = Cell::run(cx, faults, plain, (row, fault, nth), target).await?;
            let settled = property.judge(&cell, stock).await?;
            stock.give_back(row, &cell.target, settled).await?;
            if !cell.struck {
                break;
            }
        }
    }
    Ok(())
}

/// Returns whether an operation can be called here.
fn is_offered(cx: &Context, row: &Row) -> bool {
    let declared = |verb| cx.capabilities().supports(verb);
    let possible = match row.change {
        Change::Type => cx.harness().other_type().is_some(),
        Change::Image => cx.harness().other_image().is_some(),
        Change::Deletion => declared(OptionalVerb::SnapshotImage),
        Change::Nothing
        | Change::Session
        | Change::Launch(_)
        | Change::LaunchOnce
        | Change::Stop
        | Change::Start
        | Change::Terminate
        | Change::Tags
        | Change::Boot
        | Change::Snapshot => true,
    };
    possible && row.verb.is_none_or(declared)
}

/// Returns at how many points of a call a fault is tried.
fn most(cx: &Context, fault: &Fault) -> u64 {
    match (fault.what, cx.harness().time()) {
        (What::Dropped, Time::Virtual) => MOST_POLLS.0,
        (What::Dropped, Time::Real) => MOST_POLLS.1,
        _ => MOST_CALLS,
    }
}

/// Terminates everything, and requires that nothing is left of it.
async fn require_nothing_left(
    cx: &Context,
    fault: &Fault,
    stock: &mut Stock<'_>,
) -> Result<(), Failure> {
    stock.clear().await?;
    cx.wait_for_consistent_reads().await;
    let list = cx.list(&cx.filter()).await?;
    let ids: Vec<_> = list.into_iter().map(|info| info.id).collect();
    for id in &ids {
        cx.terminate(id).await?;
    }
    let oracle = cx.oracle()?;
    let deletes = cx.capabilities().supports(OptionalVerb::DeleteImage);
    let left = async || {
        let mut left = oracle.leftovers(cx.scope()).await;
        if deletes {
            left.extend(oracle.images(&image_tags(cx)?).await.unwrap_or_default());
        }
        Ok::<_, Failure>(left)
    };
    let gone = cx.eventually("nothing is left", async || {
        Ok(left().await?.is_empty().then_some(()))
    });
    match gone.await {
        Err(Failure::Violated(_)) => {
            let (left, what) = (left().await?.join(", "), in_words(&fault.what));
            Err(Failure::violated(format!(
                "after calls with {what}, and after everything was terminated, there is: {left}"
            )))
        }
        result => result,
    }
}

/// An instance of somebody else, if the harness has an external actor and the clause is about it.
struct Foreign {
    id: Option<InstanceId>,
    tags: Tags,
    before: Vec<Truth>,
}

impl Foreign {
    async fn launch(cx: &Context, property: Property) -> Result<Self, Failure> {
        let scope = cx.scope().get(SCOPE_TAG).unwrap_or_default();
        let tags = Tags::new().with(SCOPE_TAG, format!("not-{scope}"));
        let tags = tags.unwrap_or_default();
        let mut foreign = Self {
            id: None,
            tags,
            before: Vec::new(),
        };
        let actor = cx.harness().external_actor();
        if let Some(actor) = actor.filter(|_| property == Property::Bystanders) {
            foreign.id = Some(actor.launch(foreign.tags.clone()).await);
            foreign.before = foreign.wait_until_running(cx).await?;
        }
        Ok(foreign)
    }

    /// Waits until the instance runs, and returns what the oracle has of it.
    async fn wait_until_running(&self, cx: &Context) -> Result<Vec<Truth>, Failure> {
        let oracle = cx.oracle()?;
        cx.eventually("the instance of somebody else runs", async || {
            let truth = oracle.instances(&self.tags).await;
            let runs = |truth: &Truth| truth.info.state == CloudInstanceState::Running;
            Ok(truth.iter().all(runs).then_some(truth))
        })
        .await
    }

    async fn require_unchanged(&self, cx: &Context, fault: &Fault) -> Result<(), Failure> {
        let now = cx.oracle()?.instances(&self.tags).await;
        for before in &self.before {
            let id = &before.info.id;
            let changed = match find(&now, Some(id)) {
                Some(now) => changes(before, &now).join("; "),
                None => "it is gone".to_owned(),
            };
            crate::require(changed.is_empty(), || {
                let what = in_words(&fault.what);
                format!("after calls with {what}, {id} of somebody else changed: {changed}")
            })?;
        }
        Ok(())
    }

    async fn terminate(&self, cx: &Context) {
        if let (Some(id), Some(actor)) = (&self.id, cx.harness().external_actor()) {
            actor.terminate(id).await;
        }
    }
}
