//! Lists, waiting and watches, on the service and on servers that misbehave.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests may panic"
)]

mod support;

use std::time::Duration;

use fleetwright_client::{
    Change, Client, Error, Goal, InstanceFilter, Token, WatchEvent, WatchFrom,
    api::{self, PowerState},
};
use fleetwright_server::Server;
use futures_util::{Stream, StreamExt as _, TryStreamExt as _};
use serde_json::json;
use support::{EVENTS, Proxy, Scripted, problem};

async fn service() -> (Server, tempfile::TempDir, Proxy, Client) {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::sample(folder.path(), "127.0.0.1:0".parse().unwrap())
        .await
        .unwrap();
    let proxy = Proxy::start(server.address()).await;
    let token = Token::new(server.token().unwrap()).unwrap();
    let client = Client::builder(format!("http://{}", proxy.address))
        .token(token)
        .build()
        .unwrap();
    (server, folder, proxy, client)
}

async fn create(client: &Client, name: &str) -> String {
    let networks: Vec<_> = client
        .networks(&Default::default())
        .try_collect()
        .await
        .unwrap();
    let network = &networks[0];
    let new: api::InstanceCreate = serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {
            "organizationId": network.organization_id, "projectId": network.project_id, "networkId": network.id,
            "flavorId": "standard-2", "imageId": "debian-13",
        },
    }))
    .unwrap();
    client
        .create_instance(&new)
        .await
        .unwrap()
        .value
        .metadata
        .id
}

/// The next event that is no position, within a time that only a defect takes.
async fn next(
    events: &mut (impl Stream<Item = Result<WatchEvent, Error>> + Unpin),
) -> Result<WatchEvent, Error> {
    loop {
        let event = tokio::time::timeout(Duration::from_secs(60), events.next()).await;
        let event = event.expect("an event").expect("the stream goes on");
        if !matches!(&event, Ok(event) if event.change == Change::Position) {
            return event;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_has_every_page_and_an_instance_is_waited_for() {
    let (server, _folder, _proxy, client) = service().await;
    let mut ids = Vec::new();
    for number in 0..7 {
        ids.push(create(&client, &format!("web-{number}")).await);
    }
    let mut filter = InstanceFilter::default();
    filter.page_size = Some(2);
    let listed: Vec<_> = client.instances(&filter).try_collect().await.unwrap();
    let mut found: Vec<_> = listed
        .into_iter()
        .map(|instance| instance.metadata.id)
        .collect();
    ids.sort();
    found.sort();
    assert_eq!(found, ids);

    let hour = Duration::from_secs(3600);
    let running = client
        .wait_until(&ids[0], Goal::Running, hour)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(running.status.power_state, PowerState::Running);
    client.delete_instance(&ids[0]).await.unwrap();
    assert_eq!(
        client
            .wait_until(&ids[0], Goal::Deleted, hour)
            .await
            .unwrap(),
        None
    );
    // A deadline ends a wait for what does not happen.
    let error = client
        .wait_until(&ids[1], Goal::Stopped, Duration::from_millis(1200))
        .await
        .unwrap_err();
    assert!(
        matches!(
            error,
            Error::Deadline {
                operation: "waitUntil",
                ..
            }
        ),
        "{error:?}"
    );
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_resumes_after_lost_connections_and_misses_nothing() {
    let (server, _folder, proxy, client) = service().await;
    let mut events = client.watch_instances(WatchFrom::Now);
    assert_eq!(next(&mut events).await.unwrap().change, Change::Synced);
    let mut seen = Vec::new();
    for number in 0..3 {
        proxy.cut();
        let id = create(&client, &format!("web-{number}")).await;
        loop {
            let event = next(&mut events).await.unwrap();
            assert_ne!(event.change, Change::Restarted);
            assert!(event.position.is_some());
            if matches!(&event.change, Change::Instance(instance) if instance.metadata.id == id) {
                break;
            }
        }
        seen.push(id);
    }
    assert!(proxy.values("last-event-id").len() >= 3);

    // A position can be stored, and a later watch begins after it.
    let stored = client
        .list_instances(&InstanceFilter::default(), None)
        .await
        .unwrap()
        .watch_from;
    drop(events);
    client.delete_instance(&seen[0]).await.unwrap();
    client
        .wait_until(&seen[0], Goal::Deleted, Duration::from_secs(600))
        .await
        .unwrap();
    let mut events = client.watch_instances(WatchFrom::Position(stored));
    loop {
        if let Change::Deleted(id) = next(&mut events).await.unwrap().change {
            assert_eq!(id, seen[0]);
            break;
        }
    }
    server.shutdown().await;
}

#[tokio::test]
async fn a_watch_that_cannot_resume_says_so_and_begins_again() {
    let server = Scripted::start(|_, request| match request.header("last-event-id") {
        Some(_) => problem(410, "gone", None),
        None => format!("{EVENTS}event: synced\nid: p-1\ndata: {{}}\n\n: a comment\n\nevent: later\ndata: of a later version\n\n"),
    })
    .await;
    let mut events = server
        .client()
        .watch_instances(WatchFrom::Position("old".to_owned()));
    assert_eq!(next(&mut events).await.unwrap().change, Change::Restarted);
    let synced = next(&mut events).await.unwrap();
    assert_eq!(
        (synced.change, synced.position.as_deref()),
        (Change::Synced, Some("p-1"))
    );
    // The connection has ended: p-1 is no longer kept either.
    assert_eq!(next(&mut events).await.unwrap().change, Change::Restarted);
    let sent: Vec<_> = server
        .requests()
        .iter()
        .map(|request| request.header("last-event-id").map(str::to_owned))
        .collect();
    assert_eq!(
        sent[..3],
        [Some("old".to_owned()), None, Some("p-1".to_owned())]
    );
}

#[tokio::test]
async fn a_watch_that_is_interrupted_before_its_first_position_begins_again() {
    let instance = json!({"instance": instance("web-1")});
    let server = Scripted::start(move |number, _| {
        let synced = if number == 1 {
            ""
        } else {
            "event: synced\nid: p-1\ndata: {}\n\n"
        };
        format!(
            "{EVENTS}event: instance\ndata: {instance}\n\n{synced}event: instance\ndata: cut of"
        )
    })
    .await;
    let mut events = server.client().watch_instances(WatchFrom::Now);
    let mut changes = Vec::new();
    for _ in 0..4 {
        changes.push(next(&mut events).await.unwrap().change);
    }
    assert!(
        matches!(
            &changes[..],
            [
                Change::Instance(_),
                Change::Restarted,
                Change::Instance(_),
                Change::Synced
            ]
        ),
        "{changes:?}"
    );
}

#[tokio::test]
async fn a_watch_ends_with_what_cannot_be_retried() {
    let server = Scripted::start(|_, _| problem(401, "access_denied", None)).await;
    let mut events = server.client().watch_instances(WatchFrom::Now);
    let error = next(&mut events).await.unwrap_err();
    assert_eq!(error.problem().unwrap().code, "access_denied");
    assert!(events.next().await.is_none());

    let server = Scripted::start(|_, _| problem(503, "unavailable", Some(3600))).await;
    let error = next(&mut server.client().watch_instances(WatchFrom::Now))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Deadline { .. }), "{error:?}");

    let server =
        Scripted::start(|_, _| format!("{EVENTS}event: instance\ndata: no JSON\n\n")).await;
    let error = next(&mut server.client().watch_instances(WatchFrom::Now))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Response { .. }), "{error:?}");
}

