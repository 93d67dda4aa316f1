//! Every combination of role, verb, resource and scope, compared with a table that is written by hand.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use fleetwright_identity::{
    Access, Actor, ActorName, Binding, GrantedScopes, InvalidRole, Level, OrganizationId,
    Permission, Principal, ProjectId, Resource, Role, RoleName, Roles, Scope, Verb,
};
use uuid::Uuid;

const ALL: &str = "create read list update delete";
const ACT: &str = "start stop reboot console-output console-session ssh-key snapshot";
const READ: &str = "read list";

/// The permissions of each role: resource, then verbs. Everything else is refused.
fn table() -> Vec<(&'static str, Vec<(&'static str, String)>)> {
    let all = || ALL.to_owned();
    let read = || READ.to_owned();
    let everything = || format!("{ALL} {ACT}");
    let platform = vec![
        ("instances", everything()),
        ("servers", everything()),
        ("networks", all()),
        ("security-groups", all()),
        ("ssh-certificate-authorities", all()),
        ("regions", all()),
        ("flavors", all()),
        ("images", all()),
        ("organizations", all()),
        ("projects", all()),
        ("role-bindings", all()),
        ("quotas", all()),
        ("project-quotas", all()),
        ("allocations", all()),
        ("audit-log", "list".to_owned()),
    ];
    let administrator = vec![
        ("instances", everything()),
        ("networks", all()),
        ("security-groups", all()),
        ("ssh-certificate-authorities", all()),
        ("regions", read()),
        ("flavors", read()),
        ("images", all()),
        ("organizations", read()),
        ("projects", all()),
        ("role-bindings", all()),
        ("quotas", read()),
        ("project-quotas", all()),
        ("allocations", read()),
        ("audit-log", "list".to_owned()),
    ];
    let auditor = [
        "instances",
        "networks",
        "security-groups",
        "ssh-certificate-authorities",
        "regions",
        "flavors",
        "images",
        "organizations",
        "projects",
        "role-bindings",
        "quotas",
        "project-quotas",
        "allocations",
    ];
    let user = vec![
        ("instances", everything()),
        ("networks", all()),
        ("security-groups", all()),
        ("ssh-certificate-authorities", all()),
        ("regions", read()),
        ("flavors", read()),
        ("images", format!("{READ} delete")),
        ("projects", "read".to_owned()),
        ("project-quotas", read()),
        ("allocations", read()),
    ];
    let reader = vec![
        ("instances", read()),
        ("networks", read()),
        ("security-groups", read()),
        ("ssh-certificate-authorities", read()),
        ("regions", read()),
        ("flavors", read()),
        ("images", read()),
        ("projects", "read".to_owned()),
        ("project-quotas", read()),
        ("allocations", read()),
    ];
    vec![
        ("platform-administrator", platform),
        ("organization-administrator", administrator),
        ("organization-auditor", {
            let mut set: Vec<_> = auditor.map(|name| (name, read())).into();
            set.push(("audit-log", "list".to_owned()));
            set
        }),
        ("project-user", user),
        ("project-reader", reader),
        ("night-shift", vec![("instances", "read reboot".to_owned())]),
    ]
}

const NIGHT_SHIFT: &str = r#"
    [[role]]
    name = "night-shift"
    level = "project"
    [role.permissions]
    instances = ["read", "reboot"]
"#;

fn roles() -> Roles {
    Roles::built_in().with_toml(NIGHT_SHIFT).unwrap()
}

fn organization(number: u128) -> OrganizationId {
    OrganizationId::new(Uuid::from_u128(number))
}

fn project(number: u128) -> ProjectId {
    ProjectId::new(Uuid::from_u128(number))
}

/// Returns a principal with the role, bound in organization 1, project 11.
fn bound(role: &str) -> Principal {
    let roles = roles();
    let role = RoleName::new(role).unwrap();
    let scope = match roles.role(&role).unwrap().level() {
        Level::Global => Scope::Global,
        Level::Organization => Scope::Organization(organization(1)),
        Level::Project => Scope::Project(organization(1), project(11)),
    };
    let user = Actor::User(ActorName::new("ada").unwrap());
    roles.principal(user, [&Binding::new(role, scope)]).unwrap()
}

