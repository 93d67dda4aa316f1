//! Several processes with one catalog.

use super::*;
use crate::testing::ContendedStore;

async fn meddled(store: Arc<dyn Store>) -> (Arc<ContendedStore>, CatalogService) {
    let meddler = Arc::new(ContendedStore::new(store));
    let (keeper, _) = CatalogService::open(meddler.clone()).await.unwrap();
    (meddler, keeper)
}

/// What another process writes: the flavor arm-2 with so many processors.
fn arm(cpus: u32) -> Transaction {
    let mut flavor = crate::testing::flavor("arm-2");
    flavor.architecture = Architecture::Aarch64;
    flavor.cpus = cpus.try_into().unwrap();
    let id = RecordId::new("flavor", "arm-2").unwrap();
    Transaction::new().put(id, serde_json::to_value(flavor).unwrap())
}

#[tokio::test]
async fn a_load_that_somebody_comes_between_begins_again_from_what_is_there() {
    let store = store();
    let (meddler, keeper) = meddled(Arc::clone(&store)).await;
    meddler.before_next_commit(arm(7));
    let changes = keeper.load(EXAMPLE).await.unwrap();
    // It was not there when the load began, and was there with other values when it was to be written.
    let told = told(&changes);
    assert!(
        told.contains(&"flavor arm-2 has another cpus, memory, disk".to_owned()),
        "{told:?}"
    );
    assert_eq!(
        keeper
            .current()
            .flavor(&flavor_id("arm-2"))
            .unwrap()
            .cpus
            .get(),
        2
    );
    assert_eq!(open(&store).await.current(), keeper.current());
}

#[tokio::test]
async fn a_load_that_never_gets_through_says_so_and_changes_nothing_in_force() {
    let (meddler, keeper) = meddled(store()).await;
    for cpus in 10..20 {
        meddler.before_next_commit(arm(cpus));
    }
    let error = keeper.load(EXAMPLE).await.unwrap_err();
    assert!(matches!(error, LoadError::Contended), "{error}");
    assert_eq!(*keeper.current(), Catalog::default());
}

#[tokio::test]
async fn what_another_loads_comes_into_force_here() {
    let store = store();
    let (here, there) = (open(&store).await, open(&store).await);
    let follow = here.follow();
    let watch = async {
        for text in [EXAMPLE.to_owned(), without("arm-2"), EXAMPLE.to_owned()] {
            there.load(&text).await.unwrap();
            while here.current() != there.current() {
                tokio::task::yield_now().await;
            }
        }
    };
    tokio::select! {
        error = follow => panic!("{error}"),
        () = watch => {}
    }
    assert_eq!(here.current().flavors().count(), 4);
}

#[tokio::test]
async fn what_was_read_before_a_load_is_not_put_back_after_it() {
    let (meddler, keeper) = meddled(store()).await;
    let release = meddler.hold_next_list();
    let slow = keeper.refresh();
    let fast = async {
        // The slow one has read by now, and waits.
        keeper.load(EXAMPLE).await.unwrap();
        release.send(()).unwrap();
    };
    let (slow, ()) = tokio::join!(slow, fast);
    assert_eq!(slow.unwrap(), []);
    assert_eq!(keeper.current().flavors().count(), 4);
}
