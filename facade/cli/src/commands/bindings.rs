//! Role bindings, the caller, and the audit log.

use fleetwright_api::{AuditEntry, Role, RoleBinding, RoleBindingCreate, Scope};
use fleetwright_client::AuditFilter;
use futures_util::TryStreamExt as _;

use crate::{
    arguments::{AuditCommand, BindingsCommand},
    confirm,
    context::Context,
    failure::{Code, Failure},
    find,
    table::Table,
};

pub(super) async fn run(context: &Context, command: BindingsCommand) -> Result<(), Failure> {
    let Context { client, output, .. } = context;
    match command {
        BindingsCommand::Create { actor, role, scope } => {
            let scope = find::scope(
                context,
                scope.organization.as_deref(),
                scope.project.as_deref(),
            )
            .await?;
            let new = RoleBindingCreate {
                actor: find::actor(&actor),
                role,
                scope,
            };
            output.show(&client.create_role_binding(&new).await?, fields)
        }
        BindingsCommand::List(scope) => {
            let scope = find::scope(
                context,
                scope.organization.as_deref(),
                scope.project.as_deref(),
            )
            .await?;
            let all: Vec<RoleBinding> = client.role_bindings(&scope).try_collect().await?;
            output.show(&all, |all| {
                let rows = all.iter().map(|binding| {
                    vec![
                        binding.id.as_str().into(),
                        binding.actor.as_str().into(),
                        binding.role.as_str().into(),
                        place(&binding.scope).into(),
                    ]
                });
                Table::list(["ID", "ACTOR", "ROLE", "SCOPE"]).rows(rows)
            })
        }
        BindingsCommand::Show { binding } => {
            output.show(&client.read_role_binding(&binding).await?, fields)
        }
        BindingsCommand::Delete { binding, agreement } => {
            confirm::agreed(
                agreement.yes,
                &format!("delete role binding {binding}"),
                "--yes",
                Code::Usage,
            )?;
            client.delete_role_binding(&binding).await?;
            output.done(&format!("{binding}: deleted"))
        }
        BindingsCommand::Roles => {
            let roles: Vec<Role> = client.list_roles().await?.items;
            output.show(&roles, |roles| {
                let rows = roles.iter().map(|role| {
                    vec![
                        role.name.as_str().into(),
                        role.level.as_str().into(),
                        role.permissions.join(", ").into(),
                    ]
                });
                Table::list(["NAME", "LEVEL", "PERMISSIONS"]).rows(rows)
            })
        }
    }
}

pub(super) async fn caller(context: &Context) -> Result<(), Failure> {
    let caller = context.client.read_caller().await?;
    context.output.show(&caller, |caller| {
        let grants = caller
            .grants
            .iter()
            .map(|grant| vec![grant.role.as_str().into(), place(&grant.scope).into()]);
        Table::fields()
            .field("caller", caller.actor.as_str())
            .rows(grants)
    })
}

pub(super) async fn audit(context: &Context, command: AuditCommand) -> Result<(), Failure> {
    let AuditCommand::List(arguments) = command;
    let scope = find::scope(
        context,
        arguments.scope.organization.as_deref(),
        arguments.scope.project.as_deref(),
    )
    .await?;
    let mut filter = AuditFilter::default();
    (filter.organization, filter.project) = (scope.organization_id, scope.project_id);
    filter.actor = arguments.actor.as_deref().map(find::actor);
    filter.resource = arguments.resource;
    filter.record = arguments.record;
    (filter.from, filter.until) = (arguments.from, arguments.until);
    filter.page_size = Some(500);
    let entries: Vec<AuditEntry> = context.client.audit_log(&filter).try_collect().await?;
    context.output.show(&entries, |entries| {
        let rows = entries.iter().map(|entry| {
            vec![
                entry.at.to_rfc3339().into(),
                entry.actor.as_str().into(),
                entry.verb.as_str().into(),
                entry.resource.as_str().into(),
                entry.name.as_deref().unwrap_or(&entry.record).into(),
                entry.outcome.as_str().into(),
            ]
        });
        Table::list(["TIME", "ACTOR", "VERB", "RESOURCE", "RECORD", "OUTCOME"]).rows(rows)
    })
}

fn fields(binding: &RoleBinding) -> Table {
    Table::fields()
        .field("id", binding.id.as_str())
        .field("actor", binding.actor.as_str())
        .field("role", binding.role.as_str())
        .field("scope", place(&binding.scope))
        .field(
            "created",
            format!(
                "{} by {}",
                binding.creation_time.to_rfc3339(),
                binding.created_by
            ),
        )
}

fn place(scope: &Scope) -> String {
    match (&scope.organization_id, &scope.project_id) {
        (None, _) => "platform".to_owned(),
        (Some(organization), None) => format!("organization {organization}"),
        (Some(_), Some(project)) => format!("project {project}"),
    }
}
