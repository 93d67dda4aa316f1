//! Launches instances with their volumes and network interfaces.
//!
//! A launch is checked as a whole, creates as many instances as possible between the minimum and
//! the maximum, and puts them all into one zone and one reservation. They are `pending` for
//! `timing.boot`.

use std::{net::Ipv4Addr, sync::Arc};

use uuid::Uuid;

use super::{
    Engine, Event, Mode, Seq,
    plan::Plan,
    record::{Fixed, Instance, Reason, State, Tags, Version},
    storage::Device,
};
use crate::{
    cloud::history::History,
    ec2::{catalog::Subnet, error::Refusal, knobs::Market},
};

/// The parameters of RunInstances.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "EC2 has each of them as a bool parameter"
)]
pub(crate) struct LaunchRequest {
    /// The image id.
    pub(crate) image: String,
    /// The instance type.
    pub(crate) instance_type: String,
    /// The minimum number of instances: with fewer, the launch is refused.
    pub(crate) min: u32,
    /// The maximum number of instances, which are launched if possible.
    pub(crate) max: u32,
    /// The zone; `None` means the zone with the most room.
    pub(crate) zone: Option<String>,
    /// The subnet; `None` means the default subnet of the zone.
    pub(crate) subnet: Option<String>,
    /// The security groups; empty means the default group.
    pub(crate) groups: Vec<String>,
    /// The key pair.
    pub(crate) key_name: Option<String>,
    /// The user data, decoded.
    pub(crate) user_data: Option<Arc<[u8]>>,
    /// The client token, and a digest of the other parameters.
    pub(crate) token: Option<(String, Uuid)>,
    /// The tags of the instances.
    pub(crate) instance_tags: Tags,
    /// The tags of their volumes.
    pub(crate) volume_tags: Tags,
    /// The tags of their network interfaces.
    pub(crate) nic_tags: Tags,
    /// The block device mappings.
    pub(crate) devices: Vec<DeviceRequest>,
    /// Whether they get public addresses; `None` means as the subnet says.
    pub(crate) public_address: Option<bool>,
    /// The description of their network interfaces.
    pub(crate) nic_description: String,
    /// Whether the network interface outlives its instance.
    pub(crate) keep_nic: bool,
    /// The instance profile, by name or ARN.
    pub(crate) profile: Option<String>,
    /// The options of the metadata service.
    pub(crate) metadata: MetadataOptions,
    /// On demand or spot.
    pub(crate) market: Market,
    /// What happens to the spot request after its instance ends.
    pub(crate) spot_kind: SpotKind,
    /// Whether TerminateInstances is refused.
    pub(crate) protected: bool,
    /// What happens when the guest shuts down.
    pub(crate) shutdown: ShutdownBehavior,
    /// Whether they are EBS optimized; only stored.
    pub(crate) ebs_optimized: bool,
    /// Whether they have detailed monitoring; only stored.
    pub(crate) monitoring: bool,
    /// Whether an external actor launches them.
    pub(crate) external: bool,
    /// Whether StopInstances is refused.
    pub(crate) stop_protected: bool,
    /// How they spend CPU credits; `None` means as their type does by default.
    pub(crate) credits: Option<Credits>,
    /// The cores, and the threads of each; `None` means those of the type.
    pub(crate) cpu: Option<(u32, u32)>,
    /// The private address; only for one instance.
    pub(crate) private_ip: Option<Ipv4Addr>,
    /// The maximum price on the spot market; without effect.
    pub(crate) spot_price: Option<String>,
    /// The tags of their spot requests.
    pub(crate) spot_tags: Tags,
}

/// How an instance of a type with CPU credits spends them (Amazon EC2 user guide, "Burstable performance instances").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Credits {
    /// Only those that it has earned: the default of `t2`.
    Standard,
    /// More, for money: the default of newer types.
    Unlimited,
}

impl Credits {
    /// Returns the default of an instance type; `None` for a type without credits.
    pub(crate) fn of_type(name: &str) -> Option<Self> {
        match name.split('.').next().unwrap_or_default() {
            "t1" => None,
            "t2" => Some(Self::Standard),
            family if family.starts_with('t') && !family.starts_with("tr") => Some(Self::Unlimited),
            _ => None,
        }
    }

    /// Returns EC2's word.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Unlimited => "unlimited",
        }
    }
}

