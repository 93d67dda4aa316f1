//! Launches instances with their volumes and network interfaces.

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
    pub(crate) image: String,
    pub(crate) instance_type: String,
    pub(crate) min: u32,
    pub(crate) max: u32,
    pub(crate) zone: Option<String>,
    pub(crate) subnet: Option<String>,
    pub(crate) groups: Vec<String>,
    pub(crate) key_name: Option<String>,
    pub(crate) user_data: Option<Arc<[u8]>>,
    /// The client token, and a digest of everything else.
    pub(crate) token: Option<(String, Uuid)>,
    pub(crate) instance_tags: Tags,
    pub(crate) volume_tags: Tags,
    pub(crate) nic_tags: Tags,
    pub(crate) devices: Vec<DeviceRequest>,
    pub(crate) public_address: Option<bool>,
    pub(crate) nic_description: String,
    pub(crate) keep_nic: bool,
    pub(crate) profile: Option<String>,
    pub(crate) metadata: MetadataOptions,
    pub(crate) market: Market,
    pub(crate) spot_kind: SpotKind,
    pub(crate) protected: bool,
    pub(crate) shutdown: ShutdownBehavior,
    pub(crate) ebs_optimized: bool,
    pub(crate) monitoring: bool,
    pub(crate) external: bool,
}

/// A block device mapping. Fields that are not set come from the image or are EC2's defaults.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeviceRequest {
    pub(crate) name: String,
    pub(crate) absent: bool,
    pub(crate) gib: Option<u32>,
    pub(crate) kind: Option<String>,
    pub(crate) snapshot: Option<String>,
    pub(crate) iops: Option<u32>,
    pub(crate) encrypted: bool,
    pub(crate) delete_on_termination: Option<bool>,
}

/// The options of an instance's metadata service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MetadataOptions {
    pub(crate) tokens_required: bool,
    pub(crate) enabled: bool,
    pub(crate) tags: bool,
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
    #[default]
    Stop,
    Terminate,
}

/// What happens to a spot request after its instance ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SpotKind {
    #[default]
    OneTime,
    Persistent,
}

impl Engine {
    /// Launches instances, or returns those that the token launched before. With `planned_failures`
    /// they fail late.
    pub(crate) fn launch(
        &mut self,
        request: &LaunchRequest,
        planned_failures: Option<&Reason>,
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
        let (subnet, count) = self.choose_subnet(request, &plan)?;
        let reservation = self.ids.next("r");
        let mut launched = Vec::new();
        for number in 0..count {
            let Some(address) = self.take_private_ip(&subnet) else {
                break;
            };
            let batch = (reservation.as_str(), number);
            let key = token.as_ref().map(|(key, _)| key.clone());
            let seq = self.create_instance(request, &plan, &subnet, batch, address);
            if let Some(instance) = self.instances.get_mut(&seq) {
                instance.token_key = key;
                instance.planned_failures = instance
                    .planned_failures
                    .take()
                    .or_else(|| planned_failures.cloned());
            }
            launched.push(seq);
        }
        if let Some((key, digest)) = token {
            self.remember(key, digest, launched.clone());
        }
        Ok(launched)
    }

    /// Returns the zone of a zonal token: the zone that the request names, directly or by its
    /// subnet.
    fn token_zone(&self, request: &LaunchRequest) -> Option<String> {
        match &request.subnet {
            Some(id) => self.subnet(id).ok().map(|subnet| subnet.zone.clone()),
            None => request.zone.clone(),
        }
    }

    /// Creates one pending instance.
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
            groups: plan.groups.clone(),
            key_name: request.key_name.clone(),
            profile: request.profile.clone(),
            market: request.market,
            spot,
            metadata: request.metadata.clone(),
            public_address: request.public_address.unwrap_or(subnet.public),
            private_ip,
            monitoring: request.monitoring,
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
        };
        let over_quota = self.volume_quota_exceeded(plan.devices.len());
        let devices: &[Device] = if over_quota { &[] } else { &plan.devices };
        let volumes = self.attach_volumes(&id, &subnet.zone, devices, &request.volume_tags);
        let nic = self.attach_nic(&fixed, request);
        let mut instance = Instance {
            seq,
            fixed: Arc::new(fixed),
            token_key: None,
            volumes,
            nics: vec![nic],
            holds_machine: false,
            planned_failures: over_quota.then(volume_limit_reason),
            console: Vec::new(),
            boots: 0,
            transition: 0,
            versions: History::new(self.now(), version),
        };
        if instance.planned_failures.is_none() {
            instance.planned_failures = self.late_failure(&instance);
        }
        self.by_id.insert(id, seq);
        self.instances.add(seq, instance);
        self.take_machine(seq);
        self.after(self.core.knobs.timing.boot, Event::FinishTransition(seq, 0));
        seq
    }

    fn take_private_ip(&mut self, subnet: &Subnet) -> Option<Ipv4Addr> {
        self.pool(subnet).take()
    }
}

fn volume_limit_reason() -> Reason {
    Reason::new("Client.VolumeLimitExceeded", "Volume limit exceeded")
}
