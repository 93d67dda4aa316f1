//! The fixtures of a run: organizations, projects, catalog, networks, security groups and an SSH
//! authority, created before the first operation.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use chrono::DateTime;
use fleetwright_chaos::SeededRng;
use fleetwright_compute::{
    instance::{InstanceId, InstanceSpec},
    service::NewInstance,
};
use fleetwright_facade_testkit::principals::create_tenant;
use fleetwright_identity::Ledger;
use fleetwright_region::{
    catalog::CatalogService,
    ids::{NetworkId, SecurityGroupId, SshAuthorityId},
    network::{
        AuthorityKey, Networks, NewNetwork, NewSecurityGroup, NewSshAuthority, Rules,
        SecurityGroups, SshAuthorities,
    },
    server::ServerId,
};
use fleetwright_runtime::{
    clock::TokioClock,
    entropy::{Entropy, EntropyError},
};
use fleetwright_store::Store;

use crate::{
    constants::{self, NETWORKS, SLOTS},
    world::SetupError,
};

const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAy6fJc6yBCQTw1DopXqb20HM2tM0UvQcjhH2mQNCtjX";

/// Entropy from the seed, so that a run can be repeated. The keys are worthless.
#[derive(Debug)]
pub struct SeededEntropy(Mutex<SeededRng>);

impl SeededEntropy {
    /// Creates the entropy of a seed.
    pub fn new(seed: u64) -> Self {
        Self(Mutex::new(SeededRng::for_purpose(seed, 4)))
    }
}

impl Entropy for SeededEntropy {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), EntropyError> {
        let mut rng = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for chunk in bytes.chunks_mut(8) {
            let drawn = rng.bits().to_le_bytes();
            chunk.copy_from_slice(&drawn[..chunk.len()]);
        }
        Ok(())
    }
}

/// The networks and other dependencies of instances.
#[derive(Clone, Debug)]
pub struct Fixtures {
    /// The networks, in the order of [`NETWORKS`].
    pub networks: Vec<NetworkId>,
    /// A security group of each network.
    pub groups: Vec<SecurityGroupId>,
    /// The SSH authority of the first tenant.
    pub authority: SshAuthorityId,
}

impl Fixtures {
    /// Creates the fixtures in an empty store.
    pub async fn create(
        store: Arc<dyn Store>,
        entropy: Arc<dyn Entropy>,
    ) -> Result<Self, SetupError> {
        let operator = constants::operator();
        let clock = Arc::new(TokioClock::starting_at(DateTime::UNIX_EPOCH));
        let tenancy = constants::tenancy(Arc::clone(&store), clock, Arc::clone(&entropy))?;
        for number in NETWORKS {
            create_tenant(&tenancy, constants::tenant(number)).await;
        }
        let (catalog, _) = CatalogService::open(Arc::clone(&store)).await?;
        catalog.load(&constants::catalog(&BTreeSet::new())).await?;
        let regions = BTreeSet::from([constants::region()]);
        let networks = Networks::new(
            Arc::clone(&store),
            regions,
            Arc::clone(&entropy),
            &fleetwright_compute::schema::references(),
        )?;
        let ledger = Ledger::new(Arc::clone(&store), Arc::new(constants::quota()))?;
        let networks = networks.with_ledger(ledger.clone());
        let networks = Arc::new(networks.with_tenancy(tenancy));
        let groups = SecurityGroups::new(
            Arc::clone(&store),
            Arc::clone(&networks),
            Arc::clone(&entropy),
            &fleetwright_compute::schema::references(),
        )?;
        let (mut network_ids, mut group_ids) = (Vec::new(), Vec::new());
        for (index, tenant) in NETWORKS.into_iter().enumerate() {
            let (organization, project) = constants::tenant(tenant);
            let new = NewNetwork {
                organization,
                project,
                region: constants::region(),
                name: constants::name(&format!("net-{index}")),
                prefix: "10.0.0.0/16".parse()?,
                dns: Vec::new(),
            };
            let network = networks.create(&operator, &new).await?.value.id;
            let new = NewSecurityGroup {
                network,
                name: constants::name("web"),
                rules: Rules::default(),
            };
            group_ids.push(groups.create(&operator, &new).await?.value.id);
            network_ids.push(network);
        }
        let (organization, project) = constants::tenant(0);
        let new = NewSshAuthority {
            organization,
            project,
            name: constants::name("ca"),
            public_key: AuthorityKey::new(KEY)?,
        };
        let authorities =
            SshAuthorities::new(store, entropy, &fleetwright_compute::schema::references())?;
        let authorities = authorities.with_ledger(ledger);
        Ok(Self {
            networks: network_ids,
            groups: group_ids,
            authority: authorities.create(&operator, &new).await?.value.id,
        })
    }

    /// Returns the id of a slot's instance.
    pub fn id(&self, slot: usize) -> InstanceId {
        let slot_data = SLOTS[slot];
        InstanceId::derive(
            self.networks[slot_data.network],
            &constants::name(slot_data.name),
        )
    }

    /// Returns the id of a slot's server.
    pub fn server(&self, slot: usize) -> ServerId {
        self.id(slot).server()
    }

    /// Returns the ids of all servers that may exist.
    pub fn servers(&self) -> impl Iterator<Item = ServerId> {
        (0..constants::SLOT_COUNT).map(|slot| self.server(slot))
    }

    /// Returns the slot of an instance.
    pub fn slot(&self, id: InstanceId) -> Option<usize> {
        (0..constants::SLOT_COUNT).find(|slot| self.id(*slot) == id)
    }

    /// Returns the first request for a slot's instance.
    pub fn new_instance(&self, slot: usize) -> NewInstance {
        let slot_data = SLOTS[slot];
        let spec = InstanceSpec::new(constants::flavor("small"), constants::image("debian"));
        let tenant = constants::tenant(slot_data.tenant);
        let network = self.networks[slot_data.network];
        NewInstance::new(constants::name(slot_data.name), tenant, network, spec)
    }
}
