//! TXN: every check is evaluated, a transaction is committed as a whole or not at all, and it has
//! one revision.
//!
//! Each clause about a check tries it in both directions: it must let a transaction pass when it
//! holds, and name what was found when it does not.

use fleetwright_store::{Change, Check, Claim, Found, Part, Revision, Transaction};
use serde_json::json;

use crate::{
    Context, Failure, Outcome, Pass,
    context::{all_things, index, kind, other, require_keys, thing, valid},
    require,
};

/// Returns a transaction with one check and a write that must happen only if the check holds.
fn guarded(check: Check) -> Result<Transaction, Failure> {
    Ok(Transaction::new()
        .check(check)
        .put(other("guarded")?, json!({})))
}

/// Requires that a check holds.
async fn must_pass(cx: &Context, check: Check) -> Result<(), Failure> {
    cx.commit(guarded(check)?).await?;
    Ok(())
}

/// Requires that a check fails, and that the conflict names it and what was found.
async fn must_fail(cx: &Context, check: Check, found: Found) -> Result<(), Failure> {
    let conflict = cx.expect_conflict(guarded(check.clone())?).await?;
    require(conflict.check == check && conflict.found == found, || {
        format!("{check} must fail because of {found:?}, and the conflict is: {conflict}")
    })
}

/// TXN-01: a store must commit a transaction that requires a record to be absent only if it is.
///
/// A record that is created twice is how one request becomes two servers.
///
/// Commits with the check before the record exists, while it exists, and after it was deleted.
pub(crate) async fn txn_01_absent_is_checked(cx: &Context) -> Outcome {
    let check = Check::Absent(thing("a")?);
    must_pass(cx, check.clone()).await?;
    let created = cx.put("a", json!(1)).await?;
    must_fail(cx, check.clone(), Found::At(created)).await?;
    cx.delete("a").await?;
    must_pass(cx, check).await?;
    Ok(Pass::Held)
}

/// TXN-02: a store must commit a transaction that requires a record at a revision only if it was
/// not written since.
///
/// The second of two writers would undo the first without noticing.
///
/// Tries revisions before and after the record's own, and the old revision after the same value was
/// written again.
pub(crate) async fn txn_02_a_revision_is_checked(cx: &Context) -> Outcome {
    let at = |revision| Ok::<_, Failure>(Check::At(thing("a")?, revision));
    must_fail(cx, at(Revision(1))?, Found::Absent).await?;
    let created = cx.put("a", json!(1)).await?;
    must_pass(cx, at(created)?).await?;
    for other in [Revision::ZERO, created.next(), Revision(u64::MAX)] {
        must_fail(cx, at(other)?, Found::At(created)).await?;
    }
    let replaced = cx.put("a", json!(1)).await?;
    must_fail(cx, at(created)?, Found::At(replaced)).await?;
    let swap = Transaction::new().replace(thing("a")?, replaced, json!(2));
    let swapped = cx.commit(swap.clone()).await?;
    let conflict = cx.expect_conflict(swap).await?;
    require(conflict.found == Found::At(swapped), || {
        format!("the same replacement again: {conflict}")
    })?;
    cx.delete("a").await?;
    must_fail(cx, at(swapped)?, Found::Absent).await?;
    Ok(Pass::Held)
}

/// TXN-03: a store must commit a transaction that requires a record to exist only if it does.
///
/// A child must not be created for a parent that was deleted.
///
/// Commits with the check before the record exists, while it exists, and after it was deleted.
pub(crate) async fn txn_03_existence_is_checked(cx: &Context) -> Outcome {
    let check = Check::Exists(thing("a")?);
    must_fail(cx, check.clone(), Found::Absent).await?;
    cx.put("a", json!(1)).await?;
    must_pass(cx, check.clone()).await?;
    cx.delete("a").await?;
    must_fail(cx, check, Found::Absent).await?;
    Ok(Pass::Held)
}

