//! Organizations, projects, role bindings, quotas and the audit log.

use fleetwright_api as api;
use fleetwright_identity::{
    Account, AuditEntry, Limits, NewRoleBinding, Organization, Principal, Project, Quota,
    QuotaKind, Role, RoleBinding, RoleName, Scope, TenantState,
};

use super::{actor, parse, parse_actor, word};
use crate::failure::Failure;

pub(crate) fn organization(organization: &Organization) -> api::Organization {
    api::Organization {
        id: organization.id.to_string(),
        name: organization.name.to_string(),
        creation_time: organization.created_at,
        created_by: actor(&organization.created_by),
        state: state(organization.state),
    }
}

pub(crate) fn project(project: &Project) -> api::Project {
    api::Project {
        id: project.id.to_string(),
        organization_id: project.organization.to_string(),
        name: project.name.to_string(),
        creation_time: project.created_at,
        created_by: actor(&project.created_by),
        state: state(project.state),
    }
}

fn state(state: TenantState) -> api::TenantState {
    match state {
        TenantState::Open => api::TenantState::Open,
        TenantState::Deleting => api::TenantState::Deleting,
    }
}

pub(crate) fn parse_scope(
    organization: Option<&str>,
    project: Option<&str>,
    place: &str,
) -> Result<Scope, Failure> {
    let organization = organization.map(|id| parse(&format!("{place}organizationId"), id));
    let project = project.map(|id| parse(&format!("{place}projectId"), id));
    match (organization.transpose()?, project.transpose()?) {
        (None, None) => Ok(Scope::Global),
        (Some(organization), None) => Ok(Scope::Organization(organization)),
        (Some(organization), Some(project)) => Ok(Scope::Project(organization, project)),
        (None, Some(_)) => {
            let field = format!("{place}organizationId");
            Err(Failure::impossible(
                &field,
                "it is missing: give the organization of the project",
            ))
        }
    }
}

fn scope(scope: &Scope) -> api::Scope {
    api::Scope {
        organization_id: scope.organization().map(|id| id.to_string()),
        project_id: scope.project().map(|id| id.to_string()),
    }
}

pub(crate) fn parse_binding(new: &api::RoleBindingCreate) -> Result<NewRoleBinding, Failure> {
    let (organization, project) = (&new.scope.organization_id, &new.scope.project_id);
    let scope = parse_scope(organization.as_deref(), project.as_deref(), "scope.")?;
    let role = RoleName::new(&new.role).map_err(|error| Failure::invalid("role", error))?;
    Ok(NewRoleBinding::new(
        parse_actor("actor", &new.actor)?,
        role,
        scope,
    ))
}

pub(crate) fn binding(binding: &RoleBinding) -> api::RoleBinding {
    api::RoleBinding {
        id: binding.id.to_string(),
        actor: actor(&binding.actor),
        role: binding.role().to_string(),
        scope: scope(&binding.scope()),
        creation_time: binding.created_at,
        created_by: actor(&binding.created_by),
    }
}

pub(crate) fn role(role: &Role) -> api::Role {
    api::Role {
        name: role.name().to_string(),
        level: word(&role.level()),
        permissions: role
            .permissions()
            .map(|permission| permission.to_string())
            .collect(),
    }
}

pub(crate) fn caller(principal: &Principal) -> api::Caller {
    let grants = principal.grants().iter().map(|grant| api::CallerGrant {
        role: grant.role().to_string(),
        scope: scope(grant.scope()),
    });
    api::Caller {
        actor: actor(principal.actor()),
        grants: grants.collect(),
    }
}

pub(crate) fn quota(quota: &Quota) -> api::Quota {
    let lines = quota.lines.iter().map(|line| api::QuotaLine {
        kind: line.kind.to_string(),
        used: line.used,
        limit: line.limit,
    });
    let project = match quota.account {
        Account::Organization(_) => None,
        Account::Project(_, project) => Some(project.to_string()),
    };
    api::Quota {
        organization_id: quota.account.organization().to_string(),
        project_id: project,
        lines: lines.collect(),
    }
}

pub(crate) fn parse_limits(update: &api::QuotaUpdate) -> Result<Limits, Failure> {
    let mut limits = Limits::new();
    for api::QuotaLimit { kind, limit } in &update.limits {
        let kind = QuotaKind::new(kind).map_err(|error| Failure::invalid("limits.kind", error))?;
        if limits.of(&kind).is_some() {
            let problem = format!("{kind} occurs twice: give one limit");
            return Err(Failure::impossible("limits.kind", problem));
        }
        limits = limits.with(kind, *limit);
    }
    Ok(limits)
}

pub(crate) fn entry(entry: &AuditEntry) -> api::AuditEntry {
    api::AuditEntry {
        at: entry.at,
        actor: actor(&entry.actor),
        verb: entry.verb.as_str().to_owned(),
        resource: entry.resource.as_str().to_owned(),
        record: entry.record.clone(),
        name: entry.name.clone(),
        organization_id: entry.organization.map(|id| id.to_string()),
        project_id: entry.project.map(|id| id.to_string()),
        generation: entry.generation,
        outcome: entry.outcome.as_str().to_owned(),
    }
}
