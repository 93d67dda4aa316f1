//! What is shown of an instance's machine: its console, its key, an image of it.
//!
//! The tenant is judged by the permission for the verb on the instance; then the region is asked in compute's name, for the one
//! server that the record names and that names the instance in turn. That a key was shown, a console opened or an image made is an
//! event, written before anything is answered: nobody has what is not in the record.

use std::num::NonZeroUsize;

use fleetwright::{ConsoleOutput, ConsoleSession};
use fleetwright_identity::{Principal, Verb};
use fleetwright_region::{
    catalog::Image,
    ids::RegionId,
    machine::{MachineAccess, MachineError},
    secret::Secret,
    server::{ServerError, ServerId, ServerView},
    snapshot::NewSnapshot,
};

use super::{
    Instances, RETRY_AFTER,
    change::{GenerationStep, RecordChange},
};
use crate::{
    ComputeError,
    instance::{EventKind, Instance, InstanceId},
};

impl Instances {
    /// What the machine has printed: all that the cloud still has, or the last lines of it.
    pub async fn console_output(
        &self,
        who: &Principal,
        id: InstanceId,
        lines: Option<NonZeroUsize>,
    ) -> Result<ConsoleOutput, ComputeError> {
        let verb = Verb::ConsoleOutput;
        let work = async {
            let (machines, server) = self.machine_of(who, verb, id).await?;
            let shown = machines.console_output(&self.service, server, lines).await;
            shown.map_err(|error| told(id, error))
        };
        self.metered(verb.as_str(), Some(id), work).await
    }

    /// A session on the console of one that runs. Whoever has its address is in.
    pub async fn console_session(
        &self,
        who: &Principal,
        id: InstanceId,
    ) -> Result<ConsoleSession, ComputeError> {
        let verb = Verb::ConsoleSession;
        let work = async {
            let (machines, server) = self.machine_of(who, verb, id).await?;
            let opened = machines.console_session(&self.service, server).await;
            let session = opened.map_err(|error| told(id, error))?;
            self.accessed(who, verb, id, "a console session was opened")
                .await?;
            Ok(session)
        };
        self.metered(verb.as_str(), Some(id), work).await
    }

    /// The private half of its key pair, which opens no other instance.
    pub async fn ssh_key(&self, who: &Principal, id: InstanceId) -> Result<Secret, ComputeError> {
        let verb = Verb::SshKey;
        let work = async {
            let (machines, server) = self.machine_of(who, verb, id).await?;
            let shown = machines.ssh_key(&self.service, server).await;
            let secret = shown.map_err(|error| told(id, error))?;
            self.accessed(who, verb, id, "the private SSH key was read")
                .await?;
            Ok(secret)
        };
        self.metered(verb.as_str(), Some(id), work).await
    }

    /// Writes down that an image of its disk is to be made, and answers it: pending, and seen by all of the organization. Tags of the
    /// system's own are left out of what is asked for, and those that say where it comes from are added. The same again answers the
    /// image that there is.
    pub async fn snapshot(
        &self,
        who: &Principal,
        id: InstanceId,
        new: &NewSnapshot,
    ) -> Result<Image, ComputeError> {
        let verb = Verb::Snapshot;
        let work = async {
            let (machines, server) = self.machine_of(who, verb, id).await?;
            let made = machines.snapshot(&self.service, server, new).await;
            let image = made.map_err(|error| told(id, error))?;
            self.accessed(who, verb, id, "a snapshot of its disk was requested")
                .await?;
            Ok(image)
        };
        self.metered(verb.as_str(), Some(id), work).await
    }

    /// Whom to ask for the machine, once the caller may.
    async fn machine_of(
        &self,
        who: &Principal,
        verb: Verb,
        id: InstanceId,
    ) -> Result<(&MachineAccess, ServerId), ComputeError> {
        let instance = self.permitted(who, verb, id).await?.value;
        if instance.deletion.is_some() {
            return Err(ComputeError::Deleting(id));
        }
        let what = verb.as_str();
        let machines = self.machines.as_ref();
        let machines = machines.ok_or(ComputeError::Unsupported { id, what })?;
        match self.server_of(&instance).await? {
            Some(_) => Ok((machines, instance.server)),
            None => Err(unmade(id)),
        }
    }

    /// The server of an instance: the one of its id, if that is this instance's. Another one is none of its tenant's business.
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
            Err(error) => Err(inside(instance.id, error)),
        }
    }

    async fn accessed(
        &self,
        who: &Principal,
        verb: Verb,
        id: InstanceId,
        message: &'static str,
    ) -> Result<(), ComputeError> {
        let wish = |_: &mut Instance| {
            Ok(RecordChange::WithEvent(
                EventKind::Accessed,
                message,
                GenerationStep::Keep,
            ))
        };
        self.write(who, verb, id, wish).await?;
        Ok(())
    }
}

/// A failure of what stands behind an instance, in words about the instance.
pub(super) fn inside(id: InstanceId, error: ServerError) -> ComputeError {
    if let ServerError::NoRegion(region) = &error {
        return check_no_server(id, region);
    }
    error.into()
}

fn check_no_server(id: InstanceId, region: &RegionId) -> ComputeError {
    ComputeError::Unavailable {
        id,
        reason: format!("region {region} is not in service"),
        retry_after: RETRY_AFTER,
    }
}

fn unmade(id: InstanceId) -> ComputeError {
    ComputeError::NotReady {
        id,
        found: "it has not been launched yet".to_owned(),
        wanted: "launched".to_owned(),
        retry_after: RETRY_AFTER,
    }
}

/// What the region says of a machine, in words about the instance: its tenant knows of no server.
fn told(id: InstanceId, error: MachineError) -> ComputeError {
    match error {
        MachineError::NotFound(_) => unmade(id),
        MachineError::Deleting(_) => ComputeError::NotReady {
            id,
            found: "its machine is being deleted".to_owned(),
            wanted: "launched again".to_owned(),
            retry_after: RETRY_AFTER,
        },
        MachineError::NotReady {
            found,
            wanted,
            retry_after,
            ..
        } => ComputeError::NotReady {
            id,
            found: format!("it is {found}"),
            wanted: wanted.to_owned(),
            retry_after,
        },
        MachineError::NoMachine { found, .. } => ComputeError::NotReady {
            id,
            found: format!("it {found}"),
            wanted: "replaced by another machine, or deleted".to_owned(),
            retry_after: RETRY_AFTER,
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
        MachineError::NoRegion(region) => check_no_server(id, &region),
        MachineError::Declined { verb, .. } => ComputeError::Unprocessable {
            field: verb.as_str().to_owned(),
            problem: "the cloud refuses this for the instance: a repeated call fails too"
                .to_owned(),
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
        MachineError::ImageTaken(image) => ComputeError::ImageTaken(image),
        MachineError::Store(error) => error.into(),
        MachineError::Refused(_)
        | MachineError::NoKeyring(_)
        | MachineError::Key { .. }
        | MachineError::NoSource { .. }
        | MachineError::Image { .. } => ComputeError::Machine { id, source: error },
        other => ComputeError::Machine { id, source: other },
    }
}