/// TXN-04: a store must commit a transaction that requires a value to be unclaimed only if no
/// record but the excepted one has it under the index.
///
/// A network is deleted only if nothing uses it, and a read beforehand is a race.
///
/// Claims values of a unique index, of an ordinary one and of the first part of two, with and
/// without the holder as the exception. A record of another kind with the same value must not
/// count.
pub(crate) async fn txn_04_claims_are_checked(cx: &Context) -> Outcome {
    let claim =
        |name: &str, value: &str| Ok::<_, Failure>(Claim::new(kind("thing")?, index(name)?, value));
    cx.commit(Transaction::new().put(other("x")?, json!({"name": "n", "group": "g"})))
        .await?;
    for name in ["name", "group"] {
        must_pass(cx, Check::Unclaimed(claim(name, &name[..1])?)).await?;
    }
    let first = json!({"name": "n", "group": "g", "organization": "o", "project": "p"});
    cx.put("a", first).await?;
    let held = Found::HeldBy(thing("a")?.key);
    for (name, value) in [("name", "n"), ("group", "g"), ("place", "o")] {
        let taken = claim(name, value)?;
        must_fail(cx, Check::Unclaimed(taken.clone()), held.clone()).await?;
        must_pass(cx, Check::Unclaimed(taken.clone().except(thing("a")?.key))).await?;
        must_fail(
            cx,
            Check::Unclaimed(taken.except(thing("b")?.key)),
            held.clone(),
        )
        .await?;
    }
    cx.put("b", json!({"group": "g"})).await?;
    let by_another = claim("group", "g")?.except(thing("a")?.key);
    must_fail(
        cx,
        Check::Unclaimed(by_another),
        Found::HeldBy(thing("b")?.key),
    )
    .await?;
    Ok(Pass::Held)
}

/// TXN-05: a store must leave no trace of a transaction that was refused: no record, no revision,
/// nothing in a watch.
///
/// An allocation without its instance is paid for, an instance without its allocation is not.
///
/// Sends one transaction that fails by a check and one that fails by a unique index after a valid
/// write, then compares records, revision and watch with the state before.
pub(crate) async fn txn_05_all_or_nothing(cx: &Context) -> Outcome {
    cx.put("holder", json!({"name": "taken"})).await?;
    let before = cx.head().await?;
    let writes = Transaction::new()
        .put(thing("a")?, json!({"name": "free"}))
        .delete(thing("holder")?)
        .put(thing("b")?, json!({"name": "also free"}));
    let by_check = writes.clone().check(Check::Exists(thing("nothing")?));
    let by_index = Transaction::new()
        .put(thing("a")?, json!({"name": "free"}))
        .put(thing("b")?, json!({"name": "taken"}));
    for transaction in [by_check, by_index] {
        cx.expect_conflict(transaction).await?;
        let after = cx.head().await?;
        require(after == before, || {
            format!("a refused transaction raised the revision from {before} to {after}")
        })?;
        require_keys("all things", &cx.keys(&all_things()?).await?, &["holder"])?;
    }
    let received = cx.commits_after(before).await?;
    require(received.is_empty(), || {
        format!("a watch returned refused transactions: {received:?}")
    })?;
    cx.put("c", json!({"name": "free"})).await?;
    Ok(Pass::Held)
}

/// TXN-06: a store must name in a conflict the first part of the transaction that does not hold,
/// and what was found.
///
/// A caller returns 409 for one reason and retries for another.
///
/// Sends transactions with several failing parts: the second of three checks must be named before
/// the others, and the second of two writes with its holder.
pub(crate) async fn txn_06_conflict_names_the_failed_check(cx: &Context) -> Outcome {
    let created = cx.put("a", json!({"name": "n"})).await?;
    let checks = Transaction::new()
        .check(Check::Exists(thing("a")?))
        .check(Check::At(thing("a")?, created.next()))
        .check(Check::Absent(thing("a")?))
        .put(thing("b")?, json!({"name": "n"}));
    let conflict = cx.expect_conflict(checks).await?;
    let is_named = conflict.part == Part::Check(1) && conflict.found == Found::At(created);
    require(is_named, || {
        format!("the conflict must name check 1 and {created}, and is: {conflict}")
    })?;
    let writes = Transaction::new()
        .put(thing("b")?, json!({"name": "m"}))
        .put(thing("c")?, json!({"name": "n"}));
    let conflict = cx.expect_conflict(writes).await?;
    let claim = Claim::new(kind("thing")?, index("name")?, "n");
    let is_named = conflict.part == Part::Write(1)
        && conflict.found == Found::HeldBy(thing("a")?.key)
        && conflict.check == Check::Unclaimed(claim);
    require(is_named, || {
        format!("the conflict must name write 1 and the holder, and is: {conflict}")
    })?;
    Ok(Pass::Held)
}