#[tokio::test]
async fn an_instance_that_needs_a_decision_is_not_waited_for() {
    let mut failed = instance("web-1");
    failed["metadata"]["provisioningStatus"] = json!("error");
    failed["status"]["conditions"] = json!([{"kind": "noCapacity", "message": "there is no capacity: choose another flavor", "since": "2026-01-01T00:00:00Z"}]);
    let server = Scripted::start(move |_, _| support::json(200, "", &failed)).await;
    let error = server
        .client()
        .wait_until("x", Goal::Running, Duration::from_secs(3600))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::NeedsDecision { .. }), "{error:?}");
    assert!(
        error.to_string().contains("choose another flavor"),
        "{error}"
    );
}

#[tokio::test]
async fn a_list_that_fails_or_turns_in_a_circle_ends() {
    let server = Scripted::start(|number, _| match number {
        1 => support::json(200, "", &json!({"items": [], "next": "a"})),
        _ => problem(403, "forbidden", None),
    })
    .await;
    let mut organizations = server.client().organizations();
    assert!(organizations.next().await.unwrap().is_err());
    assert!(organizations.next().await.is_none());
    assert_eq!(server.requests()[1].target, "/api/v2/organizations?after=a");

    let server =
        Scripted::start(|_, _| support::json(200, "", &json!({"items": [], "next": "a"}))).await;
    assert!(
        server
            .client()
            .organizations()
            .next()
            .await
            .unwrap()
            .is_err()
    );
}

fn instance(name: &str) -> serde_json::Value {
    json!({
        "metadata": {
            "id": "x", "name": name, "organizationId": "o", "projectId": "p", "creationTime": "2026-01-01T00:00:00Z", "createdBy": "user:ada",
            "generation": 1, "provisioningStatus": "provisioning", "healthStatus": "unknown",
        },
        "spec": {"flavorId": "f", "imageId": "i"},
        "status": {"regionId": "r", "networkId": "n", "powerState": "pending", "desiredPower": "running", "observedGeneration": 0},
    })
}
