//! Instances and their verbs.

use std::time::Duration;

use fleetwright_api::{
    Accepted, ConsoleOutput, ConsoleSession, EventList, Image, Instance, InstanceCreate,
    InstancePage, InstanceUpdate, Plan, SnapshotCreate, SshKey,
};

use crate::{Client, Error, InstanceFilter, call::Call, operation};

/// A value with the tag of its state: pass the tag to an update, which then fails if somebody else has changed it since.
///
/// ```no_run
/// # async fn example(client: fleetwright_client::Client, id: &str) -> Result<(), fleetwright_client::Error> {
/// use fleetwright_api::{InstanceUpdate, MetadataWrite};
/// use fleetwright_client::{Consent, Tagged};
///
/// let Tagged { value: instance, etag } = client.read_instance(id).await?;
/// let mut spec = instance.spec;
/// spec.flavor_id = "large".to_owned();
/// let metadata = MetadataWrite { name: instance.metadata.name, description: instance.metadata.description, tags: instance.metadata.tags };
/// let update = InstanceUpdate { metadata, spec };
/// let plan = client.plan_instance(id, &update, etag.as_deref()).await?;
/// if !plan.destructive {
///     client.update_instance(id, &update, Consent::KeepData, etag.as_deref()).await?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Tagged<T> {
    /// The value.
    pub value: T,
    /// Its tag. A proxy may have removed it.
    pub etag: Option<String>,
}

/// Whether an update may lose data or addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Consent {
    /// It is refused then, with the plan.
    KeepData,
    /// It may replace disk or machine.
    AllowReplace,
}

/// How a machine is rebooted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reboot {
    /// Its system shuts down first.
    Soft,
    /// At once.
    Hard,
}

/// What a read of an instance waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Goal {
    /// The machine runs.
    Running,
    /// The machine is stopped.
    Stopped,
    /// The desired state is applied.
    Provisioned,
    /// The record is gone.
    Deleted,
}

impl Goal {
    /// As it is sent: `running`, for example.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Stopped => "stopped",
            Self::Provisioned => "provisioned",
            Self::Deleted => "deleted",
        }
    }
}

impl Client {
    /// One page of instances, from `after` on. [`instances`](Self::instances) returns all of them.
    pub async fn list_instances(
        &self,
        filter: &InstanceFilter,
        after: Option<&str>,
    ) -> Result<InstancePage, Error> {
        let call = filter.add_to(Call::new(&operation::LIST_INSTANCES, &[])?);
        self.fetch(call.query("after", after)).await
    }

    /// Creates an instance. A repeated attempt finds the first one.
    pub async fn create_instance(&self, new: &InstanceCreate) -> Result<Tagged<Instance>, Error> {
        self.tagged(Call::new(&operation::CREATE_INSTANCE, &[])?.body(new)?)
            .await
    }

    /// Reads an instance.
    pub async fn read_instance(&self, id: &str) -> Result<Tagged<Instance>, Error> {
        self.tagged(Call::new(&operation::READ_INSTANCE, &[id])?)
            .await
    }

    /// Reads an instance once it has reached a goal, needs a decision, or the timeout, in whole seconds and at most 25, is over: look at
    /// the instance. [`wait_until`](Self::wait_until) waits longer.
    pub async fn read_instance_when(
        &self,
        id: &str,
        goal: Goal,
        timeout: Duration,
    ) -> Result<Tagged<Instance>, Error> {
        let call = Call::new(&operation::READ_INSTANCE, &[id])?
            .query("waitFor", Some(goal.as_str()))
            .query("timeout", Some(timeout.as_secs()));
        self.tagged(call).await
    }

    /// What an update would do. Nothing is changed.
    pub async fn plan_instance(
        &self,
        id: &str,
        update: &InstanceUpdate,
        etag: Option<&str>,
    ) -> Result<Plan, Error> {
        let call = Call::new(&operation::UPDATE_INSTANCE, &[id])?
            .query("dryRun", Some(true))
            .if_match(etag);
        self.fetch(call.body(update)?).await
    }

    /// Updates an instance. It replaces description, tags and spec.
    pub async fn update_instance(
        &self,
        id: &str,
        update: &InstanceUpdate,
        consent: Consent,
        etag: Option<&str>,
    ) -> Result<Tagged<Instance>, Error> {
        let allow = match consent {
            Consent::KeepData => None,
            Consent::AllowReplace => Some(true),
        };
        let call = Call::new(&operation::UPDATE_INSTANCE, &[id])?
            .query("allowReplace", allow)
            .if_match(etag);
        self.tagged(call.body(update)?).await
    }

    /// Requests the deletion of an instance. Its record disappears when its machine is gone.
    pub async fn delete_instance(&self, id: &str) -> Result<(), Error> {
        self.perform(Call::new(&operation::DELETE_INSTANCE, &[id])?)
            .await
    }

    /// Starts an instance.
    pub async fn start_instance(&self, id: &str) -> Result<Accepted, Error> {
        self.fetch(Call::new(&operation::START_INSTANCE, &[id])?)
            .await
    }

    /// Stops an instance. It keeps its disk and its quota.
    pub async fn stop_instance(&self, id: &str) -> Result<Accepted, Error> {
        self.fetch(Call::new(&operation::STOP_INSTANCE, &[id])?)
            .await
    }

    /// Reboots an instance.
    pub async fn reboot_instance(&self, id: &str, how: Reboot) -> Result<Accepted, Error> {
        let hard = match how {
            Reboot::Soft => None,
            Reboot::Hard => Some(true),
        };
        let call = Call::new(&operation::REBOOT_INSTANCE, &[id])?;
        self.fetch(call.query("hard", hard)).await
    }

    /// Replaces the machine of an instance. The data on its root disk and its addresses are lost.
    pub async fn replace_instance(&self, id: &str) -> Result<Accepted, Error> {
        self.fetch(Call::new(&operation::REPLACE_INSTANCE, &[id])?)
            .await
    }

    /// The last events of an instance, oldest first.
    pub async fn list_instance_events(&self, id: &str) -> Result<EventList, Error> {
        self.fetch(Call::new(&operation::LIST_INSTANCE_EVENTS, &[id])?)
            .await
    }

    /// The private SSH key of an instance.
    pub async fn read_instance_ssh_key(&self, id: &str) -> Result<SshKey, Error> {
        self.fetch(Call::new(&operation::READ_INSTANCE_SSH_KEY, &[id])?)
            .await
    }

    /// Opens a session on the console of an instance.
    pub async fn open_instance_console(&self, id: &str) -> Result<ConsoleSession, Error> {
        self.fetch(Call::new(&operation::OPEN_INSTANCE_CONSOLE, &[id])?)
            .await
    }

    /// The end of the console output of an instance: its last `length` bytes, or what the service chooses.
    pub async fn read_instance_console(
        &self,
        id: &str,
        length: Option<u64>,
    ) -> Result<ConsoleOutput, Error> {
        let call = Call::new(&operation::READ_INSTANCE_CONSOLE, &[id])?;
        self.fetch(call.query("length", length)).await
    }

    /// Creates an image of the disk of an instance.
    pub async fn snapshot_instance(&self, id: &str, new: &SnapshotCreate) -> Result<Image, Error> {
        self.fetch(Call::new(&operation::SNAPSHOT_INSTANCE, &[id])?.body(new)?)
            .await
    }

    async fn tagged(&self, call: Call) -> Result<Tagged<Instance>, Error> {
        let success = self.send(call).await?;
        Ok(Tagged {
            value: success.json()?,
            etag: success.etag,
        })
    }
}
