//! How one record is changed: read, authorized, changed and replaced at the revision that was read; on a conflict, again.

use fleetwright_identity::{Principal, Verb};
use fleetwright_store::{Revision, Transaction, Versioned};

use super::{ATTEMPTS, Instances};
use crate::{
    ComputeError,
    instance::{DeletionCause, EventKind, Instance, InstanceId, Modification},
};

/// The request is recorded. It is applied once the instance's `observed_generation` has reached this generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Accepted {
    /// The commit that recorded it.
    pub revision: Revision,
    /// The generation that includes it.
    pub generation: u64,
}

/// What a request changes.
pub(super) enum RecordChange {
    /// The record has it already: nothing is written.
    None,
    /// The record is changed, with its event and generation.
    Complete,
    /// The record is changed; this event is to be added, and perhaps the generation incremented.
    WithEvent(EventKind, &'static str, GenerationStep),
}

/// Whether a change is one of the desired state.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum GenerationStep {
    /// The desired state changed.
    Increment,
    /// It did not.
    Keep,
}

impl GenerationStep {
    /// Increments the generation of a record that is about to be written, if it has to be.
    pub(super) fn increment(self, instance: &mut Instance) {
        match self {
            Self::Increment => instance.generation = instance.generation.saturating_add(1),
            Self::Keep => {}
        }
    }
}

impl Instances {
    /// Requests the deletion of an instance. Its record disappears after its server is deleted; only then is its name free and its
    /// quota released. Deleting it again is no error, and it is possible in every state.
    ///
    /// # Errors
    ///
    /// [`NotFound`](ComputeError::NotFound) if it does not exist or is not visible, [`Refused`](ComputeError::Refused) without the
    /// permission to delete.
    pub async fn delete(&self, principal: &Principal, id: InstanceId) -> Result<(), ComputeError> {
        let change = |instance: &mut Instance| {
            if !instance.mark_deleted(
                self.clock.now(),
                principal.actor(),
                DeletionCause::Requested,
            ) {
                return Ok(RecordChange::None);
            }
            Ok(RecordChange::Complete)
        };
        let work = async {
            self.write(principal, Verb::Delete, id, change).await?;
            Ok(())
        };
        self.measure("delete", Some(id), work).await
    }

    /// A change that is refused while the instance is being deleted.
    pub(super) async fn change(
        &self,
        principal: &Principal,
        verb: Verb,
        id: InstanceId,
        change: impl Fn(&mut Instance) -> Result<RecordChange, ComputeError> + Send + Sync,
    ) -> Result<Accepted, ComputeError> {
        let written = self.write(principal, verb, id, |instance| match instance.deletion {
            None => change(instance),
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
        principal: &Principal,
        verb: Verb,
        id: InstanceId,
        change: impl Fn(&mut Instance) -> Result<RecordChange, ComputeError> + Send + Sync,
    ) -> Result<Versioned<Instance>, ComputeError> {
        for _ in 0..ATTEMPTS {
            let found = self.permitted(principal, verb, id).await?;
            let mut instance = found.value.clone();
            match change(&mut instance)? {
                RecordChange::None => return Ok(found),
                RecordChange::Complete => {}
                RecordChange::WithEvent(kind, message, step) => {
                    step.increment(&mut instance);
                    if step == GenerationStep::Increment {
                        let (at, by) = (self.clock.now(), principal.actor().clone());
                        instance.modified = Some(Modification { at, by });
                    }
                    self.add_event(&mut instance, principal, kind, message.to_owned());
                }
            }
            let transaction = self.table.replace(Transaction::new(), &found, &instance)?;
            let transaction = self.add_entry(transaction, principal, verb, &instance)?;
            match self.store.commit(&transaction).await {
                Ok(revision) => return Ok(found.replaced_by(revision, instance)),
                Err(error) if error.conflict().is_some() => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(ComputeError::Busy(id))
    }

    /// Adds an event to the record that is about to be written.
    pub(super) fn add_event(
        &self,
        instance: &mut Instance,
        principal: &Principal,
        kind: EventKind,
        message: String,
    ) {
        instance.note(self.clock.now(), principal.actor(), kind, message);
    }
}
