//! Calls that use an instance's machine: console output, console session, SSH key, snapshot.
//!
//! The caller needs the permission for the verb on the instance. Then compute calls the region with its own principal, for the server
//! that the record names and that names the instance as its owner. A read key, an opened console and read console output are entries of
//! the audit log, which are committed before the call returns: nobody gets a secret without an entry. They are no events: an instance
//! keeps 64 events, and reads would replace all others. A requested snapshot is both.

use std::num::NonZeroUsize;

use fleetwright::{ConsoleOutput, ConsoleSession};
use fleetwright_identity::{Principal, Verb};
use fleetwright_region::{
    catalog::Image,
    ids::RegionId,
    machine::{MachineAccess, MachineError},
    network::RecordError,
    secret::Secret,
    server::{Power, ServerError, ServerView},
    snapshot::{NewSnapshot, RequestedImage},
};

use super::{
    Instances, RETRY_AFTER,
    allocation::quota_error,
    change::{GenerationStep, RecordChange},
};
use crate::{
    ComputeError,
    instance::{EventKind, Instance, InstanceId},
};

impl Instances {
    /// Returns the machine's console output, all that the cloud still has or the last `lines` of it, after it was recorded in the audit log.
    ///
    /// # Errors
    ///
    /// Shared by the four calls of machines: [`NotReady`](ComputeError::NotReady) if it has no machine yet or its state does not permit
    /// the call, [`Unsupported`](ComputeError::Unsupported) if its region's cloud does not offer it,
    /// [`Unavailable`](ComputeError::Unavailable) if the cloud cannot be reached now, [`Deleting`](ComputeError::Deleting).
    pub async fn console_output(
        &self,
        principal: &Principal,
        id: InstanceId,
        lines: Option<NonZeroUsize>,
    ) -> Result<ConsoleOutput, ComputeError> {
        let verb = Verb::ConsoleOutput;
        let work = async {
            let (machines, instance) = self.machine_of(principal, verb, id).await?;
            let output = machines
                .console_output(&self.service, instance.server, lines)
                .await;
            let output = output.map_err(|error| machine_error(id, error))?;
            self.record_disclosure(principal, verb, &instance).await?;
            Ok(output)
        };
        self.measure(verb.as_str(), Some(id), work).await
    }

    /// Opens a session on the console of a running instance, and returns it after it was recorded in the audit log.
    ///
    /// The session's address is a secret: it gives access to the console without further authentication.
    ///
    /// # Errors
    ///
    /// As [`console_output`](Self::console_output).
    pub async fn console_session(
        &self,
        principal: &Principal,
        id: InstanceId,
    ) -> Result<ConsoleSession, ComputeError> {
        let verb = Verb::ConsoleSession;
        let work = async {
            let (machines, instance) = self.machine_of(principal, verb, id).await?;
            let opened = machines
                .console_session(&self.service, instance.server)
                .await;
            let session = opened.map_err(|error| machine_error(id, error));
            let session = session.map_err(|error| unless_started(instance.intent.power, error))?;
            self.record_disclosure(principal, verb, &instance).await?;
            Ok(session)
        };
        self.measure(verb.as_str(), Some(id), work).await
    }

    /// Returns the private key of the instance's SSH key pair after the read was recorded in the audit log. If it cannot be recorded, no key
    /// is returned. The key gives access to no other instance.
    ///
    /// # Errors
    ///
    /// As [`console_output`](Self::console_output), and [`NoKey`](ComputeError::NoKey) if it was created without a key pair.
    pub async fn ssh_key(
        &self,
        principal: &Principal,
        id: InstanceId,
    ) -> Result<Secret, ComputeError> {
        let verb = Verb::SshKey;
        let work = async {
            let (machines, instance) = self.machine_of(principal, verb, id).await?;
            let key = machines.ssh_key(&self.service, instance.server).await;
            let secret = key.map_err(|error| machine_error(id, error))?;
            self.record_disclosure(principal, verb, &instance).await?;
            Ok(secret)
        };
        self.measure(verb.as_str(), Some(id), work).await
    }

