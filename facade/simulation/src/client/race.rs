//! Several who ask at the same time.

use fleetwright::Reboot;
use fleetwright_compute::{ComputeError, service::UpdateInstance};
use fleetwright_region::server::Power;
use futures_util::future::{join_all, join5};

use super::{Asked, Client};
use crate::{names::SLOTS, world::Process};

impl Client {
    /// All at once, each twice: one of the two is told that there is one, and no organization gets more than it may have.
    pub(super) async fn crowd(&mut self, process: &Process) -> Asked {
        let asked = (0..SLOTS).chain(0..SLOTS).map(|slot| {
            let new = self.town.new_instance(slot);
            let instances = &process.instances;
            async move { (slot, instances.create(&Self::user(slot), &new).await) }
        });
        let mut again = Asked::Over;
        for (slot, made) in join_all(asked).await {
            let made = made.map(|view| view.instance);
            let over = matches!(made, Err(ComputeError::NameGoing { .. }));
            let judged = self.created(process, slot, made).await;
            if matches!(judged, Asked::Again) && !over {
                again = Asked::Again;
            }
        }
        again
    }

    /// Two stop it, one reboots it, one tags it and one replaces it. Each wish that is accepted is one that stays.
    pub(super) async fn race(&mut self, process: &Process, slot: usize) -> Asked {
        let (who, id) = (Self::user(slot), self.town.id(slot));
        let found = match process.instances.read(&who, id).await {
            Ok(view) => view.instance,
            Err(error) => return self.judged(&error),
        };
        let mut tagged = UpdateInstance::of(&found);
        // The key is neither empty nor reserved.
        drop(tagged.tags.insert("raced", "yes"));
        self.journal
            .notes(|notes| *notes.replaces.entry(id).or_default() += 1);
        let calls = &process.instances;
        let (one, two, rebooted, updated, replaced) = join5(
            calls.stop(&who, id),
            calls.stop(&who, id),
            calls.reboot(&who, id, Reboot::Hard),
            calls.update(&who, id, &tagged),
            calls.replace(&who, id),
        )
        .await;
        if one.is_ok() || two.is_ok() {
            if let Some((_, power)) = self.promised.live.get_mut(&id) {
                *power = Power::Stopped;
            }
        }
        let errors = [
            one.err(),
            two.err(),
            rebooted.err(),
            updated.err(),
            replaced.err(),
        ];
        let judged = errors.iter().flatten().map(|error| self.judged(error));
        let again = judged.filter(|asked| matches!(asked, Asked::Again)).count();
        if again > 0 { Asked::Again } else { Asked::Over }
    }
}
