//! Account: which instances a handle manages.

use fleetwright::{AccountId, Effect, InstanceProvisioner};

use crate::{Context, Failure, Outcome, Pass, WireFault, WireOp, require};

/// ACCOUNT-01: a backend must report the same account id through every handle on the account, at any
/// time, whatever is launched, or none through any of them.
///
/// A caller compares it with the one from its first launch: a list of another account is complete,
/// and every instance seems to be gone.
///
/// Reads the id through four handles, one of them with other options and one opened last, before and
/// after a launch and a terminate.
pub(crate) async fn account_01_every_handle_reports_the_same_id(cx: &Context) -> Outcome {
    let first = read(cx.provisioner()).await?;
    let same = |found: Option<AccountId>, through: &str| {
        require(found == first, || {
            let (first, found) = (crate::shown(&first), crate::shown(&found));
            format!("the handle reported the account {first}, and {through} {found}")
        })
    };
    let second = cx.open_handle().await;
    same(read(&*second).await?, "a second handle")?;
    let other = cx.open_handle_with_other_options().await;
    same(read(&*other).await?, "a handle with other options")?;
    drop((second, other));
    let info = cx.launch_running().await?;
    same(read(cx.provisioner()).await?, "after a launch")?;
    cx.terminate(&info.id).await?;
    cx.wait_until_terminated(&info.id).await?;
    same(read(cx.provisioner()).await?, "after a terminate")?;
    let last = cx.open_handle().await;
    same(read(&*last).await?, "a handle that was opened later")?;
    Ok(held(first.as_ref()))
}

/// ACCOUNT-02: a backend must return an error without effect, and neither none nor another id, while
/// it cannot read the account.
///
/// A caller that gets none does not compare anything, and believes the list of any account. Needs:
/// fault: server error.
///
/// Fails every call on the wire, and reads the id, which a backend may know without a call.
pub(crate) async fn account_02_failed_read_is_an_error(cx: &Context) -> Outcome {
    let faults = cx.faults(&[WireFault::ServerErrorBefore])?;
    let known = read(cx.provisioner()).await?;
    let kinds = [
        WireFault::ServerErrorBefore,
        WireFault::ServerErrorAfter,
        WireFault::BadCredentials,
        WireFault::Malformed,
        WireFault::RequestLost,
    ];
    for fault in kinds.into_iter().filter(|fault| faults.supports(fault)) {
        faults.inject_always(WireOp::Any, fault.clone()).await;
        let result = cx.provisioner().account_id().await;
        // A backend that knows the id sends no call, so the fault may be unused.
        faults.clear().await;
        match result {
            Ok(found) => require(found == known, || {
                let (known, found) = (crate::shown(&known), crate::shown(&found));
                let fault = crate::shown::in_words(&fault);
                format!("the account is {known}, but with {fault} it was reported as {found}")
            })?,
            Err(error) => require(error.effect() == Effect::None, || {
                format!("a read changes nothing, but: {error}")
            })?,
        }
    }
    Ok(held(known.as_ref()))
}

/// Reads the account id through a handle.
async fn read(handle: &dyn InstanceProvisioner) -> Result<Option<AccountId>, Failure> {
    let read = handle.account_id().await;
    read.map_err(|error| Failure::call_failed("account_id", &error))
}

/// Returns what was proven: a backend without account ids promises nothing.
fn held(known: Option<&AccountId>) -> Pass {
    if known.is_some() {
        Pass::Held
    } else {
        Pass::NotClaimed
    }
}
