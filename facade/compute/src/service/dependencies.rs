//! Checks the dependencies of an instance with the caller's permissions, in a fixed order: network, which determines the region;
//! flavor and image; security groups; user data; certificate authority; source addresses. The error is that of the first failed check.

use std::collections::BTreeSet;

use fleetwright_identity::{OrganizationId, Principal, ProjectId};
use fleetwright_region::{
    ids::{NetworkId, RegionId},
    network::{Network, RecordError},
    server::{Field, ServerPlacement, ServerSpec},
};
use fleetwright_store::{Check, Versioned};

use super::{Instances, UserDataSupport, validate::check_sources};
use crate::{ComputeError, instance::InstanceSpec};

/// Where an instance is or will be.
pub(super) struct Placement<'a> {
    pub(super) region: &'a RegionId,
    pub(super) tenant: (OrganizationId, ProjectId),
    pub(super) network: NetworkId,
}

/// The fields that are checked against the catalog.
const CATALOG: [Field; 2] = [Field::Flavor, Field::Image];

impl Instances {
    /// Returns the network of a new instance. A network of another project gives the same error as one that does not exist.
    pub(super) async fn network(
        &self,
        principal: &Principal,
        tenant: (OrganizationId, ProjectId),
        id: NetworkId,
    ) -> Result<Versioned<Network>, ComputeError> {
        let found = self.networks.get(principal, id).await?;
        if (found.value.organization, found.value.project) == tenant {
            return Ok(found);
        }
        Err(RecordError::NotFound {
            what: "network",
            id: id.to_string(),
        }
        .into())
    }

    /// Checks that the network accepts new instances. Returns the checks for the transaction.
    pub(super) async fn check_network_open(
        &self,
        principal: &Principal,
        placement: &Placement<'_>,
        spec: &InstanceSpec,
    ) -> Result<Vec<Check>, ComputeError> {
        // Without security groups: `check_references` checks those, after flavor and image.
        let bare = ServerSpec::new(spec.flavor.clone(), spec.image.clone(), placement.network);
        self.check_fields(principal, placement, &bare, &[Field::Network])
            .await
    }

    /// Checks the dependencies in the changed fields, in the order of the module. Fields that did not change are not checked, except
    /// source addresses, which are always refused. User data is also checked if the certificate authority changed, because both
    /// must fit together. Returns the checks for the transaction.
    pub(super) async fn check_references(
        &self,
        principal: &Principal,
        placement: &Placement<'_>,
        spec: &InstanceSpec,
        changed: &BTreeSet<Field>,
    ) -> Result<Vec<Check>, ComputeError> {
        let wanted = spec.server(placement.network, &fleetwright::Tags::new());
        let some_of = |fields: &[Field]| -> Vec<Field> {
            let changed = fields.iter().filter(|field| changed.contains(field));
            changed.copied().collect()
        };
        let mut checks = self
            .check_fields(principal, placement, &wanted, &some_of(&CATALOG))
            .await?;
        let groups = some_of(&[Field::SecurityGroups]);
        checks.extend(
            self.check_fields(principal, placement, &wanted, &groups)
                .await?,
        );
        let is_new = changed.contains(&Field::UserData) && spec.user_data.is_some();
        if is_new && self.user_data == UserDataSupport::NoKeyring {
            return Err(ComputeError::Unprocessable {
                field: "spec.userData".to_owned(),
                problem: "this installation stores no user data, because it has no key to seal it with: leave it out, or ask an \
                          operator to configure a keyring"
                    .to_owned(),
            });
        }
        if !some_of(&[Field::UserData, Field::SshAuthority]).is_empty() {
            self.servers
                .check_user_data(&wanted)
                .map_err(|bad| ComputeError::Unprocessable {
                    field: "spec.userData".to_owned(),
                    problem: bad.to_string(),
                })?;
        }
        let authority = some_of(&[Field::SshAuthority]);
        checks.extend(
            self.check_fields(principal, placement, &wanted, &authority)
                .await?,
        );
        check_sources(spec)?;
        Ok(checks)
    }

    async fn check_fields(
        &self,
        principal: &Principal,
        placement: &Placement<'_>,
        spec: &ServerSpec,
        changed: &[Field],
    ) -> Result<Vec<Check>, ComputeError> {
        if changed.is_empty() {
            return Ok(Vec::new());
        }
        let mut placement = ServerPlacement::new(placement.region, placement.tenant, spec);
        placement.changed = changed.iter().copied().collect();
        Ok(self.dependencies.check(principal, &placement).await?)
    }
}
