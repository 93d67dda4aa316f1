//! Networks, security groups and authorities: creation, validation and references.

use std::{collections::BTreeSet, sync::Arc};

use fleetwright_identity::{ActorName, Principal, Scope};
use fleetwright_store::{RecordId, Store, Transaction};
use serde_json::json;

use super::*;
use crate::{
    ids::{NetworkId, RegionId, SecurityGroupId, SshAuthorityId},
    name::Name,
    testing::{
        ContendedStore, CountingEntropy, FailingEntropy, organization, project, store,
        user_with_role,
    },
};

mod damaged;
mod deletion;
mod keys;
mod property;
mod races;
mod scopes;

const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAy6fJc6yBCQTw1DopXqb20HM2tM0UvQcjhH2mQNCtjX";

struct World {
    store: Arc<dyn Store>,
    networks: Arc<Networks>,
    groups: SecurityGroups,
    authorities: SshAuthorities,
}

fn world() -> World {
    over(store())
}

fn over(store: Arc<dyn Store>) -> World {
    let entropy = Arc::new(CountingEntropy::default());
    let regions = BTreeSet::from([
        RegionId::new("north").unwrap(),
        RegionId::new("south").unwrap(),
    ]);
    let networks = Networks::new(
        Arc::clone(&store),
        regions,
        entropy.clone(),
        &crate::references::References::default(),
    )
    .unwrap();
    let networks = Arc::new(networks);
    let groups = SecurityGroups::new(
        Arc::clone(&store),
        Arc::clone(&networks),
        entropy.clone(),
        &crate::references::References::default(),
    );
    World {
        groups: groups.unwrap(),
        authorities: SshAuthorities::new(
            Arc::clone(&store),
            entropy,
            &crate::references::References::default(),
        )
        .unwrap(),
        networks,
        store,
    }
}

fn user() -> Principal {
    user_with_role("project-user", Scope::Project(organization(1), project(1)))
}

fn new_network(name: &str) -> NewNetwork {
    NewNetwork {
        organization: organization(1),
        project: project(1),
        region: RegionId::new("north").unwrap(),
        name: Name::new(name).unwrap(),
        prefix: "10.0.0.0/16".parse().unwrap(),
        dns: vec!["9.9.9.9".parse().unwrap()],
    }
}

fn rules(json: serde_json::Value) -> Rules {
    serde_json::from_value(json).unwrap()
}

impl World {
    async fn network(&self, name: &str) -> NetworkId {
        let created = self.networks.create(&user(), &new_network(name)).await;
        created.unwrap().value.id
    }

    async fn delete(&self, network: NetworkId, if_used: IfUsed) -> Result<Deletion, RecordError> {
        self.networks.delete(&user(), network, if_used).await
    }

    async fn group(&self, network: NetworkId, name: &str) -> SecurityGroupId {
        let new = new_group(network, name);
        self.groups.create(&user(), &new).await.unwrap().value.id
    }

    async fn groups(&self) -> RecordList<SecurityGroup> {
        let listed = self.groups.list(&user(), &Filter::default()).await;
        listed.unwrap()
    }

    async fn authority(&self, name: &str) -> SshAuthorityId {
        let created = self.authorities.create(&user(), &new_authority(name)).await;
        created.unwrap().value.id
    }

    /// A server record with its references and its owner only: server `s-1` belongs to instance `i-1`.
    async fn server(&self, key: &str, spec: serde_json::Value) {
        let id = RecordId::new("server", key).unwrap();
        let owner = json!({ "kind": "instance", "id": key.replace('s', "i") });
        let value = json!({ "spec": spec, "owner": owner });
        let transaction = Transaction::new().put(id, value);
        self.store.commit(&transaction).await.unwrap();
    }

    async fn no_server(&self, key: &str) {
        let id = RecordId::new("server", key).unwrap();
        self.store
            .commit(&Transaction::new().delete(id))
            .await
            .unwrap();
    }
}

/// The request for a group that accepts SSH.
fn new_group(network: NetworkId, name: &str) -> NewSecurityGroup {
    NewSecurityGroup {
        network,
        name: Name::new(name).unwrap(),
        rules: rules(json!([{"direction": "ingress", "protocol": "tcp", "port": 22}])),
    }
}

