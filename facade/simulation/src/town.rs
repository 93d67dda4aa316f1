//! What stands before anybody asks for an instance: a catalog, networks, groups, an authority.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    sync::{Arc, Mutex, PoisonError},
};

use fleetwright_chaos::SeededRng;
use fleetwright_compute::{
    instance::{InstanceId, InstanceSpec},
    service::NewInstance,
};
use fleetwright_region::{
    catalog::CatalogKeeper,
    ids::{NetworkId, SecurityGroupId, SshAuthorityId},
    network::{
        AuthorityKey, Networks, NewNetwork, NewSecurityGroup, NewSshAuthority, Rules,
        SecurityGroups, SshAuthorities,
    },
    server::ServerId,
};
use fleetwright_runtime::entropy::{Entropy, EntropyError};
use fleetwright_store::Store;

use crate::{
    names::{self, NETWORKS, PLACES},
    world::Broken,
};

const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAy6fJc6yBCQTw1DopXqb20HM2tM0UvQcjhH2mQNCtjX";

/// Bytes that follow from the seed: keys that are worth nothing, and a history that replays.
#[derive(Debug)]
pub struct Seeded(Mutex<SeededRng>);

impl Seeded {
    /// Of a seed.
    pub fn new(seed: u64) -> Self {
        Self(Mutex::new(SeededRng::for_purpose(seed, 4)))
    }
}

impl Entropy for Seeded {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), EntropyError> {
        let mut dice = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for chunk in bytes.chunks_mut(8) {
            let drawn = dice.bits().to_le_bytes();
            chunk.copy_from_slice(&drawn[..chunk.len()]);
        }
        Ok(())
    }
}

/// What instances stand on.
#[derive(Clone, Debug)]
pub struct Town {
    /// The networks, in the order of [`NETWORKS`].
    pub networks: Vec<NetworkId>,
    /// A group of each network.
    pub groups: Vec<SecurityGroupId>,
    /// The authority of the first tenant.
    pub authority: SshAuthorityId,
}

impl Town {
    /// Founds it in an empty store.
    pub async fn found(store: Arc<dyn Store>, entropy: Arc<dyn Entropy>) -> Result<Self, Broken> {
        let who = names::operator();
        let (catalog, _) = CatalogKeeper::open(Arc::clone(&store)).await?;
        catalog.load(&names::catalog(true)).await?;
        let regions = BTreeSet::from([names::region()]);
        let networks = Networks::new(Arc::clone(&store), regions, Arc::clone(&entropy))?;
        let networks = Arc::new(networks);
        let groups = SecurityGroups::new(
            Arc::clone(&store),
            Arc::clone(&networks),
            Arc::clone(&entropy),
        )?;
        let (mut made, mut grouped) = (Vec::new(), Vec::new());
        for (index, tenant) in NETWORKS.into_iter().enumerate() {
            let (organization, project) = names::tenant(tenant);
            let new = NewNetwork {
                organization,
                project,
                region: names::region(),
                name: names::name(&format!("net-{index}")),
                prefix: "10.0.0.0/16".parse()?,
                dns: Vec::new(),
            };
            let network = networks.create(&who, &new).await?.value.id;
            let new = NewSecurityGroup {
                network,
                name: names::name("web"),
                rules: Rules::default(),
            };
            grouped.push(groups.create(&who, &new).await?.value.id);
            made.push(network);
        }
        let (organization, project) = names::tenant(0);
        let new = NewSshAuthority {
            organization,
            project,
            name: names::name("ca"),
            public_key: AuthorityKey::new(KEY)?,
        };
        let authorities = SshAuthorities::new(store, entropy)?;
        Ok(Self {
            networks: made,
            groups: grouped,
            authority: authorities.create(&who, &new).await?.value.id,
        })
    }

    /// The instance of a place.
    pub fn id(&self, slot: usize) -> InstanceId {
        let place = PLACES[slot];
        InstanceId::derive(self.networks[place.network], &names::name(place.name))
    }

    /// Its server.
    pub fn server(&self, slot: usize) -> ServerId {
        self.id(slot).server()
    }

    /// All servers that there may be.
    pub fn servers(&self) -> impl Iterator<Item = ServerId> {
        (0..names::SLOTS).map(|slot| self.server(slot))
    }

    /// The place of an instance.
    pub fn slot(&self, id: InstanceId) -> Option<usize> {
        (0..names::SLOTS).find(|slot| self.id(*slot) == id)
    }

    /// What an instance is asked to be at first.
    pub fn new_instance(&self, slot: usize) -> NewInstance {
        let place = PLACES[slot];
        let spec = InstanceSpec::new(names::flavor("small"), names::image("linux"));
        let tenant = names::tenant(place.tenant);
        let network = self.networks[place.network];
        NewInstance::new(names::name(place.name), tenant, network, spec)
    }

    /// What the region's cloud calls everything. The second network is in the second zone.
    pub fn mapping(&self) -> String {
        let mut text = format!(
            "region = \"{}\"\nprovider = \"memory\"\n\
             flavors = {{ small = \"small\", large = \"large\", gpu = \"gpu\" }}\n\
             images = {{ linux = \"linux\", bsd = \"bsd\" }}\n",
            names::region()
        );
        for (index, network) in self.networks.iter().enumerate() {
            let zone = if index == 1 { "mem-b" } else { "mem-a" };
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "[networks.\"{network}\"]\nsubnet = \"net-{index}\"\nzone = \"{zone}\""
            );
        }
        text.push_str("[security-groups]\n");
        for (index, group) in self.groups.iter().enumerate() {
            let _ = writeln!(text, "\"{group}\" = \"sg-{index}\"");
        }
        text
    }
}
