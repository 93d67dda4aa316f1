//! Instances.

use base64::{Engine, engine::general_purpose::STANDARD};
use fleetwright_api as api;
use fleetwright_compute::{
    instance::{Event, InstanceSpec, Networking, PendingAction},
    prelude::{
        Health, NewInstance, NewSnapshot, Phase, Power, Provisioning, PublicAddress, UserData,
    },
    service::{InstanceSummary, InstanceView, ListedInstance, UpdateInstance, Waiting},
};
use fleetwright_region::server::{ChangeMethod, Plan};

use super::{actor, parse, parse_tags, tags, word};
use crate::failure::Failure;

pub(crate) fn parse_new(new: &api::InstanceCreate) -> Result<NewInstance, Failure> {
    let api::InstanceCreateSpec {
        organization_id,
        project_id,
        network_id,
        flavor_id,
        image_id,
        networking,
        ssh_certificate_authority_id,
        user_data,
    } = &new.spec;
    let spec = api::InstanceSpec {
        flavor_id: flavor_id.clone(),
        image_id: image_id.clone(),
        networking: networking.clone(),
        ssh_certificate_authority_id: ssh_certificate_authority_id.clone(),
        user_data: user_data.clone(),
    };
    let tenant = (
        parse("spec.organizationId", organization_id)?,
        parse("spec.projectId", project_id)?,
    );
    let network = parse("spec.networkId", network_id)?;
    let name = parse("metadata.name", &new.metadata.name)?;
    let mut wanted = NewInstance::new(name, tenant, network, parse_spec(&spec)?);
    wanted.description.clone_from(&new.metadata.description);
    wanted.tags = parse_tags("metadata.tags", &new.metadata.tags)?;
    Ok(wanted)
}

pub(crate) fn parse_update(update: &api::InstanceUpdate) -> Result<UpdateInstance, Failure> {
    let name = parse("metadata.name", &update.metadata.name)?;
    let mut wanted = UpdateInstance::new(name, parse_spec(&update.spec)?);
    wanted.description.clone_from(&update.metadata.description);
    wanted.tags = parse_tags("metadata.tags", &update.metadata.tags)?;
    Ok(wanted)
}

pub(crate) fn parse_snapshot(new: &api::SnapshotCreate) -> Result<NewSnapshot, Failure> {
    let mut snapshot = NewSnapshot::new(parse("metadata.name", &new.metadata.name)?);
    snapshot.description.clone_from(&new.metadata.description);
    let tags = parse_tags("metadata.tags", &new.metadata.tags)?;
    let tags = tags
        .iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    snapshot.tags = tags.collect();
    Ok(snapshot)
}

fn parse_spec(spec: &api::InstanceSpec) -> Result<InstanceSpec, Failure> {
    let flavor = parse("spec.flavorId", &spec.flavor_id)?;
    let mut parsed = InstanceSpec::new(flavor, parse("spec.imageId", &spec.image_id)?);
    if let Some(networking) = &spec.networking {
        parsed.networking = parse_networking(networking)?;
    }
    let authority = spec.ssh_certificate_authority_id.as_deref();
    let authority = authority.map(|id| parse("spec.sshCertificateAuthorityId", id));
    parsed.ssh_authority = authority.transpose()?;
    if let Some(text) = spec.user_data.as_ref().filter(|text| !text.0.is_empty()) {
        let field = "spec.userData";
        let bytes = STANDARD.decode(&text.0);
        let bytes = bytes.map_err(|_| Failure::invalid(field, "expected base64 with padding"))?;
        let data = UserData::new(bytes).map_err(|error| Failure::invalid(field, error))?;
        parsed.user_data = Some(data);
    }
    Ok(parsed)
}

fn parse_networking(networking: &api::Networking) -> Result<Networking, Failure> {
    let mut parsed = Networking::default();
    for id in &networking.security_groups {
        if !parsed
            .security_groups
            .insert(parse("spec.networking.securityGroups", id)?)
        {
            let problem = format!("{id} occurs twice: use each once");
            return Err(Failure::impossible(
                "spec.networking.securityGroups",
                problem,
            ));
        }
    }
    for prefix in &networking.allowed_source_addresses {
        let field = "spec.networking.allowedSourceAddresses";
        parsed.allowed_sources.insert(parse(field, prefix)?);
    }
    parsed.public_ip = match networking.public_ip {
        Some(true) => PublicAddress::Assigned,
        Some(false) | None => PublicAddress::Absent,
    };
    Ok(parsed)
}