fn new_authority(name: &str) -> NewSshAuthority {
    NewSshAuthority {
        organization: organization(1),
        project: project(1),
        name: Name::new(name).unwrap(),
        public_key: AuthorityKey::new(KEY).unwrap(),
    }
}

#[tokio::test]
async fn created_records_are_read_and_listed_unchanged() {
    let world = world();
    let created = world
        .networks
        .create(&user(), &new_network("blue"))
        .await
        .unwrap();
    assert_eq!(created.value.state, NetworkState::Ready);
    assert_eq!(
        world.networks.get(&user(), created.value.id).await.unwrap(),
        created
    );
    world.network("red").await;
    let all = world
        .networks
        .list(&user(), &Filter::default())
        .await
        .unwrap();
    assert_eq!((all.items.len(), all.damaged.len()), (2, 0));
    assert!(all.items.is_sorted_by_key(|found| found.value.id));
    let south = Filter::default().region(RegionId::new("south").unwrap());
    assert_eq!(
        world.networks.list(&user(), &south).await.unwrap().items,
        []
    );

    let group = world.group(created.value.id, "ssh").await;
    let on_it = Filter::default().network(created.value.id);
    let listed = world.groups.list(&user(), &on_it).await.unwrap();
    assert_eq!(listed.items[0].value.id, group);
    assert_eq!(listed.items[0].value.project, project(1));
    let open = rules(json!([{"direction": "egress", "protocol": "any"}]));
    world.groups.set_rules(&user(), group, &open).await.unwrap();
    assert_eq!(
        world.groups.get(&user(), group).await.unwrap().value.rules,
        open
    );

    let authority = world.authority("ours").await;
    let found = world.authorities.get(&user(), authority).await.unwrap();
    assert_eq!(found.value.public_key.as_str(), KEY);
    assert_eq!(
        world
            .authorities
            .list(&user(), &Filter::default())
            .await
            .unwrap()
            .items,
        [found]
    );
}

#[tokio::test]
async fn invalid_network_is_refused_with_the_reason() {
    let world = world();
    type Change = fn(&mut NewNetwork);
    let table: [(Change, &str); 10] = [
        (
            |new| new.prefix = "fd00::/64".parse().unwrap(),
            "prefix fd00::/64 is IPv6: expected IPv4, as in 10.0.0.0/16",
        ),
        (
            |new| new.prefix = "10.0.0.0/29".parse().unwrap(),
            "prefix 10.0.0.0/29 has a length of 29: expected 8 to 28",
        ),
        (
            |new| new.prefix = "10.0.0.0/7".parse().unwrap(),
            "prefix 10.0.0.0/7 has a length of 7: expected 8 to 28",
        ),
        (
            |new| new.prefix = "127.0.0.0/8".parse().unwrap(),
            "prefix 127.0.0.0/8 is reserved: expected addresses that servers can have, as in 10.0.0.0/16",
        ),
        (
            |new| new.prefix = "224.1.0.0/16".parse().unwrap(),
            "prefix 224.1.0.0/16 is reserved: expected addresses that servers can have, as in 10.0.0.0/16",
        ),
        (
            |new| new.prefix = "169.254.1.0/24".parse().unwrap(),
            "prefix 169.254.1.0/24 is reserved: expected addresses that servers can have, as in 10.0.0.0/16",
        ),
        (
            |new| new.dns = vec!["9.9.9.9".parse().unwrap(); 2],
            "name server 9.9.9.9 is given twice: leave one out",
        ),
        (
            |new| new.dns = vec!["::1".parse().unwrap()],
            "::1 is not the address of a name server: expected a unicast address that is not loopback",
        ),
        (
            |new| new.dns = (1..=6).map(|n| [9, 9, 9, n].into()).collect(),
            "there are 6 name servers: expected at most 5",
        ),
        (
            |new| new.region = RegionId::new("west").unwrap(),
            "there is no region west: choose an existing one",
        ),
    ];
    for (change, message) in table {
        let mut new = new_network("blue");
        change(&mut new);
        let error = world.networks.create(&user(), &new).await.unwrap_err();
        assert_eq!(error.to_string(), message);
    }
    assert_eq!(
        world
            .networks
            .list(&user(), &Filter::default())
            .await
            .unwrap()
            .items,
        []
    );
    let dry = Networks::new(
        store(),
        [new_network("a").region].into(),
        Arc::new(FailingEntropy),
        &crate::references::References::default(),
    )
    .unwrap();
    let error = dry.create(&user(), &new_network("blue")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "no random bytes are available: the source is empty"
    );
}

