//! What is sent again, how often, and with which key.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests may panic"
)]

mod support;

use std::{collections::BTreeSet, time::Duration};

use fleetwright_client::{Client, Effect, Error, InstanceFilter, Token, api};
use fleetwright_server::Server;
use futures_util::TryStreamExt as _;
use serde_json::json;
use support::{Proxy, SECRET, Scripted, problem};
use tokio::io::AsyncReadExt as _;

/// The sample, a proxy in front of it, and a client of the proxy.
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

async fn web_1(client: &Client) -> api::InstanceCreate {
    let networks: Vec<_> = client
        .networks(&Default::default())
        .try_collect()
        .await
        .unwrap();
    let network = &networks[0];
    serde_json::from_value(json!({
        "metadata": {"name": "web-1"},
        "spec": {
            "organizationId": network.organization_id, "projectId": network.project_id, "networkId": network.id,
            "flavorId": "standard-2", "imageId": "debian-13",
        },
    }))
    .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_create_whose_responses_are_lost_creates_one_instance() {
    let (server, _folder, proxy, client) = service().await;
    let new = web_1(&client).await;
    proxy.lose(2);
    let created = client.create_instance(&new).await.unwrap();
    let keys = proxy.values("idempotency-key");
    assert_eq!(
        (keys.len(), keys.iter().collect::<BTreeSet<_>>().len()),
        (3, 1),
        "{keys:?}"
    );
    let instances: Vec<_> = client
        .instances(&InstanceFilter::default())
        .try_collect()
        .await
        .unwrap();
    assert_eq!(instances.len(), 1);
    assert_eq!(instances[0].metadata.id, created.value.metadata.id);

    // A key of the caller is kept by the service too: the same request is carried out once, also by another process.
    let keyed = client.with_idempotency_key("of-the-caller").unwrap();
    let first = keyed
        .stop_instance(&created.value.metadata.id)
        .await
        .unwrap();
    let again = keyed
        .stop_instance(&created.value.metadata.id)
        .await
        .unwrap();
    assert_eq!(first, again);
    assert!(client.with_idempotency_key("two words").is_err());
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_whose_response_is_lost_is_not_repeated() {
    let (server, _folder, proxy, client) = service().await;
    let created = client.create_instance(&web_1(&client).await).await.unwrap();
    proxy.lose(1);
    let error = client
        .delete_instance(&created.value.metadata.id)
        .await
        .unwrap_err();
    assert_eq!(
        (proxy.count("DELETE /"), error.effect()),
        (1, Effect::Unknown),
        "{error}"
    );
    assert!(
        error.advice().contains("look whether it happened"),
        "{}",
        error.advice()
    );

    // A read is.
    proxy.lose(1);
    client.read_version().await.unwrap();
    server.shutdown().await;
}

#[tokio::test]
async fn a_retry_follows_the_advice_and_keeps_its_key() {
    let server = Scripted::start(|number, _| match number {
        1 => problem(429, "too_many_requests", Some(1)),
        2 => problem(503, "unavailable", Some(1)),
        _ => support::json(202, "", &json!({"generation": 5})),
    })
    .await;
    let accepted = server.client().start_instance("x").await.unwrap();
    assert_eq!(accepted.generation, 5);
    let keys: Vec<_> = server
        .requests()
        .iter()
        .map(|request| request.header("idempotency-key").unwrap().to_owned())
        .collect();
    assert_eq!(keys.len(), 3);
    assert!(keys.iter().all(|key| *key == keys[0]));
    server.client().start_instance("x").await.unwrap();
    let next = server
        .requests()
        .last()
        .unwrap()
        .header("idempotency-key")
        .unwrap()
        .to_owned();
    assert_ne!(next, keys[0], "another call has another key");
}

#[tokio::test]
async fn a_refusal_is_final() {
    for (status, code) in [
        (400, "invalid_request"),
        (401, "access_denied"),
        (403, "forbidden"),
        (404, "not_found"),
        (409, "conflict"),
        (500, "server_error"),
    ] {
        let server = Scripted::start(move |_, _| problem(status, code, None)).await;
        let error = server.client().start_instance("x").await.unwrap_err();
        assert_eq!(server.requests().len(), 1, "{status}");
        let found = error.problem().unwrap();
        assert_eq!(
            (found.code.as_str(), found.trace_id.as_str()),
            (code, "trace-1")
        );
        assert!(!error.advice().is_empty());
        let shown = format!("{error} {error:?}");
        assert!(
            shown.contains("what is wrong") && !shown.contains(SECRET),
            "{shown}"
        );
    }
}

#[tokio::test]
async fn a_lost_attempt_is_not_forgotten_by_the_error_of_a_later_one() {
    // The first response is lost, and the second attempt is refused: the first may have caused that.
    let server = Scripted::start(|number, _| match number {
        1 => String::new(),
        _ => problem(409, "conflict", None),
    })
    .await;
    let error = server.client().start_instance("x").await.unwrap_err();
    assert_eq!(server.requests().len(), 2);
    assert_eq!(error.problem().unwrap().status, 409);
    assert_eq!(error.effect(), Effect::Unknown, "{error:?}");
    assert!(
        error.advice().contains("look whether it happened"),
        "{}",
        error.advice()
    );
    // A read has no effect, whatever was lost.
    let server = Scripted::start(|number, _| match number {
        1 => String::new(),
        _ => problem(404, "not_found", None),
    })
    .await;
    let error = server.client().read_instance("x").await.unwrap_err();
    assert_eq!((server.requests().len(), error.effect()), (2, Effect::None));

    // The first request is lost, and then nobody is there.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = Client::builder(format!("http://{}", listener.local_addr().unwrap()))
        .token(Token::new(SECRET).unwrap())
        .attempts(2)
        .build()
        .unwrap();
    let once = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        drop(listener);
        let read = stream.read(&mut [0; 4096]).await.unwrap();
        assert!(read > 0);
    });
    let error = client.start_instance("x").await.unwrap_err();
    once.await.unwrap();
    assert!(error.to_string().contains("cannot be reached"), "{error}");
    assert_eq!(error.effect(), Effect::Unknown, "{error:?}");
}

