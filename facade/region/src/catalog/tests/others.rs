//! Several processes with one catalog.

use super::*;
use crate::testing::ContendedStore;

async fn contended_catalog(store: Arc<dyn Store>) -> (Arc<ContendedStore>, CatalogService) {
    let contended_store = Arc::new(ContendedStore::new(store));
    let (service, _) = CatalogService::open(contended_store.clone()).await.unwrap();
    (contended_store, service)
}

/// The write of another process: the flavor arm-2 with this number of processors.
fn arm(cpus: u32) -> Transaction {
    let mut flavor = crate::testing::flavor("arm-2");
    flavor.architecture = Architecture::Aarch64;
    flavor.cpus = cpus.try_into().unwrap();
    let id = RecordId::new("flavor", "arm-2").unwrap();
    Transaction::new().put(id, serde_json::to_value(flavor).unwrap())
}

#[tokio::test]
async fn load_with_a_concurrent_change_reads_again() {
    let store = store();
    let (contended_store, service) = contended_catalog(Arc::clone(&store)).await;
    contended_store.before_next_commit(arm(7));
    let changes = service.load(EXAMPLE).await.unwrap();
    // The entry was created with other values between the read and the write of the load.
    let messages = messages(&changes);
    assert!(
        messages.contains(&"flavor arm-2 changed: cpus, memory, disk".to_owned()),
        "{messages:?}"
    );
    assert_eq!(
        service
            .current()
            .flavor(&flavor_id("arm-2"))
            .unwrap()
            .cpus
            .get(),
        2
    );
    assert_eq!(open(&store).await.current(), service.current());
}

#[tokio::test]
async fn load_that_always_conflicts_fails_without_changing_the_current_catalog() {
    let (contended_store, service) = contended_catalog(store()).await;
    for cpus in 10..20 {
        contended_store.before_next_commit(arm(cpus));
    }
    let error = service.load(EXAMPLE).await.unwrap_err();
    assert!(matches!(error, LoadError::Contended), "{error}");
    assert_eq!(*service.current(), Catalog::default());
}

#[tokio::test]
async fn load_of_another_process_is_followed() {
    let store = store();
    let (follower, loader) = (open(&store).await, open(&store).await);
    let follow = follower.follow();
    let watch = async {
        for text in [EXAMPLE.to_owned(), without("arm-2"), EXAMPLE.to_owned()] {
            loader.load(&text).await.unwrap();
            while follower.current() != loader.current() {
                tokio::task::yield_now().await;
            }
        }
    };
    tokio::select! {
        error = follow => panic!("{error}"),
        () = watch => {}
    }
    assert_eq!(follower.current().flavors().count(), 4);
}

#[tokio::test]
async fn read_from_before_a_load_does_not_replace_it() {
    let (contended_store, service) = contended_catalog(store()).await;
    let release = contended_store.hold_next_list();
    let slow = service.refresh();
    let fast = async {
        // The slow process has read by now and waits.
        service.load(EXAMPLE).await.unwrap();
        release.send(()).unwrap();
    };
    let (slow, ()) = tokio::join!(slow, fast);
    assert_eq!(slow.unwrap(), []);
    assert_eq!(service.current().flavors().count(), 4);
}
