//! Lists: the same result as a naive filter, in pages, through every index, at a cost that does not depend on other tenants.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::collections::BTreeSet;

use fleetwright::Tags;
use fleetwright_compute::{
    ComputeError,
    instance::{Instance, InstanceId, Provisioning},
    service::{InstancePage, ListInstances, MAX_FILTER},
};
use fleetwright_facade_testkit::{
    Tenant, TestFacade, memory_store, name, north, operator,
    principals::{project_reader, scope, with_roles},
    project_user, south,
    stores::{CallCounts, InterceptedStore},
    tenant,
};
use fleetwright_identity::{OrganizationId, Principal, ProjectId, Scope};
use fleetwright_region::{
    ids::{NetworkId, RegionId},
    server::Phase,
};
use fleetwright_store::{RecordId, Store, Transaction};
use proptest::prelude::*;
use uuid::Uuid;

/// An instance for the store: its number, its network and its progress.
#[derive(Clone, Debug)]
struct StoredInstance {
    id: u128,
    place: usize,
    tag: Option<u8>,
    phase: usize,
    deleting: bool,
}

fn stored_instance() -> impl Strategy<Value = StoredInstance> {
    let tag = prop::option::of(0_u8..2);
    (any::<u128>(), 0_usize..6, tag, 0_usize..3, any::<bool>()).prop_map(
        |(id, place, tag, phase, deleting)| StoredInstance {
            id,
            place,
            tag,
            phase,
            deleting,
        },
    )
}

const PHASES: [Phase; 3] = [Phase::Pending, Phase::Running, Phase::Failed];

/// Six networks in five projects of three organizations, in two regions.
const PLACES: [(u128, u128); 6] = [(1, 1), (1, 1), (1, 2), (2, 1), (2, 3), (3, 3)];

struct Map {
    facade: TestFacade,
    networks: Vec<(Tenant, RegionId, NetworkId)>,
    pattern: Instance,
}

impl Map {
    async fn new(store: std::sync::Arc<dyn Store>) -> Self {
        let facade = TestFacade::builder().store(store).build().await;
        let mut networks = Vec::new();
        for (number, (organization, project)) in PLACES.into_iter().enumerate() {
            let tenant = tenant(organization, project);
            let region = if number % 2 == 0 { north() } else { south() };
            let called = format!("n{number}");
            let network = facade.network_in(tenant, region.clone(), &called).await;
            networks.push((tenant, region, network));
        }
        let first = networks[0].2;
        let pattern = facade.create(first, "pattern").await.instance;
        let key = pattern.id.to_string();
        facade.remove("instance", &key).await;
        Self {
            facade,
            networks,
            pattern,
        }
    }

    /// Inserts instances as the service and the controller would.
    async fn put(&self, given: &[StoredInstance]) -> Vec<Instance> {
        let mut created = Vec::new();
        for one in given {
            let (tenant, region, network) = self.networks[one.place].clone();
            let mut instance = self.pattern.clone();
            instance.id = InstanceId::from_uuid(Uuid::from_u128(one.id));
            instance.server = instance.id.server();
            instance.name = name(&format!("i{:x}", one.id));
            (instance.organization, instance.project) = tenant;
            (instance.region, instance.network) = (region, network);
            if let Some(tag) = one.tag {
                instance.tags = Tags::new().with("tag", tag.to_string()).unwrap();
            }
            instance.status.phase = PHASES[one.phase];
            if one.deleting {
                let by = instance.created_by.clone();
                let cause = fleetwright_compute::instance::DeletionCause::Requested;
                instance.mark_deleted(instance.created_at, &by, cause);
            }
            let id = RecordId::new("instance", instance.id.to_string()).unwrap();
            let value = serde_json::to_value(&instance).unwrap();
            let transaction = Transaction::new().put(id, value);
            self.facade.store.commit(&transaction).await.unwrap();
            created.push(instance);
        }
        created
    }

    /// Reads all pages of a list. Checks that no page is too large and that only the last one has no next page.
    async fn walk(&self, principal: &Principal, wanted: &ListInstances) -> Vec<InstanceId> {
        let mut wanted = wanted.clone();
        let mut found = Vec::new();
        loop {
            let page: InstancePage = self
                .facade
                .instances
                .list(principal, &wanted)
                .await
                .unwrap();
            assert!(page.instances.len() <= wanted.limit as usize);
            assert!(page.instances.len() == wanted.limit as usize || page.next.is_none());
            found.extend(page.instances.iter().map(|view| view.instance.id));
            match page.next {
                Some(next) => wanted.after = Some(next),
                None => return found,
            }
        }
    }
}

