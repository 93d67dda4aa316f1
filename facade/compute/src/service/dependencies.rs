//! What an instance stands on, asked step by step in the tenant's name: first the network, which says in which region; then flavor and
//! image; groups; user data; the certificate authority; at last the addresses it would send from. The first that will not do is told.

use std::collections::BTreeSet;

use fleetwright_identity::{OrganizationId, Principal, ProjectId};
use fleetwright_region::{
    ids::{NetworkId, RegionId},
    network::{Network, RecordError},
    server::{Field, ServerPlacement, ServerSpec},
};
use fleetwright_store::{Check, Versioned};

use super::{Instances, validate::check_sources};
use crate::{ComputeError, instance::InstanceSpec};

/// Where an instance stands, or is to.
pub(super) struct Placement<'a> {
    pub(super) region: &'a RegionId,
    pub(super) tenant: (OrganizationId, ProjectId),
    pub(super) network: NetworkId,
}

/// The fields of which each step asks, after the network.
const CATALOG: [Field; 2] = [Field::Flavor, Field::Image];

impl Instances {
    /// The network of an instance that is to be made, which must be of its own project. Another one looks like none.
    pub(super) async fn network(
        &self,
        who: &Principal,
        tenant: (OrganizationId, ProjectId),
        id: NetworkId,
    ) -> Result<Versioned<Network>, ComputeError> {
        let found = self.networks.get(who, id).await?;
        if (found.value.organization, found.value.project) == tenant {
            return Ok(found);
        }
        Err(RecordError::NotFound {
            what: "network",
            id: id.to_string(),
        }
        .into())
    }

    /// That the network takes something new, for the transaction that puts it there.
    pub(super) async fn open(
        &self,
        who: &Principal,
        place: &Placement<'_>,
        spec: &InstanceSpec,
    ) -> Result<Vec<Check>, ComputeError> {
        // Without groups: those are asked about at their own step.
        let bare = ServerSpec::new(spec.flavor.clone(), spec.image.clone(), place.network);
        self.step(who, place, &bare, &[Field::Network]).await
    }

    /// What the fields that changed refer to, in order. Of the others nothing is asked.
    pub(super) async fn stands(
        &self,
        who: &Principal,
        place: &Placement<'_>,
        spec: &InstanceSpec,
        changed: &BTreeSet<Field>,
    ) -> Result<Vec<Check>, ComputeError> {
        let wanted = spec.server(place.network, &fleetwright::Tags::new());
        let some_of = |fields: &[Field]| -> Vec<Field> {
            let changed = fields.iter().filter(|field| changed.contains(field));
            changed.copied().collect()
        };
        let mut checks = self.step(who, place, &wanted, &some_of(&CATALOG)).await?;
        let groups = some_of(&[Field::SecurityGroups]);
        checks.extend(self.step(who, place, &wanted, &groups).await?);
        if !some_of(&[Field::UserData, Field::SshAuthority]).is_empty() {
            self.servers
                .check_user_data(&wanted)
                .map_err(|bad| ComputeError::Unprocessable {
                    field: "spec.userData".to_owned(),
                    problem: bad.to_string(),
                })?;
        }
        let authority = some_of(&[Field::SshAuthority]);
        checks.extend(self.step(who, place, &wanted, &authority).await?);
        check_sources(spec)?;
        Ok(checks)
    }

    async fn step(
        &self,
        who: &Principal,
        place: &Placement<'_>,
        spec: &ServerSpec,
        changed: &[Field],
    ) -> Result<Vec<Check>, ComputeError> {
        if changed.is_empty() {
            return Ok(Vec::new());
        }
        let mut site = ServerPlacement::new(place.region, place.tenant, spec);
        site.changed = changed.iter().copied().collect();
        Ok(self.ground.check(who, &site).await?)
    }
}