/// A block device mapping. Fields that are not set come from the image or are EC2's defaults.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeviceRequest {
    /// The device name, for example `/dev/xvda`.
    pub(crate) name: String,
    /// Whether the device is left out (`NoDevice`). The root device cannot be.
    pub(crate) absent: bool,
    /// The size in GiB.
    pub(crate) gib: Option<u32>,
    /// The volume type. Default `gp3`.
    pub(crate) kind: Option<String>,
    /// The snapshot; only stored.
    pub(crate) snapshot: Option<String>,
    /// The provisioned IOPS; only stored.
    pub(crate) iops: Option<u32>,
    /// The provisioned throughput in MiB per second; only stored.
    pub(crate) throughput: Option<u32>,
    /// Whether the volume is encrypted; only stored.
    pub(crate) encrypted: bool,
    /// Whether the volume is deleted with its instance. Default: true for the root volume, false
    /// for others.
    pub(crate) delete_on_termination: Option<bool>,
}

/// The options of an instance's metadata service, which are only stored and returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MetadataOptions {
    /// Whether it requires session tokens. Default false.
    pub(crate) tokens_required: bool,
    /// Whether it is enabled. Default true.
    pub(crate) enabled: bool,
    /// Whether it returns the instance's tags. Default false.
    pub(crate) tags: bool,
    /// The hop limit of its responses, 1 to 64. Default 1.
    pub(crate) hop_limit: u32,
}

impl Default for MetadataOptions {
    fn default() -> Self {
        Self {
            tokens_required: false,
            enabled: true,
            tags: false,
            hop_limit: 1,
        }
    }
}

/// What happens to an instance whose guest shuts down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ShutdownBehavior {
    /// The instance stops. This is the default.
    #[default]
    Stop,
    /// The instance terminates.
    Terminate,
}

/// What happens to a spot request after its instance ends. An instance of a one-time request
/// cannot be stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SpotKind {
    /// The request is closed. This is the default.
    #[default]
    OneTime,
    /// The request stays open. The emulator does not launch again for it.
    Persistent,
}

impl Engine {
    /// Launches instances, or returns those that the client token launched before.
    ///
    /// With `planned_failure` they are accepted and fail before they run. A dry run makes all
    /// checks except capacity and changes nothing.
    ///
    /// # Errors
    ///
    /// `IdempotentParameterMismatch` or `IdempotentInstanceTerminated` for a used token, the code
    /// of a name that does not exist, and the refusal of an exhausted limit.
    pub(crate) fn launch(
        &mut self,
        request: &LaunchRequest,
        planned_failure: Option<&Reason>,
        mode: Mode,
    ) -> Result<Vec<Seq>, Refusal> {
        let token = request
            .token
            .as_ref()
            .map(|(token, digest)| ((token.clone(), self.token_zone(request)), *digest));
        if let Some((key, digest)) = &token {
            if let Some(replayed) = self.replay(key, *digest)? {
                return mode.check_dry_run().map(|()| replayed);
            }
        }
        let plan = self.plan(request)?;
        mode.check_dry_run()?;
        let (subnet, count) = match self.choose_subnet(request, &plan) {
            Ok(chosen) => chosen,
            Err(refusal) => {
                if let Some((key, digest)) = token {
                    self.remember_failure(key, digest);
                }
                return Err(refusal);
            }
        };
        let reservation = self.ids.next("r");
        let mut launched = Vec::new();
        for number in 0..count {
            let Some(address) = self.take_private_ip(request, &subnet) else {
                break;
            };
            let batch = (reservation.as_str(), number);
            let key = token.as_ref().map(|(key, _)| key.clone());
            let seq = self.create_instance(request, &plan, &subnet, batch, address);
            if let Some(instance) = self.instances.get_mut(&seq) {
                instance.token_key = key;
                instance.planned_failure = instance
                    .planned_failure
                    .take()
                    .or_else(|| planned_failure.cloned());
            }
            launched.push(seq);
        }
        if let Some((key, digest)) = token {
            self.remember(key, digest, launched.clone());
        }
        Ok(launched)
    }

    /// Remembers a launch that is refused for lack of capacity or quota, unless it is invalid or its token
    /// has launched before.
    pub(crate) fn record_refused_launch(&mut self, request: &LaunchRequest) {
        let Some((token, digest)) = &request.token else {
            return;
        };
        let key = (token.clone(), self.token_zone(request));
        if matches!(self.replay(&key, *digest), Ok(None)) && self.plan(request).is_ok() {
            self.remember_failure(key, *digest);
        }
    }