/// Principals with the scopes in which they may list.
fn readers() -> Vec<(Principal, Vec<Scope>)> {
    let whole = |number| Scope::Organization(tenant(number, 0).0);
    let several = [
        ("project-reader", scope(tenant(1, 2))),
        ("project-reader", scope(tenant(2, 1))),
        ("organization-auditor", whole(3)),
    ];
    let where_several = several.iter().map(|(_, scope)| *scope).collect();
    let auditor = with_roles("otto", &[("organization-auditor", whole(1))]);
    vec![
        (operator(), vec![Scope::Global]),
        (project_user(tenant(1, 1)), vec![scope(tenant(1, 1))]),
        (project_reader(tenant(9, 9)), vec![scope(tenant(9, 9))]),
        (auditor, vec![whole(1)]),
        (with_roles("rita", &several), where_several),
    ]
}

/// A subset of values, often empty.
fn some<T: Clone + Ord + std::fmt::Debug + 'static>(
    values: Vec<T>,
) -> impl Strategy<Value = BTreeSet<T>> {
    let count = values.len();
    prop_oneof![
        2 => Just(BTreeSet::new()),
        1 => prop::sample::subsequence(values, 0..=count).prop_map(|some| some.into_iter().collect()),
    ]
}

type Filters = (
    BTreeSet<OrganizationId>,
    BTreeSet<ProjectId>,
    BTreeSet<RegionId>,
    BTreeSet<usize>,
    BTreeSet<Provisioning>,
    BTreeSet<Phase>,
);

fn filters() -> impl Strategy<Value = Filters> {
    (
        some((1..=4).map(|n| tenant(n, 0).0).collect()),
        some((1..=4).map(|n| tenant(0, n).1).collect()),
        some(vec![north(), south()]),
        some((0..PLACES.len()).collect()),
        some(vec![
            Provisioning::Pending,
            Provisioning::Deprovisioning,
            Provisioning::Error,
        ]),
        some(PHASES.into()),
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn list_equals_a_naive_filter_in_the_order_of_ids(
        given in prop::collection::vec(stored_instance(), 0..40),
        filters in filters(),
        tag in prop::option::of(0_u8..2),
        principal in 0_usize..5,
        limit in 1_u32..12,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let map = Map::new(memory_store()).await;
            let all = map.put(&given).await;
            let (principal, may) = readers().swap_remove(principal);
            let mut wanted = ListInstances::default();
            let networks;
            (wanted.organizations, wanted.projects, wanted.regions, networks, wanted.provisioning, wanted.phases) = filters;
            wanted.networks = networks.into_iter().map(|number| map.networks[number].2).collect();
            wanted.limit = limit;
            if let Some(tag) = tag {
                wanted.tags = Tags::new().with("tag", tag.to_string()).unwrap();
            }
            let among = |set: &BTreeSet<_>, value: &_| set.is_empty() || set.contains(value);
            let fits = |one: &&Instance| {
                may.iter().any(|scope| scope.contains(&one.scope()))
                    && (wanted.organizations.is_empty() || wanted.organizations.contains(&one.organization))
                    && (wanted.projects.is_empty() || wanted.projects.contains(&one.project))
                    && (wanted.regions.is_empty() || wanted.regions.contains(&one.region))
                    && (wanted.networks.is_empty() || wanted.networks.contains(&one.network))
                    && (wanted.provisioning.is_empty() || wanted.provisioning.contains(&one.provisioning()))
                    && among(&wanted.phases, &one.status.phase)
                    && tag.is_none_or(|tag| one.tags.get("tag") == Some(tag.to_string().as_str()))
            };
            let naive: BTreeSet<_> = all.iter().filter(fits).map(|one| one.id).collect();
            let naive: Vec<_> = naive.into_iter().collect();
            assert_eq!(map.walk(&principal, &wanted).await, naive);
        });
    }
}

