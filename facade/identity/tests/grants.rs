//! Nobody grants more than they have: all roles and scopes, and random roles.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod support;

use fleetwright_identity::{
    Actor, ActorName, Level, NewOrganization, NewProject, NewRoleBinding, OrganizationId,
    Permission, Principal, ProjectId, Role, RoleName, Roles, Scope, Tenancy, TenancyError,
    TenantName,
};
use proptest::{collection::btree_set, prelude::*};

use support::{memory, operator, organization, project, tenancy_of, user};

/// Two organizations with two projects each, and the scopes of them all.
async fn places(tenancy: &Tenancy) -> Vec<Scope> {
    let mut scopes = vec![Scope::Global];
    for number in [1, 2] {
        let id: OrganizationId = organization(number);
        let new = NewOrganization::new(TenantName::new(format!("o{number}")).unwrap()).with_id(id);
        tenancy
            .create_organization(&operator(), &new)
            .await
            .unwrap();
        scopes.push(Scope::Organization(id));
        for number in [1, 2] {
            let child: ProjectId = project(number);
            let called = TenantName::new(format!("p{number}")).unwrap();
            let new = NewProject::new(id, called).with_id(child);
            tenancy.create_project(&operator(), &new).await.unwrap();
            scopes.push(Scope::Project(id, child));
        }
    }
    scopes
}

/// Every permission that a principal has, in every scope.
fn everything(principal: &Principal, scopes: &[Scope]) -> Vec<(Permission, Scope)> {
    let pairs = Permission::all().flat_map(|permission| {
        let granted = scopes.iter().filter(move |scope| {
            principal
                .authorize(permission.verb(), permission.resource(), scope)
                .is_ok()
        });
        granted.map(move |scope| (permission, *scope))
    });
    pairs.collect()
}

/// Lets a user with each role at each scope bind each role at each scope to an accomplice. The accomplice never gets a permission that the user does not
/// have, and a role that the user has entirely is bound.
async fn check_all(roles: Roles) {
    let store = memory();
    let tenancy = tenancy_of(&store, roles);
    let scopes = places(&tenancy).await;
    let mut number = 0;
    let mut bound = 0;
    let names: Vec<RoleName> = tenancy
        .roles()
        .iter()
        .map(|role| role.name().clone())
        .collect();
    for held in &names {
        let level = tenancy.roles().role(held).unwrap().level();
        for at in scopes.iter().filter(|scope| scope.level() == level) {
            number += 1;
            let giver = user(format!("giver-{number}"));
            let new = NewRoleBinding::new(giver.clone(), held.clone(), *at);
            // Bound by somebody who has everything.
            tenancy.bind(&operator(), &new).await.unwrap();
            let giver = tenancy.principal(&giver).await.unwrap().principal;
            let has = everything(&giver, &scopes);
            let accomplice = user(format!("accomplice-{number}"));
            for role in &names {
                for scope in &scopes {
                    let new = NewRoleBinding::new(accomplice.clone(), role.clone(), *scope);
                    let outcome = tenancy.bind(&giver, &new).await;
                    let fits = tenancy.roles().role(role).unwrap();
                    let may_bind = giver.authorize(
                        fleetwright_identity::Verb::Create,
                        fleetwright_identity::Resource::RoleBindings,
                        scope,
                    );
                    let has_all = fits.permissions().all(|one| has.contains(&(one, *scope)));
                    let expected = may_bind.is_ok() && fits.level() == scope.level() && has_all;
                    assert_eq!(
                        outcome.is_ok(),
                        expected,
                        "{held} at {at} binds {role} at {scope}: {outcome:?}"
                    );
                    bound += usize::from(expected);
                    if may_bind.is_ok() && fits.level() == scope.level() && !has_all {
                        assert!(matches!(outcome, Err(TenancyError::Escalation { .. })));
                    }
                }
            }
            let got = tenancy.principal(&accomplice).await.unwrap().principal;
            for pair in everything(&got, &scopes) {
                assert!(has.contains(&pair), "{held} at {at} gave away {pair:?}");
                assert!(!pair.0.is_internal());
            }
        }
    }
    assert!(number > 0 && bound <= number * names.len() * scopes.len());
}

#[tokio::test]
async fn no_built_in_role_grants_more_than_it_has() {
    check_all(Roles::built_in()).await;
}

fn level() -> impl Strategy<Value = Level> {
    prop::sample::select(Level::ALL.to_vec())
}

/// A role with random permissions of its level, most of them with the permission to bind.
fn random_role() -> impl Strategy<Value = (Level, Vec<Permission>)> {
    let all: Vec<Permission> = Permission::all().filter(|one| !one.is_internal()).collect();
    let bind = Permission::new(
        fleetwright_identity::Verb::Create,
        fleetwright_identity::Resource::RoleBindings,
    );
    let some = btree_set(prop::sample::select(all), 0..6);
    (level(), some, prop::bool::weighted(0.8)).prop_map(move |(level, some, binds)| {
        let mut set: Vec<_> = some
            .into_iter()
            .filter(|one| level == Level::Global || !one.is_platform_only())
            .collect();
        if binds || set.is_empty() {
            set.extend(bind);
        }
        (level, set)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn no_random_role_grants_more_than_it_has(random in prop::collection::vec(random_role(), 1..4)) {
        let mut roles = Roles::built_in();
        for (number, (level, permissions)) in random.into_iter().enumerate() {
            let name = RoleName::new(format!("random-{number}")).unwrap();
            roles = roles.with(Role::new(name, level, permissions).unwrap()).unwrap();
        }
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(check_all(roles));
    }
}

#[tokio::test]
async fn internal_permissions_and_services_cannot_be_bound() {
    let internal: Vec<_> = Permission::all().filter(|one| one.is_internal()).collect();
    assert!(!internal.is_empty());
    for permission in internal {
        for level in Level::ALL {
            let name = RoleName::new("inner").unwrap();
            assert!(Role::new(name, level, [permission]).is_err());
        }
    }
    let tenancy = tenancy_of(&memory(), Roles::built_in());
    let service = Actor::Service(ActorName::new("region").unwrap());
    let role = RoleName::new("platform-administrator").unwrap();
    let new = NewRoleBinding::new(service, role, Scope::Global);
    let refused = tenancy.bind(&operator(), &new).await;
    assert!(matches!(refused, Err(TenancyError::NotAUser(_))));
}