    /// Requests an image of the instance's disk, adds an event, and returns the image: pending, and visible to the project. A repeated
    /// request adds none.
    ///
    /// Its id is the system's, and its name is unique among the images of the project. Reserved tags are removed from the request, and tags
    /// that name the image's origin are added. Repeating the request returns the same image.
    ///
    /// # Errors
    ///
    /// As [`console_output`](Self::console_output), and [`ImageNameTaken`](ComputeError::ImageNameTaken) if another image of the
    /// project has the name.
    pub async fn snapshot(
        &self,
        principal: &Principal,
        id: InstanceId,
        new: &NewSnapshot,
    ) -> Result<Image, ComputeError> {
        let verb = Verb::Snapshot;
        let work = async {
            let (machines, instance) = self.machine_of(principal, verb, id).await?;
            let actor = principal.actor();
            let created = machines
                .snapshot_for(&self.service, actor, instance.server, new)
                .await;
            let image = created.map_err(|error| machine_error(id, error));
            match image.map_err(|error| quota_error(principal, error))? {
                RequestedImage::Existing(image) => Ok(image),
                RequestedImage::New(image) => {
                    self.record_snapshot(principal, id).await?;
                    Ok(image)
                }
            }
        };
        self.measure(verb.as_str(), Some(id), work).await
    }

    /// Checks the caller's permission, and returns the access to machines with the instance, which has a server.
    async fn machine_of(
        &self,
        principal: &Principal,
        verb: Verb,
        id: InstanceId,
    ) -> Result<(&MachineAccess, Instance), ComputeError> {
        let instance = self.permitted(principal, verb, id).await?.value;
        if instance.deletion.is_some() {
            return Err(ComputeError::Deleting(id));
        }
        let what = verb.as_str();
        let machines = self.machines.as_ref();
        let machines = machines.ok_or(ComputeError::Unsupported { id, what })?;
        match self.server_of(&instance).await? {
            Some(_) => Ok((machines, instance)),
            None if is_removed(&instance) => Err(machine_removed(id)),
            None => Err(not_launched(id)),
        }
    }

    /// Returns the server of an instance, or `None`. A server of another owner with the same id is not returned.
    pub(super) async fn server_of(
        &self,
        instance: &Instance,
    ) -> Result<Option<ServerView>, ComputeError> {
        match self.servers.read(&self.service, instance.server).await {
            Ok(view) => {
                let server = &view.server;
                let own = server.owner == instance.id.owner()
                    && server.scope() == instance.scope()
                    && server.region == instance.region;
                Ok(own.then_some(view))
            }
            Err(ServerError::NotFound(_)) => Ok(None),
            Err(error) => Err(server_error(instance.id, error)),
        }
    }

    async fn record_snapshot(
        &self,
        principal: &Principal,
        id: InstanceId,
    ) -> Result<(), ComputeError> {
        let desired = |_: &mut Instance| {
            let message = "a snapshot of its disk was requested";
            let (kind, step) = (EventKind::Accessed, GenerationStep::Keep);
            Ok(RecordChange::WithEvent(kind, message, step))
        };
        self.write(principal, Verb::Snapshot, id, desired).await?;
        Ok(())
    }
}

/// Converts an error of the region into one about the instance: tenants do not know of servers.
pub(super) fn server_error(id: InstanceId, error: ServerError) -> ComputeError {
    match error {
        ServerError::NoRegion(region) => region_not_served(id, &region),
        ServerError::Store(error) => error.into(),
        ServerError::Dependency(error) => error.into(),
        ServerError::Busy(_) => ComputeError::Busy(id),
        ServerError::NotFound(_) | ServerError::NoServerOwnedBy(_) => not_launched(id),
        ServerError::Deleting(_) => machine_deleting(id),
        ServerError::Sealed { key, .. } => ComputeError::Sealed { id, key },
        ServerError::Refused(_)
        | ServerError::UserDataTooLarge { .. }
        | ServerError::UserData { .. }
        | ServerError::TooManySecurityGroups { .. }
        | ServerError::Key { .. }
        | ServerError::Taken { .. }
        | ServerError::NeedsConsent { .. }
        | ServerError::NotReady { .. } => internal(id, &error),
        other => internal(id, &other),
    }
}

/// An error that only an operator can correct. Its cause names the server: it is logged, and no part of the error.
fn internal(id: InstanceId, cause: &dyn std::error::Error) -> ComputeError {
    let source = cause.source().map(ToString::to_string);
    tracing::error!(instance = %id, %cause, source, "a call to the region failed");
    ComputeError::Internal(id)
}

