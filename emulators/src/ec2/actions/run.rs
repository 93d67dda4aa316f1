//! RunInstances.

use super::{Call, order, view};
use crate::ec2::{
    engine::{World, record::Reason},
    error::Refusal,
};

pub(super) fn run(call: &Call<'_>, world: &mut World) -> Result<String, Refusal> {
    let order = order::order(call, world)?;
    let mode = call.mode()?;
    call.finish()?;
    let doom = call.served.doom.first();
    let doom = doom.map(|failure| Reason::new(&failure.code, &failure.message));
    let launched = world.launch(&order, doom.as_ref(), mode)?;
    let seen: Vec<_> = launched
        .iter()
        .filter_map(|seq| Some((*seq, world.instances.get(seq)?.current().clone())))
        .collect();
    let reservations = view::reservations(world, &seen, call.served.state.as_deref());
    // A replay whose every instance was forgotten never gets here: its token is spent.
    let reservation = reservations
        .into_iter()
        .next()
        .ok_or_else(Refusal::internal)?;
    call.reply(&reservation)
}
