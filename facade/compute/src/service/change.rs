//! How one record is changed: read, judged, changed and replaced as it was read; if others were faster, again.

use fleetwright_identity::{Principal, Verb};
use fleetwright_store::{Revision, Transaction, Versioned};

use super::{Instances, TRIES};
use crate::{
    ComputeError,
    instance::{DeletionCause, EventKind, Instance, InstanceId},
};

/// That a wish is in the record. It is true once the instance's `observed_generation` is no lower than this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Accepted {
    /// The commit that has it.
    pub revision: Revision,
    /// The generation that it is part of.
    pub generation: u64,
}

/// What a wish comes to.
pub(super) enum Wished {
    /// It is so already: nothing is written.
    Already,
    /// It is in the record, with all that belongs to it.
    Written,
    /// It is in the record but for this event, and perhaps for the next generation.
    Told(EventKind, &'static str, Raises),
}

/// Whether a change is one of what is asked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Raises {
    /// There is something to be made true.
    Generation,
    /// There is not.
    Nothing,
}

impl Raises {
    /// Raises the generation of a record that is to be written, if it is to be.
    pub(super) fn raise(self, instance: &mut Instance) {
        match self {
            Self::Generation => instance.generation = instance.generation.saturating_add(1),
            Self::Nothing => {}
        }
    }
}

impl Instances {
    /// Asks for it to go. It is gone once its server is, and only then its name is free and its quota given back. Asking again
    /// is no error, and whatever is known of it is no obstacle.
    pub async fn delete(&self, who: &Principal, id: InstanceId) -> Result<(), ComputeError> {
        let wish = |instance: &mut Instance| {
            if !instance.mark_deleted(self.clock.now(), who.actor(), DeletionCause::Asked) {
                return Ok(Wished::Already);
            }
            Ok(Wished::Written)
        };
        let work = async {
            self.write(who, Verb::Delete, id, wish).await?;
            Ok(())
        };
        self.metered("delete", Some(id), work).await
    }

    /// A wish that an instance takes which is not being deleted.
    pub(super) async fn change(
        &self,
        who: &Principal,
        verb: Verb,
        id: InstanceId,
        wish: impl Fn(&mut Instance) -> Result<Wished, ComputeError> + Send + Sync,
    ) -> Result<Accepted, ComputeError> {
        let written = self.write(who, verb, id, |instance| match instance.deletion {
            None => wish(instance),
            Some(_) => Err(ComputeError::Deleting(id)),
        });
        let written = written.await?;
        Ok(Accepted {
            revision: written.revision,
            generation: written.value.generation,
        })
    }

    pub(super) async fn write(
        &self,
        who: &Principal,
        verb: Verb,
        id: InstanceId,
        wish: impl Fn(&mut Instance) -> Result<Wished, ComputeError> + Send + Sync,
    ) -> Result<Versioned<Instance>, ComputeError> {
        for _ in 0..TRIES {
            let found = self.permitted(who, verb, id).await?;
            let mut instance = found.value.clone();
            match wish(&mut instance)? {
                Wished::Already => return Ok(found),
                Wished::Written => {}
                Wished::Told(kind, words, raises) => {
                    raises.raise(&mut instance);
                    self.tell(&mut instance, who, kind, words.to_owned());
                }
            }
            let transaction = self.table.replace(Transaction::new(), &found, &instance)?;
            match self.store.commit(&transaction).await {
                Ok(revision) => {
                    return Ok(Versioned {
                        key: found.key,
                        revision,
                        value: instance,
                    });
                }
                Err(error) if error.conflict().is_some() => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(ComputeError::Busy(id))
    }

    /// Puts an event into the record that is to be written.
    pub(super) fn tell(
        &self,
        instance: &mut Instance,
        who: &Principal,
        kind: EventKind,
        words: String,
    ) {
        instance.note(self.clock.now(), who.actor(), kind, words);
    }
}
