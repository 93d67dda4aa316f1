//! What a tenant's program needs, from this crate and the ones below it: `use fleetwright_compute::prelude::*;`.
//!
//! The crates themselves are re-exported as [`identity`](crate::identity), [`region`](crate::region) and [`store`](crate::store), so
//! that a program names one dependency and one version.

#[doc(no_inline)]
pub use std::time::Duration;

// Links of a trait's own page are dead on a copy of the page.
#[doc(no_inline)]
pub use fleetwright::InstanceProvisioner;
pub use fleetwright::{PublicAddress, Reboot, Tags, UserData};
pub use fleetwright_identity::{
    Account, Actor, ActorName, AuditQuery, AuditRetention, Binding, Limits, NewOrganization,
    NewProject, NewRoleBinding, OrganizationId, PageRequest, Permission, Principal, ProjectId,
    QuotaKind, QuotaKinds, Resource, RoleName, Roles, Scope, TenantName, Verb,
};
pub use fleetwright_region::{
    ids::{FlavorId, ImageId, NetworkId, RegionId, SecurityGroupId, SshAuthorityId},
    name::Name,
    network::{Deletion, IfUsed, NewNetwork, NewSecurityGroup, NewSshAuthority},
    secret::Keyring,
    server::{Consent, Health, Phase, Plan, Power},
    snapshot::NewSnapshot,
};
pub use fleetwright_runtime::clock::{Clock, SystemClock, TokioClock};
#[doc(no_inline)]
pub use fleetwright_store::Store;
pub use fleetwright_store::{MemoryStore, Revision, Transaction};

pub use crate::{
    ComputeError, Meaning,
    facade::{Facade, FacadeBuilder, FacadeError, FacadeRegion, RunningFacade},
    instance::{Condition, ConditionKind, Event, Instance, InstanceId, InstanceSpec, Provisioning},
    service::{
        Accepted, InstancePage, InstanceSummary, InstanceView, Instances, ListInstances,
        ListedInstance, NewInstance, UpdateInstance,
    },
};