#[tokio::test]
async fn a_failure_that_does_not_say_when_to_retry_may_have_come_after_the_change() {
    for (status, code, effect) in [
        (500, "server_error", Effect::Unknown),
        (503, "unavailable", Effect::Unknown),
        // These are refused before anything is done.
        (409, "conflict", Effect::None),
        (429, "too_many_requests", Effect::None),
        (501, "not_implemented", Effect::None),
    ] {
        let server = Scripted::start(move |_, _| problem(status, code, None)).await;
        let client = server.client();
        let deleted = client.delete_instance("x").await.unwrap_err();
        let started = client.start_instance("x").await.unwrap_err();
        let read = client.read_instance("x").await.unwrap_err();
        assert_eq!(server.requests().len(), 3, "{status}: none is repeated");
        assert_eq!(
            [deleted.effect(), started.effect(), read.effect()],
            [effect, effect, Effect::None],
            "{status}"
        );
        let advises = deleted.advice().contains("look whether it happened");
        assert_eq!(advises, effect == Effect::Unknown, "{}", deleted.advice());
    }

    // With the delay the service says that nothing was done.
    let server = Scripted::start(|number, _| match number {
        1 => problem(503, "unavailable", Some(1)),
        _ => support::json(202, "", &json!({})),
    })
    .await;
    server.client().delete_instance("x").await.unwrap();
    assert_eq!(server.requests().len(), 2);

    // A fault says nothing, with a delay or without.
    let server = Scripted::start(|_, _| problem(500, "server_error", Some(1))).await;
    let error = server.client().delete_instance("x").await.unwrap_err();
    let seen = (server.requests().len(), error.effect());
    assert_eq!(seen, (1, Effect::Unknown));
}

#[tokio::test]
async fn no_retry_is_waited_for_that_comes_after_the_deadline() {
    let server = Scripted::start(|_, _| problem(503, "unavailable", Some(3600))).await;
    let error = server.client().read_version().await.unwrap_err();
    assert_eq!(server.requests().len(), 1);
    assert!(matches!(error, Error::Deadline { .. }), "{error:?}");
    assert_eq!(error.retry_after(), Some(Duration::from_secs(3600)));
    assert!(error.to_string().contains("what is wrong"), "{error}");
}

#[tokio::test]
async fn a_service_that_never_responds_is_given_up_at_the_deadline() {
    // It accepts connections and reads nothing.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client =
        support::client(listener.local_addr().unwrap()).with_deadline(Duration::from_millis(300));
    let error = client.start_instance("x").await.unwrap_err();
    assert!(matches!(error, Error::Deadline { .. }), "{error:?}");
    assert_eq!(error.effect(), Effect::Unknown);
    let error = client.read_version().await.unwrap_err();
    assert_eq!(error.effect(), Effect::None);
}

#[tokio::test]
async fn something_else_at_the_address_is_named() {
    let page = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\n<html>";
    let server = Scripted::start(move |_, _| page.to_owned()).await;
    let error = server.client().read_version().await.unwrap_err();
    assert!(
        matches!(error, Error::Response { status: 200, .. }),
        "{error:?}"
    );
    assert_eq!(server.requests().len(), 1);

    // A proxy whose service is away: a read is repeated, a deletion is not.
    let away = "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let server = Scripted::start(move |_, _| away.to_owned()).await;
    let client = server.client().with_deadline(Duration::from_secs(2));
    assert_eq!(
        client.delete_instance("x").await.unwrap_err().effect(),
        Effect::Unknown
    );
    assert_eq!(server.requests().len(), 1);
    assert!(client.read_version().await.is_err());
    assert!(server.requests().len() > 2);

    // No redirect is followed: it would send the token elsewhere.
    let moved = "HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let server = Scripted::start(move |_, _| moved.to_owned()).await;
    assert!(server.client().read_version().await.is_err());
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn nobody_at_the_address_is_a_connection_error_without_effect() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let token = Token::new(SECRET).unwrap();
    let client = Client::builder(format!("http://{address}"))
        .token(token)
        .attempts(2)
        .build()
        .unwrap();
    let error = client.delete_instance("x").await.unwrap_err();
    assert!(
        matches!(
            error,
            Error::Connection {
                effect: Effect::None,
                ..
            }
        ),
        "{error:?}"
    );
    let shown = format!("{error:?} {error} {}", error.advice());
    assert!(
        !shown.contains(SECRET) && shown.contains("cannot be reached"),
        "{shown}"
    );
}
