//! The audit log of a façade: what is shown and refused is in it, it survives what it is about, and it names who did it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::time::Duration;

use fleetwright_compute::instance::{EVENTS_KEPT, EventKind};
use fleetwright_facade_testkit::{
    TestFacade, is_running, operator,
    principals::{create_tenant, project_reader, with_roles},
    project_user, tenant,
};
use fleetwright_identity::{AuditEntry, AuditOutcome, AuditQuery, Resource, Scope, Verb};
use fleetwright_memory::MemoryCloud;
use fleetwright_region::network::IfUsed;
use fleetwright_store::{Revision, Store as _};

#[tokio::test(start_paused = true)]
async fn hundred_key_reads_leave_the_events_and_the_log_in_place() {
    let cloud = MemoryCloud::new();
    let (facade, network, id) = TestFacade::running_instance(&cloud).await;
    let alice = project_user(tenant(1, 1));
    let before = facade.read(id).await.instance.events;
    for _ in 0..100 {
        facade.instances.ssh_key(&alice, id).await.unwrap();
        facade
            .instances
            .console_output(&alice, id, None)
            .await
            .unwrap();
    }
    let read = facade.read(id).await.instance;
    assert_eq!(read.events, before);
    assert!(read.events.len() < EVENTS_KEPT);
    assert!(
        read.events
            .iter()
            .any(|event| event.kind == EventKind::Created)
    );
    let disclosed = |entries: &[AuditEntry], verb| {
        let matching = |entry: &&AuditEntry| {
            entry.verb == verb
                && entry.outcome == AuditOutcome::Disclosed
                && &entry.actor == alice.actor()
        };
        entries.iter().filter(matching).count()
    };
    let entries = facade.audit_entries_of(id).await;
    assert_eq!(disclosed(&entries, Verb::SshKey), 100);
    assert_eq!(disclosed(&entries, Verb::ConsoleOutput), 100);

    // The log survives the deletion of the instance, its network, its project and its organization.
    let (organization, project) = tenant(1, 1);
    let all = facade
        .during(async {
            facade.delete_completely(id).await;
            let _ = facade
                .networks
                .delete(&alice, network, IfUsed::Refuse)
                .await
                .unwrap();
            facade.audit_entries().await
        })
        .await;
    facade
        .tenancy
        .delete_project(&operator(), organization, project)
        .await
        .unwrap();
    facade
        .tenancy
        .delete_organization(&operator(), organization)
        .await
        .unwrap();
    let after = facade.audit_entries().await;
    assert_eq!(after[..all.len()], all);
    assert_eq!(after.len(), all.len() + 2);
    let last = after.last().unwrap();
    assert_eq!(
        (last.verb, last.resource),
        (Verb::Delete, Resource::Organizations)
    );
    let of_organization = AuditQuery::within(Scope::Organization(organization));
    assert_eq!(
        facade.audit_entries_with(of_organization).await.len(),
        after.len()
    );
}

#[tokio::test(start_paused = true)]
async fn refused_calls_are_in_the_log_and_those_of_strangers_are_not() {
    let facade = TestFacade::new().await;
    let network = facade.network("blue").await;
    let id = facade.create(network, "web").await.instance.id;
    let reader = project_reader(tenant(1, 1));
    let stranger = project_user(tenant(2, 2));
    create_tenant(&facade.tenancy, tenant(2, 2)).await;
    let before = facade.audit_entries().await.len();
    facade.instances.ssh_key(&stranger, id).await.unwrap_err();
    facade.instances.stop(&stranger, id).await.unwrap_err();
    let _ = facade
        .networks
        .delete(&stranger, network, IfUsed::Refuse)
        .await
        .unwrap_err();
    assert_eq!(facade.audit_entries().await.len(), before);
    facade.instances.ssh_key(&reader, id).await.unwrap_err();
    let _ = facade
        .networks
        .delete(&reader, network, IfUsed::Refuse)
        .await
        .unwrap_err();
    let added = facade.audit_entries().await.split_off(before);
    let refused: Vec<_> = added
        .iter()
        .map(|entry| {
            (
                entry.verb,
                entry.resource,
                entry.outcome,
                entry.name.as_deref(),
            )
        })
        .collect();
    let outcome = AuditOutcome::Refused;
    assert_eq!(
        refused,
        [
            (Verb::SshKey, Resource::Instances, outcome, Some("web")),
            (Verb::Delete, Resource::Networks, outcome, Some("blue")),
        ]
    );
    assert!(added.iter().all(|entry| &entry.actor == reader.actor()));
}

#[tokio::test(start_paused = true)]
async fn operators_who_use_servers_directly_are_in_the_log() {
    let cloud = MemoryCloud::new();
    let (facade, _, id) = TestFacade::running_instance(&cloud).await;
    let olga = with_roles("olga", &[("platform-administrator", Scope::Global)]);
    let before = facade.audit_entries().await.len();
    let server = id.server();
    facade.machines.ssh_key(&olga, server).await.unwrap();
    facade
        .machines
        .console_output(&olga, server, None)
        .await
        .unwrap();
    facade
        .machines
        .console_session(&olga, server)
        .await
        .unwrap();
    let added = facade.audit_entries().await.split_off(before);
    let shown: Vec<_> = added
        .iter()
        .map(|entry| (entry.verb, entry.resource, entry.outcome))
        .collect();
    let entry = |verb| (verb, Resource::Servers, AuditOutcome::Disclosed);
    assert_eq!(
        shown,
        [Verb::SshKey, Verb::ConsoleOutput, Verb::ConsoleSession].map(entry)
    );
}

#[tokio::test(start_paused = true)]
async fn instances_that_are_deleted_with_their_network_are_in_the_log() {
    let facade = TestFacade::new().await;
    let network = facade.network("net").await;
    let id = facade.create(network, "web").await.instance.id;
    let alice = project_user(tenant(1, 1));
    let before: Revision = facade.store.head().await.unwrap();
    facade
        .during(async {
            facade.until(id, is_running).await;
            let _ = facade
                .networks
                .delete(&alice, network, IfUsed::DeleteFirst)
                .await
                .unwrap();
            facade.until_gone(id).await;
            tokio::time::sleep(Duration::from_secs(60)).await;
        })
        .await;
    assert!(facade.store.head().await.unwrap() > before);
    let of_network: Vec<_> = facade
        .audit_entries_of(network)
        .await
        .iter()
        .map(|entry| (entry.actor.to_string(), entry.verb, entry.outcome))
        .collect();
    let (alice, compute) = ("user alice".to_owned(), "service compute".to_owned());
    assert_eq!(
        of_network[1..],
        [
            (alice, Verb::Delete, AuditOutcome::Requested),
            (compute.clone(), Verb::Delete, AuditOutcome::Done),
        ]
    );
    let entries = facade.audit_entries_of(id).await;
    let last = entries.last().unwrap();
    assert_eq!((last.actor.to_string(), last.verb), (compute, Verb::Delete));
}