    /// Returns the zone of a zonal token: the zone that the request names, directly or by its
    /// subnet. `None` is a regional token.
    fn token_zone(&self, request: &LaunchRequest) -> Option<String> {
        match &request.subnet {
            Some(id) => self.subnet(id).ok().map(|subnet| subnet.zone.clone()),
            None => request.zone.clone(),
        }
    }

    /// Creates one pending instance with its volumes and its network interface, on a machine of
    /// its own.
    ///
    /// Beyond the volume quota it gets no volumes and fails late.
    fn create_instance(
        &mut self,
        request: &LaunchRequest,
        plan: &Plan,
        subnet: &Subnet,
        (reservation, launch_index): (&str, u32),
        private_ip: Ipv4Addr,
    ) -> Seq {
        let seq = self.next_seq();
        let id = self.ids.next("i");
        let spot = match request.market {
            Market::Spot => Some((self.ids.next("sir"), request.spot_kind)),
            Market::OnDemand => None,
        };
        let fixed = Fixed {
            id: id.clone(),
            reservation: reservation.to_owned(),
            launch_index,
            token: request.token.as_ref().map(|(token, _)| token.clone()),
            image: plan.image.id.clone(),
            architecture: plan.image.architecture.clone(),
            root_device: plan.image.root_device.clone(),
            zone: subnet.zone.clone(),
            subnet: subnet.id.clone(),
            vpc: subnet.vpc.clone(),
            key_name: request.key_name.clone(),
            profile: request.profile.clone(),
            market: request.market,
            spot,
            cpu: request.cpu,
            public_address: request.public_address.unwrap_or(subnet.public),
            private_ip,
            external: request.external,
        };
        let version = Version {
            state: State::Pending,
            reason: None,
            transition_reason: String::new(),
            launched: self.now(),
            running_since: None,
            public_ip: None,
            instance_type: plan.spec.name.clone(),
            tags: Arc::new(request.instance_tags.clone()),
            user_data: request.user_data.clone(),
            protected: request.protected,
            shutdown: request.shutdown,
            ebs_optimized: request.ebs_optimized,
            groups: Arc::new(plan.groups.clone()),
            stop_protected: request.stop_protected,
            credits: Credits::of_type(&plan.spec.name)
                .map(|default| request.credits.unwrap_or(default)),
            monitoring: request.monitoring,
            metadata: request.metadata.clone(),
            source_dest_check: true,
        };
        let over_quota = self.volume_quota_exceeded(plan.devices.len());
        let devices: &[Device] = if over_quota { &[] } else { &plan.devices };
        let volumes = self.attach_volumes(&id, &subnet.zone, devices, &request.volume_tags);
        let nic = self.attach_nic(&fixed, &plan.groups, request);
        let mut instance = Instance {
            seq,
            fixed: Arc::new(fixed),
            token_key: None,
            volumes,
            nics: vec![nic],
            holds_machine: false,
            planned_failure: over_quota.then(volume_limit_reason),
            console: Vec::new(),
            boots: 0,
            transition: 0,
            versions: History::new(self.now(), version),
        };
        if instance.planned_failure.is_none() {
            instance.planned_failure = self.late_failure(&instance);
        }
        self.by_id.insert(id, seq);
        self.instances.add(seq, instance);
        self.record_spot_request(seq, request.spot_price.as_deref(), &request.spot_tags);
        self.take_machine(seq);
        self.after(self.core.knobs.timing.boot, Event::FinishTransition(seq, 0));
        seq
    }

    /// Takes the requested private address, or the next one of a subnet; `None` if it is not free.
    fn take_private_ip(&mut self, request: &LaunchRequest, subnet: &Subnet) -> Option<Ipv4Addr> {
        let pool = self.pool(subnet);
        match request.private_ip {
            Some(address) => pool.take_exactly(address).then_some(address),
            None => pool.take(),
        }
    }
}

/// Returns the reason of a launch beyond the volume quota: `Client.VolumeLimitExceeded`.
fn volume_limit_reason() -> Reason {
    Reason::new("Client.VolumeLimitExceeded", "Volume limit exceeded")
}
