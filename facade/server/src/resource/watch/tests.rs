use std::sync::Arc;

use fleetwright_compute::Facade;
use fleetwright_identity::{Actor, ActorName};
use fleetwright_store::{Interest, MemoryStore, Schema, Store};
use tokio::sync::{Semaphore, watch};

use super::*;
use crate::{
    auth::{
        Authenticator,
        tokens::{NewToken, Tokens},
    },
    cloud::Cloud,
    config::Limits,
    http::limit::CallerLimits,
    idempotency::{self, Idempotency},
    keys::Keys,
    sample,
    service::Parts,
};

/// A service without instances, whether it stops, and the watch of its administrator.
struct Watched {
    service: Service,
    stop: watch::Sender<bool>,
    feed: Feed,
    events: mpsc::Receiver<Event>,
}

async fn watched() -> Watched {
    let schema = fleetwright_compute::schema::add_all_kinds(Schema::builder())
        .kind(keys::KIND)
        .kind(idempotency::KIND)
        .index(idempotency::BY_CALLER, ["/caller"]);
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(schema.build().unwrap()));
    let facade = Facade::builder()
        .store(Arc::clone(&store))
        .catalog(sample::CATALOG)
        .region(Cloud::Memory.open().await.unwrap(), sample::MAPPING)
        .without_server_keys()
        .build()
        .await
        .unwrap();
    let name = ActorName::new("olga").unwrap();
    let olga = Actor::User(name.clone());
    facade.tenancy.bootstrap(&olga).await.unwrap();
    let principal = facade.tenancy.principal(&olga).await.unwrap().principal;
    let token = NewToken::generate().unwrap();
    let limits = Limits::default();
    let (stop, stopping) = watch::channel(false);
    let service = Service::new(Parts {
        authenticator: Authenticator::new(Tokens::default().with(&token, name), None),
        keys: Keys::open(&*store).await.unwrap(),
        idempotency: Idempotency::new(store, Arc::clone(&facade.clock)).unwrap(),
        callers: CallerLimits::new(&limits),
        limits,
        metrics: crate::telemetry::metrics(),
        readiness: tokio::sync::Mutex::default(),
        stopping,
        facade,
    });
    let (sender, events) = mpsc::channel(BUFFER);
    let permit = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
    let feed = Feed {
        service: service.clone(),
        principal,
        token: token.text,
        sender,
        _permit: permit,
    };
    Watched {
        service,
        stop,
        feed,
        events,
    }
}

#[tokio::test]
async fn a_list_ends_when_its_token_is_withdrawn() {
    let Watched {
        service,
        mut feed,
        mut events,
        stop: _stop,
    } = watched().await;
    assert!(feed.send_all(Revision(1)).await.is_ok());
    assert!(events.recv().await.is_some());
    service.authenticator.set_tokens(Tokens::default());
    assert!(feed.send_all(Revision(1)).await.is_err());
    assert!(events.try_recv().is_err());
}

#[tokio::test]
async fn a_list_ends_when_the_service_stops() {
    let Watched {
        service,
        feed,
        mut events,
        stop,
    } = watched().await;
    stop.send(true).unwrap();
    let store = &service.facade.store;
    let interest = Interest::kinds([Kind::new(INSTANCE_KIND).unwrap()]);
    let head = store.head().await.unwrap();
    let changes = store.watch(head, interest).await.unwrap();
    feed.run(changes, Some(head), None).await;
    assert!(events.recv().await.is_none());
}
