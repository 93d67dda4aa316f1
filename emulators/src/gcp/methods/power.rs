//! `instances`: stop, start, reset, suspend, resume, delete.

use serde_json::Value;

use super::Call;
use crate::{
    cloud::strike::Served,
    gcp::{engine::World, error::Refusal, wire::method::Method},
};

pub(super) fn change(call: &Call, world: &mut World, served: &Served) -> Result<Value, Refusal> {
    let (target, doom) = (&call.target, &served.doom);
    // A guest is never asked to end gracefully here, so this makes no difference.
    let _abrupt = call.query.flag("noGracefulShutdown")?;
    let discard = call.query.given_flag("discardLocalSsd")?;
    if call.method == Method::InstancesStart {
        return call.once(world, |world| world.start(target, doom));
    }
    if call.method == Method::InstancesResume {
        return call.once(world, |world| world.resume(target, doom));
    }
    call.once_or_fail(world, doom, |world| {
        if call.method == Method::InstancesStop {
            world.stop(target, discard)
        } else if call.method == Method::InstancesSuspend {
            world.suspend(target, discard)
        } else if call.method == Method::InstancesReset {
            world.reset(target)
        } else {
            world.delete(target)
        }
    })
}