/// Records of other tenants are not read.
#[tokio::test(start_paused = true)]
async fn cost_of_a_page_does_not_depend_on_other_tenants() {
    let counting = InterceptedStore::new(memory_store(), CallCounts::default());
    let map = Map::new(counting.clone()).await;
    let instances_in = |place: usize, count: u128| {
        let each = (0..count).map(move |number| StoredInstance {
            id: ((place as u128) << 100) + (number << 64) * 7919,
            place,
            tag: None,
            phase: 1,
            deleting: false,
        });
        each.collect::<Vec<_>>()
    };
    map.put(&instances_in(0, 30)).await;
    let alice = project_user(tenant(1, 1));
    let mut foreign = ListInstances::default();
    foreign.networks = [map.networks[5].2].into();
    let mut costs = Vec::new();
    for others in [5, 400] {
        map.put(&instances_in(5, others)).await;
        map.put(&instances_in(2, others)).await;
        let mut cost = Vec::new();
        for wanted in [&ListInstances::default(), &foreign] {
            counting.interceptor.take();
            map.facade.instances.list(&alice, wanted).await.unwrap();
            cost.push(counting.interceptor.take());
        }
        costs.push(cost);
    }
    assert_eq!(costs[0], costs[1]);
    // A page of the tenant's own instances: one range and the region's scan.
    assert_eq!(costs[0][0], [2, 0, 30]);
    // Another tenant's network: its record is read, and its instances are not.
    assert_eq!(costs[0][1], [1, 0, 1]);
}

/// A page without matches ends after a limit, and the pages together are complete.
#[tokio::test(start_paused = true)]
async fn page_without_matches_ends_and_names_the_next_one() {
    let map = Map::new(memory_store()).await;
    let given: Vec<_> = (0..2100)
        .map(|number| StoredInstance {
            id: number << 64,
            place: 0,
            tag: (number == 2099).then_some(1),
            phase: 0,
            deleting: false,
        })
        .collect();
    map.put(&given).await;
    let mut wanted = ListInstances::default();
    wanted.tags = Tags::new().with("tag", "1").unwrap();
    let alice = project_user(tenant(1, 1));
    let first = map.facade.instances.list(&alice, &wanted).await.unwrap();
    assert!(first.instances.is_empty());
    wanted.after = Some(first.next.unwrap());
    let second = map.facade.instances.list(&alice, &wanted).await.unwrap();
    assert_eq!((second.instances.len(), second.next), (1, None));
}

#[tokio::test(start_paused = true)]
async fn damaged_record_is_reported_only_to_readers_of_everything() {
    let map = Map::new(memory_store()).await;
    let given: Vec<_> = (0..5)
        .map(|number| StoredInstance {
            id: number << 64,
            place: 0,
            tag: None,
            phase: 0,
            deleting: false,
        })
        .collect();
    let created = map.put(&given).await;
    let key = created[1].id.to_string();
    map.facade
        .patch("instance", &key, |value| {
            value["generation"] = "much".into();
        })
        .await;
    let key = created[2].id.to_string();
    let other = created[4].id.to_string();
    map.facade
        .patch("instance", &key, |value| value["id"] = other.into())
        .await;
    for (principal, damaged) in [(operator(), 2), (project_user(tenant(1, 1)), 0)] {
        let page = map
            .facade
            .instances
            .list(&principal, &ListInstances::default())
            .await
            .unwrap();
        assert_eq!((page.instances.len(), page.damaged.len()), (3, damaged));
    }
    let error = map
        .facade
        .instances
        .read(&operator(), created[2].id)
        .await
        .unwrap_err();
    assert!(matches!(error, ComputeError::Store(_)), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn list_with_too_many_filter_values_is_refused() {
    let facade = TestFacade::new().await;
    let alice = project_user(tenant(1, 1));
    let mut wanted = ListInstances::default();
    wanted.networks = (0..=MAX_FILTER as u128)
        .map(|number| NetworkId::from_uuid(Uuid::from_u128(number)))
        .collect();
    let error = facade.instances.list(&alice, &wanted).await.unwrap_err();
    let expected = "networkID: 101 values are too many: at most 100 are allowed";
    assert_eq!(
        (error.meaning().status(), error.to_string().as_str()),
        (400, expected)
    );
    let mut none = ListInstances::default();
    none.limit = 0;
    let error = facade.instances.list(&alice, &none).await.unwrap_err();
    assert_eq!(error.meaning().status(), 400);
}