#[tokio::test]
async fn names_are_unique_in_their_scope() {
    let world = world();
    let blue = world.network("blue").await;
    let again = world
        .networks
        .create(&user(), &new_network("blue"))
        .await
        .unwrap_err();
    assert_eq!(
        again.to_string(),
        "the name blue is taken by another network: choose another name"
    );
    let mut south = new_network("blue");
    south.region = RegionId::new("south").unwrap();
    let south = world
        .networks
        .create(&user(), &south)
        .await
        .unwrap()
        .value
        .id;
    world.group(blue, "ssh").await;
    world.group(south, "ssh").await;
    let ssh = new_group(blue, "ssh");
    let again = world.groups.create(&user(), &ssh).await.unwrap_err();
    assert_eq!(
        again.to_string(),
        "the name ssh is taken by another security group: choose another name"
    );
    world.authority("ours").await;
    let again = world
        .authorities
        .create(&user(), &new_authority("ours"))
        .await
        .unwrap_err();
    assert_eq!(
        again.to_string(),
        "the name ours is taken by another SSH certificate authority: choose another name"
    );
}

#[tokio::test]
async fn groups_of_a_server_are_of_its_network_and_the_authority_of_its_project() {
    let world = world();
    let (blue, red) = (world.network("blue").await, world.network("red").await);
    let (one, two) = (
        world.group(blue, "one").await,
        world.group(blue, "two").await,
    );
    let other = world.group(red, "one").await;
    let (groups, checks) = world
        .groups
        .for_server(&user(), blue, &[one, two])
        .await
        .unwrap();
    assert_eq!((groups, checks.len()), (BTreeSet::from([one, two]), 2));
    let message_of = |error: RecordError| error.to_string();
    assert_eq!(
        message_of(
            world
                .groups
                .for_server(&user(), blue, &[one, two, one])
                .await
                .unwrap_err()
        ),
        format!("security group {one} is given twice: leave one out")
    );
    assert_eq!(
        message_of(
            world
                .groups
                .for_server(&user(), blue, &[other])
                .await
                .unwrap_err()
        ),
        format!("security group {other} is not in network {blue}: choose one that is")
    );
    let stranger = user_with_role("project-user", Scope::Project(organization(2), project(2)));
    assert_eq!(
        message_of(
            world
                .groups
                .for_server(&stranger, blue, &[one])
                .await
                .unwrap_err()
        ),
        format!("there is no security group {one}")
    );

    let authority = world.authority("ours").await;
    let ours = (organization(1), project(1));
    assert!(
        world
            .authorities
            .for_server(&user(), ours, authority)
            .await
            .is_ok()
    );
    let administrator = user_with_role(
        "organization-administrator",
        Scope::Organization(organization(1)),
    );
    let other_project = (organization(1), project(2));
    assert!(matches!(
        world
            .authorities
            .for_server(&administrator, other_project, authority)
            .await,
        Err(RecordError::NotIn { .. })
    ));
    // If a group is deleted meanwhile, the transaction of the server fails.
    world.groups.delete(&user(), two).await.unwrap();
    let late = checks
        .into_iter()
        .fold(Transaction::new(), Transaction::check);
    assert!(
        world
            .store
            .commit(&late)
            .await
            .unwrap_err()
            .conflict()
            .is_some()
    );
}

#[test]
fn schema_without_a_reference_index_is_refused() {
    use fleetwright_store::{MemoryStore, Schema};
    let schema = Schema::builder()
        .kind("ssh-authority")
        .kind("server")
        .index("network", ["/spec/network"])
        .index("security-group", ["/spec/security_groups"])
        .build();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(schema.unwrap()));
    let error = SshAuthorities::new(
        store,
        Arc::new(FailingEntropy),
        &crate::references::References::default(),
    )
    .unwrap_err();
    assert_eq!(error.to_string(), "kind server has no index ssh-authority");
}
