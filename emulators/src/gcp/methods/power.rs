//! `instances`: stop, start, reset, suspend, resume, delete.
//!
//! A planned failure of a start or resume happens in the instance's step. For the others it is an
//! operation that fails without effect.

use serde_json::Value;

use super::Call;
use crate::{
    cloud::inject::CallContext,
    gcp::{engine::Engine, error::Refusal, wire::method::Method},
};

/// Begins the change that the method names and returns the operation.
///
/// # Errors
///
/// 400 for a query that is not a flag, and the refusals of the engine.
pub(super) fn change(
    call: &Call,
    engine: &mut Engine,
    context: &CallContext,
) -> Result<Value, Refusal> {
    let (target, planned_failures) = (&call.target, &context.planned_failures);
    // Guests never shut down gracefully here, so this makes no difference.
    let _abrupt = call.query.flag("noGracefulShutdown")?;
    let discard = call.query.optional_flag("discardLocalSsd")?;
    if call.method == Method::InstancesStart {
        return call.begin_once(engine, |engine| engine.start(target, planned_failures));
    }
    if call.method == Method::InstancesResume {
        return call.begin_once(engine, |engine| engine.resume(target, planned_failures));
    }
    call.begin_once_or_fail(engine, planned_failures, |engine| {
        if call.method == Method::InstancesStop {
            engine.stop(target, discard)
        } else if call.method == Method::InstancesSuspend {
            engine.suspend(target, discard)
        } else if call.method == Method::InstancesReset {
            engine.reset(target)
        } else {
            engine.delete(target)
        }
    })
}
