//! Many requests by several tenants at once, and then the audit log: it says what was done, by whom and in which order.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::time::Duration;

use fleetwright_compute::{
    instance::InstanceId,
    service::{NewInstance, UpdateInstance},
};
use fleetwright_facade_testkit::{
    Tenant, TestFacade, name, north,
    principals::{create_tenant, scope, with_roles},
    spec, tenant,
};
use fleetwright_identity::{AuditQuery, Resource, Scope, Verb};
use fleetwright_region::network::NewNetwork;

/// What one person did on a busy day, as the log must show it.
type Done = (String, Verb, Resource, String);

#[tokio::test(start_paused = true)]
async fn busy_day_of_several_tenants_is_in_the_log_as_it_was() {
    let facade = TestFacade::new().await;
    let tenants = [tenant(1, 1), tenant(1, 2), tenant(2, 2)];
    for one in tenants {
        create_tenant(&facade.tenancy, one).await;
    }
    let start = facade.audit_entries().await.len();
    let day = tenants
        .iter()
        .enumerate()
        .map(|(number, one)| one_day(&facade, number, *one));
    let done = futures_util::future::join_all(day).await;
    let mut wanted: Vec<Vec<Done>> = done;
    let entries = facade.audit_entries().await.split_off(start);
    let mut found = vec![Vec::new(); tenants.len()];
    for entry in &entries {
        let number = tenants
            .iter()
            .position(|one| scope(*one) == entry.scope())
            .unwrap();
        found[number].push((
            entry.actor.to_string(),
            entry.verb,
            entry.resource,
            entry.record.clone(),
        ));
    }
    assert!(entries.windows(2).all(|pair| pair[0].at <= pair[1].at));
    // Calls of one tenant are made one after another, so the log has them in that order.
    for (found, wanted) in found.into_iter().zip(wanted.drain(..)) {
        assert_eq!(found, wanted);
        assert!(wanted.len() > 30, "{}", wanted.len());
    }
    // An auditor of the first organization sees its two projects and nothing else.
    let first = tenants[0].0;
    let auditor = with_roles(
        "aud",
        &[("organization-auditor", Scope::Organization(first))],
    );
    let query = AuditQuery::within(Scope::Organization(first));
    let page = facade.audit.list(&auditor, &query).await.unwrap();
    assert!(
        page.items
            .iter()
            .all(|entry| entry.organization == Some(first))
    );
    facade
        .audit
        .list(&auditor, &AuditQuery::within(Scope::Global))
        .await
        .unwrap_err();
    // As docs/facade/S12.md shows it.
    for entry in entries
        .iter()
        .filter(|entry| entry.project == Some(tenants[2].1))
        .take(8)
    {
        println!("{entry}");
    }
}

/// Makes requests of one tenant in an order that its number determines, and returns those that changed something.
async fn one_day(facade: &TestFacade, number: usize, one: Tenant) -> Vec<Done> {
    let person = with_roles(&format!("user-{number}"), &[("project-user", scope(one))]);
    let mut done = Vec::new();
    let mut add =
        |verb, resource, id: String| done.push((person.actor().to_string(), verb, resource, id));
    let new = NewNetwork {
        organization: one.0,
        project: one.1,
        region: north(),
        name: name("net"),
        prefix: "10.0.0.0/16".parse().unwrap(),
        dns: Vec::new(),
    };
    let network = facade
        .networks
        .create(&person, &new)
        .await
        .unwrap()
        .value
        .id;
    add(Verb::Create, Resource::Networks, network.to_string());
    let instances = &facade.instances;
    let mut alive: Vec<InstanceId> = Vec::new();
    let mut random = number as u64 + 1;
    for step in 0..60 {
        tokio::time::sleep(Duration::from_secs(60)).await;
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let drawn = (random >> 33) as usize;
        let chosen = (!alive.is_empty()).then(|| alive[drawn % alive.len()]);
        match (drawn / 7 % 5, chosen) {
            (0, _) | (_, None) => {
                let called = name(&format!("i{step}"));
                let new = NewInstance::new(called, one, network, spec());
                let id = instances.create(&person, &new).await.unwrap().instance.id;
                alive.push(id);
                add(Verb::Create, Resource::Instances, id.to_string());
            }
            (1, Some(id)) => {
                let before = facade.read(id).await.revision;
                if instances.stop(&person, id).await.unwrap().revision != before {
                    add(Verb::Stop, Resource::Instances, id.to_string());
                }
            }
            (2, Some(id)) => {
                let before = facade.read(id).await.revision;
                if instances.start(&person, id).await.unwrap().revision != before {
                    add(Verb::Start, Resource::Instances, id.to_string());
                }
            }
            (3, Some(id)) => {
                let view = instances.read(&person, id).await.unwrap();
                let mut wanted = UpdateInstance::of(&view.instance);
                wanted.description = Some(format!("after step {step}"));
                instances.update(&person, id, &wanted).await.unwrap();
                add(Verb::Update, Resource::Instances, id.to_string());
            }
            (_, Some(id)) => {
                instances.delete(&person, id).await.unwrap();
                alive.retain(|one| *one != id);
                add(Verb::Delete, Resource::Instances, id.to_string());
            }
        }
    }
    done
}