/// Scopes, and the levels of bindings that cover them.
fn scopes() -> [(Scope, &'static [Level]); 7] {
    use Level::{Global, Organization, Project};
    let (ours, theirs) = (organization(1), organization(2));
    [
        (Scope::Global, &[Global]),
        (Scope::Organization(ours), &[Global, Organization]),
        (Scope::Organization(theirs), &[Global]),
        (
            Scope::Project(ours, project(11)),
            &[Global, Organization, Project],
        ),
        (Scope::Project(ours, project(12)), &[Global, Organization]),
        (Scope::Project(theirs, project(21)), &[Global]),
        // The same project id in another organization.
        (Scope::Project(theirs, project(11)), &[Global]),
    ]
}

#[test]
fn every_role_verb_resource_and_scope_matches_the_table() {
    let table = table();
    assert_eq!(
        table.len(),
        roles().iter().count(),
        "a role is not in the table"
    );
    let mut checked = 0;
    for (role, rows) in &table {
        let principal = bound(role);
        let level = roles().role(&RoleName::new(role).unwrap()).unwrap().level();
        for resource in Resource::ALL {
            let row = rows.iter().find(|(name, _)| *name == resource.as_str());
            let listed: Vec<_> = row.map_or("", |(_, verbs)| verbs).split(' ').collect();
            for verb in Verb::ALL {
                for (scope, covered_by) in scopes() {
                    let expected = listed.contains(&verb.as_str()) && covered_by.contains(&level);
                    let result = principal.authorize(verb, resource, &scope);
                    let case = format!("{role}: {verb:?} {resource:?} in {scope}");
                    assert_eq!(result.is_ok(), expected, "{case}");
                    if let Err(refused) = result {
                        let refused_call = (refused.verb, refused.resource, refused.scope);
                        assert_eq!(refused_call, (verb, resource, scope), "{case}");
                    }
                    let reach = principal.scopes_for(verb, resource);
                    let covered = reach.is_ok_and(|reach| reach.covers(&scope));
                    assert_eq!(covered, expected, "{case}");
                    let grant = principal.granted_by(verb, resource, &scope);
                    assert_eq!(grant.is_some(), expected, "{case}");
                    check_access(&principal, verb, resource, &scope, expected);
                    checked += 1;
                }
            }
        }
    }
    assert_eq!(checked, 6 * Resource::ALL.len() * 12 * 7);
}

fn check_access(
    principal: &Principal,
    verb: Verb,
    resource: Resource,
    scope: &Scope,
    expected: bool,
) {
    let may_read = principal.authorize(Verb::Read, resource, scope).is_ok();
    match principal.access(verb, resource, scope) {
        Access::Allowed => assert!(expected),
        Access::Refused(_) => assert!(!expected && may_read),
        Access::NotVisible => assert!(!expected && !may_read),
    }
}

#[test]
fn read_permission_on_instances_allows_nothing_else() {
    let scope = Scope::Project(organization(1), project(11));
    for role in ["project-reader", "organization-auditor"] {
        let reader = bound(role);
        let may = |verb: &Verb| reader.authorize(*verb, Resource::Instances, &scope).is_ok();
        let verbs: Vec<_> = Verb::ALL.into_iter().filter(may).collect();
        assert_eq!(verbs, [Verb::Read, Verb::List], "{role}");
    }
}

#[test]
fn refusal_names_the_call_and_does_not_depend_on_what_exists() {
    let scope = Scope::Project(organization(1), project(11));
    let refused = bound("project-reader")
        .authorize(Verb::ConsoleSession, Resource::Instances, &scope)
        .unwrap_err();
    assert_eq!(
        refused.to_string(),
        "user ada may not open a console session on instances in project 00000000-0000-0000-0000-00000000000b of \
         organization 00000000-0000-0000-0000-000000000001"
    );
    let unknown = Scope::Organization(organization(404));
    let refused = bound("organization-administrator")
        .authorize(Verb::List, Resource::Networks, &unknown)
        .unwrap_err();
    assert_eq!(
        refused.to_string(),
        format!(
            "user ada may not list networks in organization {}",
            organization(404)
        )
    );
}

#[test]
fn shared_resources_are_authorized_within_a_scope() {
    let reader = bound("project-reader");
    let may = |scope| {
        reader
            .authorize_within(Verb::Read, Resource::Flavors, &scope)
            .is_ok()
    };
    assert!(may(Scope::Global));
    assert!(may(Scope::Organization(organization(1))));
    assert!(!may(Scope::Organization(organization(2))));
    assert!(!may(Scope::Project(organization(1), project(12))));
    let creates = reader.authorize_within(Verb::Create, Resource::Flavors, &Scope::Global);
    assert!(creates.is_err());
}

#[test]
fn grants_add_up_and_the_widest_is_named() {
    let ours = organization(1);
    let bindings = [
        ("project-user", Scope::Project(ours, project(11))),
        ("organization-auditor", Scope::Organization(ours)),
        ("project-user", Scope::Project(organization(2), project(21))),
    ];
    let bindings = bindings.map(|(role, scope)| Binding::new(RoleName::new(role).unwrap(), scope));
    let user = Actor::User(ActorName::new("ada").unwrap());
    let ada = roles().principal(user, &bindings).unwrap();
    let first = Scope::Project(ours, project(11));
    let second = Scope::Project(ours, project(12));
    assert!(
        ada.authorize(Verb::Stop, Resource::Instances, &first)
            .is_ok()
    );
    assert!(
        ada.authorize(Verb::Stop, Resource::Instances, &second)
            .is_err()
    );
    assert!(
        ada.authorize(Verb::Read, Resource::Instances, &second)
            .is_ok()
    );
    let grant = ada
        .granted_by(Verb::Read, Resource::Instances, &first)
        .unwrap();
    assert_eq!(grant.role().as_str(), "organization-auditor");
    assert_eq!(ada.organizations(), [ours, organization(2)].into());
    assert_eq!(ada.grants().len(), 3);
    assert_eq!(ada.grants()[1].scope(), &Scope::Organization(ours));
    let reach = ada.scopes_for(Verb::List, Resource::Instances).unwrap();
    let widest = [
        Scope::Organization(ours),
        Scope::Project(organization(2), project(21)),
    ];
    assert_eq!(reach, GrantedScopes::Within(widest.into()));
    let stop = ada.scopes_for(Verb::Stop, Resource::Instances).unwrap();
    assert_eq!(stop, GrantedScopes::Within([first, widest[1]].into()));
}

#[test]
fn permissions_that_were_not_granted_are_refused() {
    let nobody = roles()
        .principal(Actor::User(ActorName::new("eve").unwrap()), [])
        .unwrap();
    let name = ActorName::new("monitor").unwrap();
    let held = Permission::new(Verb::List, Resource::Servers).unwrap();
    let monitor = Principal::service(name, [held]);
    for resource in Resource::ALL {
        for verb in Verb::ALL {
            for (scope, _) in scopes() {
                assert!(nobody.authorize(verb, resource, &scope).is_err());
                assert!(nobody.authorize_within(verb, resource, &scope).is_err());
                let expected = (verb, resource) == (Verb::List, Resource::Servers);
                assert_eq!(monitor.authorize(verb, resource, &scope).is_ok(), expected);
            }
            assert!(nobody.scopes_for(verb, resource).is_err());
        }
    }
    assert_eq!(monitor.actor().to_string(), "service monitor");
}

#[test]
fn invalid_role_is_refused_with_a_reason() {
    let role = |body: &str| format!("[[role]]\n{body}");
    let wrong = [
        (
            role("name = \"a\"\nlevel = \"project\"\npermissions = {}"),
            "grants nothing",
        ),
        (
            role("name = \"a\"\nlevel = \"project\"\npermissions = {networks = [\"stop\"]}"),
            "stop networks",
        ),
        (
            role("name = \"a\"\nlevel = \"project\"\npermissions = {volumes = [\"read\"]}"),
            "volumes",
        ),
        (
            role("name = \"a\"\nlevel = \"project\"\npermissions = {instances = [\"*\"]}"),
            "*",
        ),
        (
            role("name = \"a\"\nlevel = \"region\"\npermissions = {instances = [\"read\"]}"),
            "region",
        ),
        (
            role("name = \"A b\"\nlevel = \"project\"\npermissions = {instances = [\"read\"]}"),
            "A b",
        ),
        (
            role(
                "name = \"a\"\nlevel = \"project\"\nadmin = true\npermissions = {instances = [\"read\"]}",
            ),
            "admin",
        ),
        (
            NIGHT_SHIFT.replace("night-shift", "project-user"),
            "already exists",
        ),
        (format!("{NIGHT_SHIFT}{NIGHT_SHIFT}"), "already exists"),
        ("roles = 1".to_owned(), "roles"),
    ];
    for (text, reason) in wrong {
        let error = Roles::built_in().with_toml(&text).unwrap_err();
        let mut message = error.to_string();
        if let Some(source) = std::error::Error::source(&error) {
            message = format!("{message}: {source}");
        }
        assert!(message.contains(reason), "{message}");
    }
}

#[test]
fn tenant_role_cannot_grant_platform_permissions() {
    let mut refused = Vec::new();
    for permission in Permission::all() {
        let role = |level| Role::new(RoleName::new("a").unwrap(), level, [permission]);
        if permission.is_internal() {
            // Only services of this system have it.
            assert!(role(Level::Global).is_err() && role(Level::Project).is_err());
            continue;
        }
        assert!(role(Level::Global).is_ok(), "{permission}");
        let message = [Level::Organization, Level::Project].map(|level| role(level).is_ok());
        assert_eq!(message[0], message[1], "{permission}");
        if !message[0] {
            refused.push(permission.to_string());
        }
    }
    let written = [
        "regions",
        "flavors",
        "organizations",
        "quotas",
        "allocations",
    ];
    let expected: Vec<_> = written
        .into_iter()
        .flat_map(|what| ["create", "update", "delete"].map(|verb| format!("{verb} {what}")))
        .collect();
    assert_eq!(refused, expected);
}

#[test]
fn binding_requires_an_existing_role_of_its_level() {
    let principal = |role: &str, scope| {
        let actor = Actor::User(ActorName::new("ada").unwrap());
        roles().principal(actor, [&Binding::new(RoleName::new(role).unwrap(), scope)])
    };
    let unknown = principal("root", Scope::Global).unwrap_err();
    assert_eq!(
        unknown.to_string(),
        "role root is not defined; define it, or bind another role"
    );
    // A project role cannot be bound globally, and a global role cannot be bound in a project.
    for (role, scope) in [
        ("project-user", Scope::Global),
        ("project-user", Scope::Organization(organization(1))),
        (
            "platform-administrator",
            Scope::Project(organization(1), project(11)),
        ),
    ] {
        let wrong = principal(role, scope).unwrap_err();
        assert!(matches!(wrong, InvalidRole::WrongLevel { .. }), "{wrong}");
        let level = roles().role(&RoleName::new(role).unwrap()).unwrap().level();
        let bound_at = scope.level();
        assert_eq!(
            wrong.to_string(),
            format!("role {role} of level {level} cannot be bound at a scope of level {bound_at}")
        );
    }
}

#[test]
fn role_serializes_as_it_deserializes() {
    for role in roles().iter() {
        let json = serde_json::to_string(role).unwrap();
        assert_eq!(&serde_json::from_str::<Role>(&json).unwrap(), role);
    }
}