fn machine_deleting(id: InstanceId) -> ComputeError {
    ComputeError::NotReady {
        id,
        found: "its machine is being deleted".to_owned(),
        wanted: "launched again".to_owned(),
        retry_after: Some(RETRY_AFTER),
    }
}

fn region_not_served(id: InstanceId, region: &RegionId) -> ComputeError {
    ComputeError::Unavailable {
        id,
        reason: format!("region {region} is not in service"),
        retry_after: RETRY_AFTER,
    }
}

/// Whether an instance had a machine that an operator has removed, and no replacement was requested since.
fn is_removed(instance: &Instance) -> bool {
    let link = instance.status.server.as_ref();
    link.is_some_and(|link| instance.intent.replaces <= link.replaces)
}

fn machine_removed(id: InstanceId) -> ComputeError {
    ComputeError::NotReady {
        id,
        found: "its machine was removed by an operator".to_owned(),
        wanted: "replaced or deleted".to_owned(),
        // Only a replacement helps.
        retry_after: None,
    }
}

/// Returns the error of a call that needs a running machine. If the instance is stopped on request, only a start helps.
fn unless_started(power: Power, error: ComputeError) -> ComputeError {
    match (power, error) {
        (
            Power::Stopped | Power::Deleted,
            ComputeError::NotReady {
                id,
                found,
                retry_after: Some(_),
                ..
            },
        ) => ComputeError::NotReady {
            id,
            found,
            wanted: "running: start it first".to_owned(),
            retry_after: None,
        },
        (Power::Running | Power::Stopped | Power::Deleted, error) => error,
    }
}

fn not_launched(id: InstanceId) -> ComputeError {
    ComputeError::NotReady {
        id,
        found: "it has not been launched yet".to_owned(),
        wanted: "launched".to_owned(),
        retry_after: Some(RETRY_AFTER),
    }
}

/// Converts an error of the region's machines into one about the instance: tenants do not know of servers.
fn machine_error(id: InstanceId, error: MachineError) -> ComputeError {
    match error {
        MachineError::NotFound(_) => not_launched(id),
        MachineError::Deleting(_) => machine_deleting(id),
        MachineError::NotReady {
            found,
            wanted,
            retry_after,
            ..
        } => ComputeError::NotReady {
            id,
            found: format!("it is {found}"),
            wanted: wanted.to_owned(),
            retry_after: Some(retry_after),
        },
        MachineError::NoMachine { found, .. } => ComputeError::NotReady {
            id,
            found: format!("it {found}"),
            wanted: "replaced or deleted".to_owned(),
            // Only a replacement helps.
            retry_after: None,
        },
        MachineError::Unsupported { verb, .. } => ComputeError::Unsupported {
            id,
            what: verb.as_str(),
        },
        MachineError::Unavailable { retry_after, .. } => ComputeError::Unavailable {
            id,
            reason: "it is busy, or does not respond".to_owned(),
            retry_after,
        },
        MachineError::NoRegion(region) => region_not_served(id, &region),
        MachineError::Declined { verb, .. } => ComputeError::Unprocessable {
            field: verb.as_str().to_owned(),
            problem: format!(
                "the cloud refuses this for instance {id}, and refuses it again if it is repeated: replace the instance, or ask an operator"
            ),
        },
        MachineError::NoKey(_) => ComputeError::NoKey(id),
        MachineError::Tags(invalid) => ComputeError::BadField {
            field: "metadata.tags".to_owned(),
            problem: invalid.to_string(),
        },
        MachineError::DescriptionTooLong { .. } => ComputeError::BadField {
            field: "metadata.description".to_owned(),
            problem: error.to_string(),
        },
        MachineError::ImageNameTaken(name) => ComputeError::ImageNameTaken(name),
        MachineError::Store(error) => error.into(),
        MachineError::Ledger(error) => error.into(),
        MachineError::Closed(closed) => RecordError::from(closed).into(),
        MachineError::Refused(_)
        | MachineError::NoKeyring(_)
        | MachineError::Key { .. }
        | MachineError::NoSource { .. }
        | MachineError::Image { .. } => internal(id, &error),
        other => internal(id, &other),
    }
}

#[cfg(test)]
mod tests;