/// An instance with its user data, for a read.
pub(crate) fn with_user_data(view: InstanceView) -> api::Instance {
    let data = view.instance.spec.user_data.as_ref();
    let data = data.map(|data| api::UserDataText(STANDARD.encode(data.as_bytes())));
    let mut instance = without_user_data(view);
    instance.spec.user_data = data;
    instance
}

/// An instance without its user data, for the response to a write, which is stored with its idempotency key.
pub(crate) fn without_user_data(view: InstanceView) -> api::Instance {
    let row = row_of(view);
    api::Instance {
        metadata: row.metadata,
        spec: row.spec,
        status: row.status,
    }
}

/// An instance as a row of a list.
pub(crate) fn row_of(view: InstanceView) -> api::InstanceSummary {
    let modified = view.instance.modified.clone();
    let summary = Summary {
        waiting: view.waiting,
        provisioning: view.provisioning,
        health: view.health,
        observed_at: view.observed_at,
        unknown: view.unknown,
        instance: InstanceSummary::from(view.instance),
    };
    let mut row = summary.row();
    if let Some(modified) = modified {
        row.metadata.modified_time = Some(modified.at);
        row.metadata.modified_by = Some(actor(&modified.by));
    }
    row
}

pub(crate) fn row(listed: ListedInstance) -> api::InstanceSummary {
    let summary = Summary {
        waiting: listed.waiting,
        provisioning: listed.provisioning,
        health: listed.health,
        observed_at: listed.observed_at,
        unknown: listed.unknown,
        instance: listed.instance,
    };
    summary.row()
}

/// What rows are made of, from a list or from a read.
struct Summary {
    instance: InstanceSummary,
    provisioning: Provisioning,
    health: Health,
    observed_at: Option<chrono::DateTime<chrono::Utc>>,
    waiting: Option<Waiting>,
    unknown: Vec<String>,
}

impl Summary {
    fn row(self) -> api::InstanceSummary {
        let instance = self.instance;
        let deletion = instance.deletion.as_ref();
        let metadata = api::InstanceMetadata {
            id: instance.id.to_string(),
            name: instance.name.to_string(),
            description: instance.description.clone(),
            tags: tags(&instance.tags),
            organization_id: instance.organization.to_string(),
            project_id: instance.project.to_string(),
            creation_time: instance.created_at,
            created_by: actor(&instance.created_by),
            modified_time: None,
            modified_by: None,
            deletion_time: deletion.map(|mark| mark.at),
            deleted_by: deletion.map(|mark| actor(&mark.by)),
            generation: instance.generation,
            provisioning_status: provisioning(self.provisioning),
            health_status: health(self.health),
        };
        let spec = api::InstanceSpec {
            flavor_id: instance.flavor.to_string(),
            image_id: instance.image.to_string(),
            networking: networking(&instance.networking),
            ssh_certificate_authority_id: instance.ssh_authority.map(|id| id.to_string()),
            user_data: None,
        };
        let status = instance.status;
        let conditions = status.conditions.iter().map(|condition| api::Condition {
            kind: word(&condition.kind),
            message: condition.message.clone(),
            since: condition.since,
        });
        let status = api::InstanceStatus {
            region_id: instance.region.to_string(),
            network_id: instance.network.to_string(),
            power_state: phase(status.phase),
            desired_power: power(
                instance
                    .deletion
                    .as_ref()
                    .map_or(instance.power, |_| Power::Deleted),
            ),
            private_ip: status.private_ip.map(|address| address.to_string()),
            public_ip: status.public_ip.map(|address| address.to_string()),
            mac_address: status.mac_address.map(|address| address.to_string()),
            observed_generation: status.observed_generation,
            observed_at: self.observed_at,
            conditions: conditions.collect(),
            pending_action: status.pending.as_ref().map(pending),
            waiting: self.waiting.map(waiting),
            not_shown: self.unknown,
        };
        api::InstanceSummary {
            metadata,
            spec,
            status,
        }
    }
}

fn networking(networking: &Networking) -> Option<api::Networking> {
    let public = match networking.public_ip {
        PublicAddress::Assigned => Some(true),
        PublicAddress::Absent => None,
    };
    let shown = api::Networking {
        security_groups: networking
            .security_groups
            .iter()
            .map(ToString::to_string)
            .collect(),
        public_ip: public,
        allowed_source_addresses: networking
            .allowed_sources
            .iter()
            .map(ToString::to_string)
            .collect(),
    };
    (shown != api::Networking::default()).then_some(shown)
}