/// TXN-07: a store must give everything that one transaction writes one revision, and show it as
/// one commit in the order of its writes.
///
/// A watcher that sees half of a change acts on a state that never existed.
///
/// Commits puts and a delete of two kinds in an order that differs from the order of keys.
pub(crate) async fn txn_07_one_revision_for_all_writes(cx: &Context) -> Outcome {
    cx.put("z", json!(0)).await?;
    let before = cx.head().await?;
    let ids = [thing("c")?, other("b")?, thing("z")?, thing("a")?];
    let [c, b, z, a] = ids.clone();
    let transaction = Transaction::new()
        .put(c, json!(1))
        .put(b, json!(2))
        .delete(z)
        .put(a, json!(3));
    let revision = cx.commit(transaction).await?;
    require(revision > before, || {
        format!("a commit after {before} has revision {revision}")
    })?;
    for id in [&ids[0], &ids[1], &ids[3]] {
        let found = cx.get(id).await?.map(|record| record.revision);
        require(found == Some(revision), || {
            format!("{id} has revision {found:?}, and its transaction has {revision}")
        })?;
    }
    let received = cx.commits_after(before).await?;
    let order: Vec<_> = received
        .iter()
        .flat_map(|commit| commit.changes.iter().map(Change::id))
        .collect();
    let is_one = received.len() == 1 && order == ids.iter().collect::<Vec<_>>();
    require(is_one, || {
        format!(
            "the watch must return one commit in the order of the writes, and returned {received:?}"
        )
    })?;
    Ok(Pass::Held)
}

/// TXN-08: a store must evaluate the checks of a transaction against the state before its writes.
///
/// Otherwise a transaction could make its own conditions true.
///
/// Requires the existence of a record that the transaction creates, and the absence of one that it
/// deletes: both must conflict. A check that held before the writes must pass.
pub(crate) async fn txn_08_checks_see_the_state_before(cx: &Context) -> Outcome {
    cx.commit(Transaction::new().create(thing("a")?, json!({"name": "n"})))
        .await?;
    let exists = Transaction::new()
        .check(Check::Exists(thing("b")?))
        .put(thing("b")?, json!(1));
    cx.expect_conflict(exists).await?;
    let delete = Transaction::new()
        .check(Check::Absent(thing("a")?))
        .delete(thing("a")?);
    cx.expect_conflict(delete).await?;
    let claim = valid(Ok(Claim::new(kind("thing")?, index("name")?, "m")))?;
    let unclaimed = Transaction::new()
        .check(Check::Unclaimed(claim))
        .check(Check::Exists(thing("a")?))
        .put(thing("c")?, json!({"name": "m"}))
        .delete(thing("a")?);
    cx.commit(unclaimed).await?;
    Ok(Pass::Held)
}

/// TXN-09: a store must refuse as invalid a transaction that writes a record twice or claims a
/// unique value twice, and treat an empty one as no change.
///
/// It is undefined which of the two would win, and every store would decide differently.
///
/// Writes a record twice and claims a name twice, both refused; then commits nothing, only a check,
/// and the same name in two kinds.
pub(crate) async fn txn_09_contradicting_transaction_is_refused(cx: &Context) -> Outcome {
    cx.put("a", json!(1)).await?;
    let before = cx.head().await?;
    let twice = Transaction::new()
        .put(thing("a")?, json!(1))
        .delete(thing("a")?);
    cx.expect_invalid(twice).await?;
    let claimed = Transaction::new()
        .put(thing("b")?, json!({"name": "n"}))
        .put(thing("c")?, json!({"name": "n"}));
    cx.expect_invalid(claimed).await?;
    let nothing = cx.commit(Transaction::new()).await?;
    let only_checks = cx
        .commit(Transaction::new().check(Check::Exists(thing("a")?)))
        .await?;
    let after = cx.head().await?;
    require([nothing, only_checks, after] == [before; 3], || {
        format!(
            "commits without a write took the store from {before} to {nothing}, {only_checks}, {after}"
        )
    })?;
    let kinds = Transaction::new()
        .put(thing("b")?, json!({"name": "n"}))
        .put(other("b")?, json!({"name": "n"}));
    cx.commit(kinds).await?;
    Ok(Pass::Held)
}
