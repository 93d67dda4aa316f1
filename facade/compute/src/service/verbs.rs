//! Power, reboots and replacements: requests in the record, which the controller applies.
//!
//! Each call needs its own permission: the permission to read an instance does not include stopping it. Requests are accepted before
//! the server exists, too.

use fleetwright::{OptionalVerb, Reboot};
use fleetwright_identity::{Principal, Verb};
use fleetwright_region::server::Power;

use super::{
    Accepted, Instances,
    access::server_error,
    change::{GenerationStep, RecordChange},
};
use crate::{
    ComputeError,
    instance::{EventKind, Instance, InstanceId},
};

impl Instances {
    /// Requests that an instance runs. The request holds for later machines too. Nothing is written if it was requested before.
    ///
    /// # Errors
    ///
    /// [`Deleting`](ComputeError::Deleting) if it is being deleted, [`NotFound`](ComputeError::NotFound) if it does not exist or is not
    /// visible, [`Refused`](ComputeError::Refused) without the permission to start. The other requests return the same, each for its
    /// own permission.
    ///
    /// ```no_run
    /// use fleetwright_compute::prelude::*;
    ///
    /// # async fn example(instances: &Instances, ada: &Principal, id: InstanceId) -> Result<(), ComputeError> {
    /// let accepted = instances.start(ada, id).await?;
    /// let view = instances.read(ada, id).await?;
    /// let applied = view.instance.status.observed_generation >= accepted.generation;
    /// println!("started: {applied}");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn start(
        &self,
        principal: &Principal,
        id: InstanceId,
    ) -> Result<Accepted, ComputeError> {
        let work = self.power(principal, Verb::Start, id, Power::Running);
        self.measure("start", Some(id), work).await
    }

    /// Requests that an instance is stopped. The request holds for later machines too. Nothing is written if it was requested before.
    ///
    /// A stopped instance keeps its disk and its allocation of quota.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub async fn stop(
        &self,
        principal: &Principal,
        id: InstanceId,
    ) -> Result<Accepted, ComputeError> {
        let work = self.power(principal, Verb::Stop, id, Power::Stopped);
        self.measure("stop", Some(id), work).await
    }

    /// Requests a reboot of an instance whose desired power state is running. Reboots that are not carried out yet become one.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](ComputeError::Unsupported) if the cloud of its region has no reboot, [`NotReady`](ComputeError::NotReady) if its
    /// desired power state is stopped; otherwise as [`start`](Self::start).
    pub async fn reboot(
        &self,
        principal: &Principal,
        id: InstanceId,
        how: Reboot,
    ) -> Result<Accepted, ComputeError> {
        let desired = |instance: &mut Instance| {
            let offered = self
                .servers
                .offers(&instance.region, OptionalVerb::RebootInstance);
            if !offered.map_err(|error| server_error(id, error))? {
                let what = Verb::Reboot.as_str();
                return Err(ComputeError::Unsupported { id, what });
            }
            if instance.intent.power != Power::Running {
                return Err(ComputeError::NotReady {
                    id,
                    found: "it is stopped or being stopped".to_owned(),
                    wanted: "running: start it first".to_owned(),
                    // Only a start helps.
                    retry_after: None,
                });
            }
            instance.intent.reboots = instance.intent.reboots.saturating_add(1);
            instance.intent.reboot_how = how;
            let message = match how {
                Reboot::Soft => "a soft reboot was requested",
                Reboot::Hard => "a hard reboot was requested",
            };
            Ok(with_event(EventKind::Requested, message))
        };
        let work = self.change(principal, Verb::Reboot, id, desired);
        self.measure("reboot", Some(id), work).await
    }

    /// Requests another machine in place of the present one. **The data on its root disk and its addresses are lost**; calling this is
    /// the consent to that. It needs the permission to update.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start), and [`Unprocessable`](ComputeError::Unprocessable) if the region cannot launch another machine now.
    pub async fn replace(
        &self,
        principal: &Principal,
        id: InstanceId,
    ) -> Result<Accepted, ComputeError> {
        let desired = |instance: &mut Instance| {
            instance.intent.replaces = instance.intent.replaces.saturating_add(1);
            let message =
                "a replacement was requested: the data on its root disk and its addresses are lost";
            Ok(with_event(EventKind::LossAccepted, message))
        };
        let work = async {
            let found = self.permitted(principal, Verb::Update, id).await?;
            if found.value.deletion.is_none() {
                self.check_replacement(&found.value).await?;
            }
            self.change(principal, Verb::Update, id, desired).await
        };
        self.measure("replace", Some(id), work).await
    }

    async fn power(
        &self,
        principal: &Principal,
        verb: Verb,
        id: InstanceId,
        power: Power,
    ) -> Result<Accepted, ComputeError> {
        let desired = |instance: &mut Instance| {
            if instance.intent.power == power {
                return Ok(RecordChange::None);
            }
            instance.intent.power = power;
            let message = match power {
                Power::Running => "a start was requested",
                Power::Stopped => "a stop was requested",
                Power::Deleted => "a deletion was requested",
            };
            Ok(with_event(EventKind::Requested, message))
        };
        self.change(principal, verb, id, desired).await
    }
}

fn with_event(kind: EventKind, message: &'static str) -> RecordChange {
    RecordChange::WithEvent(kind, message, GenerationStep::Increment)
}
