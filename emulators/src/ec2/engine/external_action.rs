//! External actions: resources of others, guests that shut down, spot machines that EC2 takes
//! back.
//!
//! They bypass the wire, so they are not counted, throttled or delayed.

use serde::{Deserialize, Serialize};

use super::{
    Engine, Mode,
    launch::{LaunchRequest, MetadataOptions, ShutdownBehavior, SpotKind},
    record::{Reason, State, Tags},
    storage::Device,
};
use crate::ec2::{error::Refusal, knobs::Market};

/// Something that an external actor does to the account, past the API.
///
/// In JSON, the field `action` has the name in snake case:
///
/// ```
/// # use fleetwright_emulators::ec2::ExternalAction;
/// let action: ExternalAction =
///     serde_json::from_str(r#"{"action": "stop", "id": "i-0123456789abcdef0"}"#)?;
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum ExternalAction {
    /// Launches instances that the tested client did not launch. The oracle reports them as
    /// external.
    LaunchExternal {
        /// The image. Default: the first one.
        #[serde(default)]
        image: Option<String>,
        /// The instance type. Default: the first one with the image's architecture.
        #[serde(default)]
        instance_type: Option<String>,
        /// The zone. Default: the one with the most room.
        #[serde(default)]
        zone: Option<String>,
        /// How many instances. Default 1.
        #[serde(default = "one")]
        count: u32,
        /// Their tags. Default: none.
        #[serde(default)]
        tags: Tags,
    },
    /// Creates a volume that is not attached.
    CreateExternalVolume {
        /// Its zone.
        zone: String,
        /// Its size in GiB.
        gib: u32,
        /// Its tags. Default: none.
        #[serde(default)]
        tags: Tags,
    },
    /// Stops a running instance, as from the AWS console.
    Stop {
        /// The instance.
        id: String,
    },
    /// Terminates an instance, even a protected one.
    Terminate {
        /// The instance.
        id: String,
    },
    /// The guest of a running instance shuts down; the instance stops or terminates, as its
    /// shutdown behaviour says.
    GuestShutdown {
        /// The instance.
        id: String,
    },
    /// EC2 interrupts a spot instance: it terminates with the reason
    /// `Server.SpotInstanceTermination`.
    InterruptSpot {
        /// The instance.
        id: String,
    },
    /// Replaces all tags of an instance.
    SetTags {
        /// The instance.
        id: String,
        /// The new tags.
        tags: Tags,
    },
}

/// The default of `count`.
const fn one() -> u32 {
    1
}

impl Engine {
    /// Performs an external action and returns the ids of the resources.
    ///
    /// # Errors
    ///
    /// The error that the API would return: for a missing resource, a wrong state or an invalid
    /// tag.
    pub(crate) fn perform(&mut self, action: ExternalAction) -> Result<Vec<String>, Refusal> {
        let paused = self.core.pause_observation();
        let result = self.apply_action(action);
        self.core.resume_observation(&paused);
        result
    }

    /// Performs an external action. The caller has paused the counting of reads.
    fn apply_action(&mut self, action: ExternalAction) -> Result<Vec<String>, Refusal> {
        match action {
            ExternalAction::LaunchExternal {
                image,
                instance_type,
                zone,
                count,
                tags,
            } => {
                let request =
                    self.external_launch_request(image, instance_type, zone, count, tags)?;
                let launched = self.launch(&request, None, Mode::Execute)?;
                let ids = launched.iter().filter_map(|seq| self.instances.get(seq));
                Ok(ids.map(|instance| instance.fixed.id.clone()).collect())
            }
            ExternalAction::CreateExternalVolume { zone, gib, tags } => {
                let seq = self.add_volume(&zone, Device::new("", gib), &tags, None);
                Ok(self
                    .volumes
                    .get(&seq)
                    .map(|volume| volume.id.clone())
                    .into_iter()
                    .collect())
            }
            ExternalAction::Stop { id } => self
                .stop(&[id], Mode::Execute)
                .map(|changes| changes.into_iter().map(|c| c.id).collect()),
            ExternalAction::Terminate { id } => self.terminate_externally(
                id,
                "Client.UserInitiatedShutdown",
                "User initiated shutdown",
            ),
            ExternalAction::InterruptSpot { id } => self.terminate_externally(
                id,
                "Server.SpotInstanceTermination",
                "Spot instance termination",
            ),
            ExternalAction::GuestShutdown { id } => self.guest_shutdown(id),
            ExternalAction::SetTags { id, tags } => {
                super::tags::check(&tags)?;
                for seq in self.find(std::slice::from_ref(&id))? {
                    let tags = std::sync::Arc::new(tags.clone());
                    self.revise(seq, |version| version.tags = tags);
                }
                Ok(vec![id])
            }
        }
    }

