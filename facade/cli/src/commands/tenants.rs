//! Organizations, projects and quotas.

use fleetwright_api::{
    Organization, OrganizationCreate, Project, ProjectCreate, Quota, QuotaLimit, QuotaUpdate,
};
use futures_util::TryStreamExt as _;

use super::instances::wire_name;
use crate::{
    arguments::{OrganizationsCommand, ProjectsCommand, QuotaCommand, QuotaOf},
    confirm,
    context::Context,
    failure::{Code, Failure},
    find,
    table::{Table, Text, Tone},
};

pub(super) async fn organizations(
    context: &Context,
    command: OrganizationsCommand,
) -> Result<(), Failure> {
    let Context { client, output, .. } = context;
    match command {
        OrganizationsCommand::Create { name } => {
            let created = client
                .create_organization(&OrganizationCreate { name })
                .await?;
            output.show(&created, organization_fields)
        }
        OrganizationsCommand::List => {
            let all: Vec<Organization> = client.organizations().try_collect().await?;
            output.show(&all, |all| {
                let rows = all.iter().map(|found| {
                    vec![
                        found.id.as_str().into(),
                        found.name.as_str().into(),
                        wire_name(&found.state).into(),
                    ]
                });
                Table::list(["ID", "NAME", "STATE"]).rows(rows)
            })
        }
        OrganizationsCommand::Show { organization } => {
            let id = find::organization(context, Some(&organization)).await?;
            output.show(&client.read_organization(&id).await?, organization_fields)
        }
        OrganizationsCommand::Delete {
            organization,
            agreement,
        } => {
            let id = find::organization(context, Some(&organization)).await?;
            confirm::agreed(
                agreement.yes,
                &format!("delete organization {organization}"),
                "--yes",
                Code::Usage,
            )?;
            client.delete_organization(&id).await?;
            output.done(&format!("{organization}: deleted"))
        }
    }
}

pub(super) async fn projects(context: &Context, command: ProjectsCommand) -> Result<(), Failure> {
    let Context { client, output, .. } = context;
    match command {
        ProjectsCommand::Create { name, place } => {
            let organization = find::organization(context, place.organization.as_deref()).await?;
            let created = client
                .create_project(&organization, &ProjectCreate { name })
                .await?;
            output.show(&created, project_fields)
        }
        ProjectsCommand::List(place) => {
            let organization = find::organization(context, place.organization.as_deref()).await?;
            let all: Vec<Project> = client.projects(&organization).try_collect().await?;
            output.show(&all, |all| {
                let rows = all.iter().map(|found| {
                    vec![
                        found.id.as_str().into(),
                        found.name.as_str().into(),
                        wire_name(&found.state).into(),
                    ]
                });
                Table::list(["ID", "NAME", "STATE"]).rows(rows)
            })
        }
        ProjectsCommand::Show { project, place } => {
            let (organization, id) =
                find::project(context, place.organization.as_deref(), Some(&project)).await?;
            output.show(
                &client.read_project(&organization, &id).await?,
                project_fields,
            )
        }
        ProjectsCommand::Delete {
            project,
            place,
            agreement,
        } => {
            let (organization, id) =
                find::project(context, place.organization.as_deref(), Some(&project)).await?;
            confirm::agreed(
                agreement.yes,
                &format!("delete project {project}"),
                "--yes",
                Code::Usage,
            )?;
            client.delete_project(&organization, &id).await?;
            output.done(&format!("{project}: deleted"))
        }
    }
}

pub(super) async fn quota(context: &Context, command: QuotaCommand) -> Result<(), Failure> {
    let client = &context.client;
    let quota = match command {
        QuotaCommand::Show(of) => match place(context, &of).await? {
            (organization, None) => client.read_organization_quota(&organization).await?,
            (organization, Some(project)) => {
                client.read_project_quota(&organization, &project).await?
            }
        },
        QuotaCommand::Set { of, limits } => {
            let limits = limits
                .into_iter()
                .map(|(kind, limit)| QuotaLimit { kind, limit })
                .collect();
            let update = QuotaUpdate { limits };
            match place(context, &of).await? {
                (organization, None) => {
                    client
                        .update_organization_quota(&organization, &update)
                        .await?
                }
                (organization, Some(project)) => {
                    client
                        .update_project_quota(&organization, &project, &update)
                        .await?
                }
            }
        }
    };
    context.output.show(&quota, quota_table)
}

async fn place(context: &Context, of: &QuotaOf) -> Result<(String, Option<String>), Failure> {
    let organization = of.place.organization.as_deref();
    if of.project.is_none() {
        return Ok((find::organization(context, organization).await?, None));
    }
    let (organization, project) =
        find::project(context, organization, of.project.as_deref()).await?;
    Ok((organization, Some(project)))
}

fn quota_table(quota: &Quota) -> Table {
    let rows = quota.lines.iter().map(|line| {
        let limit = line.limit.map_or_else(
            || "of the organization".to_owned(),
            |limit| limit.to_string(),
        );
        let tone = if line
            .limit
            .is_some_and(|limit| line.used >= limit && limit > 0)
        {
            Tone::Busy
        } else {
            Tone::Plain
        };
        vec![
            line.kind.as_str().into(),
            Text::toned(line.used.to_string(), tone),
            limit.into(),
        ]
    });
    Table::list(["KIND", "USED", "LIMIT"]).rows(rows)
}

fn organization_fields(found: &Organization) -> Table {
    Table::fields()
        .field("id", found.id.as_str())
        .field("name", found.name.as_str())
        .field("state", wire_name(&found.state))
        .field(
            "created",
            format!(
                "{} by {}",
                found.creation_time.to_rfc3339(),
                found.created_by
            ),
        )
}

fn project_fields(found: &Project) -> Table {
    Table::fields()
        .field("id", found.id.as_str())
        .field("name", found.name.as_str())
        .field("organization", found.organization_id.as_str())
        .field("state", wire_name(&found.state))
        .field(
            "created",
            format!(
                "{} by {}",
                found.creation_time.to_rfc3339(),
                found.created_by
            ),
        )
}
