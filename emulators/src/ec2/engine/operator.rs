//! What others do to the account: foreign objects, guests that shut down, a cloud that wants a machine
//! back. None of it passes the wire, so none of it is counted, throttled or late.

use serde::{Deserialize, Serialize};

use super::{
    Engine, Mode,
    launch::{MetadataOptions, Order, ShutdownBehavior, SpotKind},
    record::{Reason, State, Tags},
    storage::Device,
};
use crate::ec2::{error::Refusal, knobs::Market};

/// Something that somebody else does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum ExternalAction {
    /// Launches instances that no client of ours asked for.
    LaunchForeign {
        /// The image; the first one unless given.
        #[serde(default)]
        image: Option<String>,
        /// The type; the first that fits the image unless given.
        #[serde(default)]
        instance_type: Option<String>,
        /// The zone; any unless given.
        #[serde(default)]
        zone: Option<String>,
        /// How many.
        #[serde(default = "one")]
        count: u32,
        /// Their tags.
        #[serde(default)]
        tags: Tags,
    },
    /// Makes a volume that is attached to nothing.
    CreateForeignVolume {
        /// Its zone.
        zone: String,
        /// Its size.
        gib: u32,
        /// Its tags.
        #[serde(default)]
        tags: Tags,
    },
    /// Stops an instance, as from the console.
    Stop {
        /// The instance.
        id: String,
    },
    /// Terminates an instance, protected or not.
    Terminate {
        /// The instance.
        id: String,
    },
    /// The guest shuts itself down, and stops or terminates as the instance's attribute says.
    GuestShutdown {
        /// The instance.
        id: String,
    },
    /// EC2 takes a spot machine back.
    InterruptSpot {
        /// The instance.
        id: String,
    },
    /// Sets an instance's tags, all of them.
    SetTags {
        /// The instance.
        id: String,
        /// What it has from now on.
        tags: Tags,
    },
}

const fn one() -> u32 {
    1
}

impl Engine {
    /// Carries an act out, and answers the ids of what it was about.
    pub(crate) fn perform(&mut self, action: ExternalAction) -> Result<Vec<String>, Refusal> {
        let paused = self.core.pause_observation();
        let result = self.carry_out(action);
        self.core.resume_observation(paused);
        result
    }

    fn carry_out(&mut self, action: ExternalAction) -> Result<Vec<String>, Refusal> {
        match action {
            ExternalAction::LaunchForeign {
                image,
                instance_type,
                zone,
                count,
                tags,
            } => {
                let order = self.foreign_order(image, instance_type, zone, count, tags)?;
                let launched = self.launch(&order, None, Mode::Execute)?;
                let ids = launched.iter().filter_map(|seq| self.instances.get(seq));
                Ok(ids.map(|instance| instance.fixed.id.clone()).collect())
            }
            ExternalAction::CreateForeignVolume { zone, gib, tags } => {
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
            ExternalAction::Terminate { id } => self.kill(
                id,
                "Client.UserInitiatedShutdown",
                "User initiated shutdown",
            ),
            ExternalAction::InterruptSpot { id } => self.kill(
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

    fn kill(&mut self, id: String, code: &str, words: &str) -> Result<Vec<String>, Refusal> {
        for seq in self.find(std::slice::from_ref(&id))? {
            self.begin_terminate(seq, &Reason::new(code, words));
        }
        Ok(vec![id])
    }

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

    fn foreign_order(
        &self,
        image: Option<String>,
        instance_type: Option<String>,
        zone: Option<String>,
        count: u32,
        tags: Tags,
    ) -> Result<Order, Refusal> {
        let first = self.images.values().next().map(|image| image.id.clone());
        let image = image.or(first).ok_or_else(|| Refusal::missing("ImageId"))?;
        let fits = self.image(&image).map(|image| image.architecture);
        let fitting = self
            .core
            .knobs
            .types
            .iter()
            .find(|spec| Some(&spec.architecture) == fits.as_ref());
        let instance_type = instance_type.or_else(|| fitting.map(|spec| spec.name.clone()));
        Ok(Order {
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
            nic_stays: false,
            profile: None,
            metadata: MetadataOptions::default(),
            market: Market::OnDemand,
            spot_kind: SpotKind::default(),
            protected: false,
            shutdown: ShutdownBehavior::Stop,
            ebs_optimized: false,
            monitoring: false,
            foreign: true,
        })
    }
}