    /// Begins to terminate an instance with this state reason and returns its id.
    fn terminate_externally(
        &mut self,
        id: String,
        code: &str,
        message: &str,
    ) -> Result<Vec<String>, Refusal> {
        for seq in self.find(std::slice::from_ref(&id))? {
            self.begin_terminate(seq, &Reason::new(code, message));
        }
        Ok(vec![id])
    }

    /// Shuts down the guest of an instance and returns its id.
    ///
    /// # Errors
    ///
    /// `IncorrectInstanceState` unless the instance runs.
    fn guest_shutdown(&mut self, id: String) -> Result<Vec<String>, Refusal> {
        let reason = Reason::new(
            "Client.InstanceInitiatedShutdown",
            "Instance initiated shutdown",
        );
        for seq in self.find(std::slice::from_ref(&id))? {
            let running = self.instances.get(&seq).map(|instance| instance.current());
            let running = running.filter(|version| version.state == State::Running);
            match running.map(|version| version.shutdown) {
                Some(ShutdownBehavior::Stop) => self.begin_stop(seq, &reason),
                Some(ShutdownBehavior::Terminate) => self.begin_terminate(seq, &reason),
                None => {
                    return Err(Refusal::wrong_state(format!(
                        "The instance '{id}' is not running."
                    )));
                }
            }
        }
        Ok(vec![id])
    }

    /// Returns the launch of external instances: on demand, in the default network, with the
    /// image's root volume only.
    fn external_launch_request(
        &self,
        image: Option<String>,
        instance_type: Option<String>,
        zone: Option<String>,
        count: u32,
        tags: Tags,
    ) -> Result<LaunchRequest, Refusal> {
        let first = self.images.values().next().map(|image| image.id.clone());
        let image = image.or(first).ok_or_else(|| Refusal::missing("ImageId"))?;
        let architecture = self.image(&image).map(|image| image.architecture);
        let matching_type = self
            .core
            .knobs
            .types
            .iter()
            .find(|spec| Some(&spec.architecture) == architecture.as_ref());
        let instance_type = instance_type.or_else(|| matching_type.map(|spec| spec.name.clone()));
        Ok(LaunchRequest {
            image,
            instance_type: instance_type.unwrap_or_default(),
            min: count,
            max: count,
            zone,
            subnet: None,
            groups: Vec::new(),
            key_name: None,
            user_data: None,
            token: None,
            instance_tags: tags,
            volume_tags: Tags::new(),
            nic_tags: Tags::new(),
            devices: Vec::new(),
            public_address: None,
            nic_description: String::new(),
            keep_nic: false,
            profile: None,
            metadata: MetadataOptions::default(),
            market: Market::OnDemand,
            spot_kind: SpotKind::default(),
            protected: false,
            shutdown: ShutdownBehavior::Stop,
            ebs_optimized: false,
            monitoring: false,
            external: true,
            stop_protected: false,
            credits: None,
            cpu: None,
            private_ip: None,
            spot_price: None,
            spot_tags: Tags::new(),
        })
    }
}