fn pending(pending: &PendingAction) -> api::PendingAction {
    api::PendingAction {
        plan: plan(&pending.plan, pending.lost.clone()),
        reason: pending.reason.clone(),
        lost: pending.lost.clone(),
        since: pending.since,
    }
}

fn waiting(waiting: Waiting) -> api::Waiting {
    api::Waiting {
        what: waiting.what,
        since: waiting.since,
        last_attempt: waiting.last_attempt.map(|attempt| attempt.what),
        next_attempt: waiting.next_attempt,
    }
}

pub(crate) fn plan(plan: &Plan, lost: Option<String>) -> api::Plan {
    let changes = plan
        .methods
        .iter()
        .map(|(field, method)| api::PlannedChange {
            field: word(field),
            method: match method {
                ChangeMethod::Retag => api::ChangeMethod::Retag,
                ChangeMethod::NextLaunch => api::ChangeMethod::NextLaunch,
                ChangeMethod::Resize => api::ChangeMethod::Resize,
                ChangeMethod::Reimage => api::ChangeMethod::Reimage,
                ChangeMethod::Replace => api::ChangeMethod::Replace,
            },
        });
    let lost = lost.or_else(|| {
        let replaced = plan.has(ChangeMethod::Replace);
        let reimaged = plan.has(ChangeMethod::Reimage);
        let text = match (replaced, reimaged) {
            (true, true | false) => "the data on the root disk and the addresses",
            (false, true) => "the data on the root disk",
            (false, false) => return None,
        };
        Some(text.to_owned())
    });
    api::Plan {
        changes: changes.collect(),
        destructive: plan.destructive().next().is_some(),
        lost,
    }
}

pub(crate) fn event(event: &Event) -> api::Event {
    api::Event {
        at: event.at,
        by: actor(&event.by),
        kind: word(&event.kind),
        message: event.message.clone(),
    }
}

fn provisioning(provisioning: Provisioning) -> api::ProvisioningStatus {
    match provisioning {
        Provisioning::Pending => api::ProvisioningStatus::Pending,
        Provisioning::Provisioning => api::ProvisioningStatus::Provisioning,
        Provisioning::Provisioned => api::ProvisioningStatus::Provisioned,
        Provisioning::Deprovisioning => api::ProvisioningStatus::Deprovisioning,
        Provisioning::Error => api::ProvisioningStatus::Error,
    }
}

pub(crate) fn parse_provisioning(status: api::ProvisioningStatus) -> Provisioning {
    match status {
        api::ProvisioningStatus::Pending => Provisioning::Pending,
        api::ProvisioningStatus::Provisioning => Provisioning::Provisioning,
        api::ProvisioningStatus::Provisioned => Provisioning::Provisioned,
        api::ProvisioningStatus::Deprovisioning => Provisioning::Deprovisioning,
        api::ProvisioningStatus::Error => Provisioning::Error,
    }
}

fn health(health: Health) -> api::HealthStatus {
    match health {
        Health::Unknown => api::HealthStatus::Unknown,
        Health::Healthy => api::HealthStatus::Healthy,
        Health::Degraded => api::HealthStatus::Degraded,
        Health::Error => api::HealthStatus::Error,
    }
}

fn phase(phase: Phase) -> api::PowerState {
    match phase {
        Phase::Pending => api::PowerState::Pending,
        Phase::Building => api::PowerState::Building,
        Phase::Running => api::PowerState::Running,
        Phase::Stopping => api::PowerState::Stopping,
        Phase::Stopped => api::PowerState::Stopped,
        Phase::Replacing => api::PowerState::Replacing,
        Phase::Deleting => api::PowerState::Deleting,
        Phase::Failed => api::PowerState::Failed,
        Phase::Lost => api::PowerState::Lost,
    }
}

pub(crate) fn parse_phase(state: api::PowerState) -> Phase {
    match state {
        api::PowerState::Pending => Phase::Pending,
        api::PowerState::Building => Phase::Building,
        api::PowerState::Running => Phase::Running,
        api::PowerState::Stopping => Phase::Stopping,
        api::PowerState::Stopped => Phase::Stopped,
        api::PowerState::Replacing => Phase::Replacing,
        api::PowerState::Deleting => Phase::Deleting,
        api::PowerState::Failed => Phase::Failed,
        api::PowerState::Lost => Phase::Lost,
    }
}

fn power(power: Power) -> api::DesiredPower {
    match power {
        Power::Running => api::DesiredPower::Running,
        Power::Stopped => api::DesiredPower::Stopped,
        Power::Deleted => api::DesiredPower::Deleted,
    }
}
