//! The config with which a server's machine is launched, or why there is none.
//!
//! One place for all who need to know it: the [services](crate::server::Servers) check a request before it is stored, and the
//! [controller](crate::controller) checks it again right before anything is stopped or terminated, and launches it. It calls no cloud.

use std::{fmt, sync::Arc};

use fleetwright::{InstanceConfig, InstanceProvisioner, InvalidValue, LaunchToken, UserData};
use fleetwright_cloud_init::{ManagedConfig, UserDataError, assemble};
use fleetwright_store::{Invalid, Key, Store, StoreError, Table};

use crate::{
    controller::tags,
    ids::SshAuthorityId,
    mapping::{LaunchPlanner, LaunchSpec, MappedEntry, PlanError},
    network::SshAuthority,
    server::{Field, Server},
};

/// Returns the launch configs of the servers of one region, from its mapping, its authorities and the limits of its provider. Clones
/// share everything.
///
/// ```
/// use std::sync::Arc;
/// use fleetwright_memory::MemoryCloud;
/// use fleetwright_region::launch_config::LaunchConfigs;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let store = fleetwright_facade_testkit::memory_store();
/// # let planner = Arc::new(fleetwright_facade_testkit::NamePlanner::identity());
/// let cloud = Arc::new(MemoryCloud::new().provisioner());
/// let configs = LaunchConfigs::new(store, cloud, planner)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct LaunchConfigs {
    planner: Arc<dyn LaunchPlanner>,
    cloud: Arc<dyn InstanceProvisioner>,
    authorities: Table<SshAuthority>,
}

/// Why a server's machine cannot be launched in its region. The message says what the tenant or an operator has to change; it has no
/// user data and does not name the server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchRefusal {
    /// The region has no mapping for a part of the spec, or its parts do not fit.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The SSH certificate authority does not exist in the project.
    #[error(
        "there is no SSH certificate authority {0} in its project: choose an existing authority, or none"
    )]
    NoAuthority(SshAuthorityId),
    /// The record of the SSH certificate authority is damaged.
    #[error(
        "SSH certificate authority {0} cannot be read: ask an operator to repair its record, or choose another authority"
    )]
    UnreadableAuthority(SshAuthorityId),
    /// A newer version of this program wrote the flavor, the image or the authority, and this one does not understand it in full.
    #[error("a newer version of this program wrote what it is launched from: {reason}")]
    Newer {
        /// The record, what is not understood in it, and what to do.
        reason: String,
    },
    /// The user data cannot be opened.
    #[error(
        "the user data is sealed with key {key}, which does not open it: ask an operator to restore that key, or give other user data"
    )]
    Sealed {
        /// The id of the key.
        key: String,
    },
    /// The user data cannot be combined with what the system adds to it.
    #[error(transparent)]
    UserData(#[from] UserDataError),
    /// The config exceeds a limit of the region's provider.
    #[error("the provider of this region refuses it, with what this system adds")]
    Limit(#[from] InvalidValue),
}

impl LaunchRefusal {
    /// The field of the spec that has to change, if it is one.
    pub fn field(&self) -> Option<Field> {
        match self {
            Self::Plan(error) => field_of_plan(error),
            Self::NoAuthority(_) | Self::UnreadableAuthority(_) => Some(Field::SshAuthority),
            Self::UserData(_) | Self::Sealed { .. } => Some(Field::UserData),
            Self::Limit(invalid) => field_of_limit(invalid.field()),
            Self::Newer { .. } => None,
        }
    }

    /// The message with its sources, in one line.
    pub fn message(&self) -> String {
        let sources =
            std::iter::successors(Some(self as &dyn std::error::Error), |error| error.source());
        let messages: Vec<_> = sources.map(ToString::to_string).collect();
        messages.join(": ")
    }
}

fn field_of_plan(error: &PlanError) -> Option<Field> {
    match error {
        PlanError::NoFlavor { .. } | PlanError::DiskTooLarge { .. } => Some(Field::Flavor),
        PlanError::NoImage { .. }
        | PlanError::NotReady { .. }
        | PlanError::OtherRegion { .. }
        | PlanError::Incompatible { .. } => Some(Field::Image),
        PlanError::Unmapped { entry, .. } => Some(match entry {
            MappedEntry::Flavor(_) => Field::Flavor,
            MappedEntry::Image(_) => Field::Image,
            MappedEntry::Network(_) => Field::Network,
            MappedEntry::SecurityGroup(_) => Field::SecurityGroups,
        }),
        PlanError::Refused { .. } => None,
    }
}

/// Returns the field of the spec behind a field of the config.
fn field_of_limit(path: &str) -> Option<Field> {
    let known = [
        ("tags", Field::Tags),
        ("user data", Field::UserData),
        ("placement.security_groups", Field::SecurityGroups),
        ("placement.public_address", Field::PublicIp),
        ("placement.network", Field::Network),
        ("placement.zone", Field::Network),
    ];
    let found = known.iter().find(|(prefix, _)| path.starts_with(prefix));
    found.map(|(_, field)| *field)
}

impl LaunchConfigs {
    /// For the servers of one region: its planner and its provisioner, and the store of the SSH certificate authorities.
    ///
    /// # Errors
    ///
    /// The store's schema lacks [the region's kinds](crate::schema::add_kinds).
    pub fn new(
        store: Arc<dyn Store>,
        cloud: Arc<dyn InstanceProvisioner>,
        planner: Arc<dyn LaunchPlanner>,
    ) -> Result<Self, Invalid> {
        Ok(Self {
            planner,
            cloud,
            authorities: Table::new(store)?,
        })
    }

    /// Returns the complete config of a launch of a server's machine, or why there is none. No machine is launched without the
    /// authority that it should trust.
    ///
    /// # Errors
    ///
    /// The store fails.
    pub async fn complete(
        &self,
        server: &Server,
        incarnation: u64,
    ) -> Result<Result<InstanceConfig, LaunchRefusal>, StoreError> {
        if let Some(unopened) = &server.spec.sealed_user_data {
            let key = unopened.key.clone();
            return Ok(Err(LaunchRefusal::Sealed { key }));
        }
        if let Err(refusal) = self.prepare(server).await? {
            return Ok(Err(refusal));
        }
        let user_data = self.user_data(server).await?;
        Ok(user_data.and_then(|user_data| self.with_user_data(server, incarnation, user_data)))
    }

    /// Returns the config without user data: the native names of flavor and image for a machine that exists.
    pub(crate) async fn without_user_data(
        &self,
        server: &Server,
        incarnation: u64,
    ) -> Result<Result<InstanceConfig, LaunchRefusal>, StoreError> {
        let prepared = self.prepare(server).await?;
        Ok(prepared.and_then(|()| self.with_user_data(server, incarnation, None)))
    }

    /// Reads the flavor and the image of a server as they are now. Nothing is launched from an entry that is not understood in full; that is
    /// a refusal and no failure of the store, so that the machine can still be stopped and deleted.
    async fn prepare(&self, server: &Server) -> Result<Result<(), LaunchRefusal>, StoreError> {
        let spec = &server.spec;
        match self.planner.prepare(&spec.flavor, &spec.image).await {
            Ok(()) => Ok(Ok(())),
            Err(StoreError::Incompatible { reason }) => Ok(Err(LaunchRefusal::Newer { reason })),
            Err(error) => Err(error),
        }
    }

    fn with_user_data(
        &self,
        server: &Server,
        incarnation: u64,
        user_data: Option<UserData>,
    ) -> Result<InstanceConfig, LaunchRefusal> {
        let spec = &server.spec;
        let token: LaunchToken = server.token(incarnation);
        let spec = LaunchSpec {
            flavor: spec.flavor.clone(),
            image: spec.image.clone(),
            network: spec.network,
            security_groups: spec.security_groups.clone(),
            public_ip: spec.public_ip,
            user_data,
            tags: tags::of(server, incarnation),
            token: token.clone(),
        };
        let mut config = self.planner.plan(&spec)?;
        // The link between record and launch does not depend on the planner.
        config.launch_token = Some(token);
        for (key, value) in &spec.tags {
            config.tags.insert(key, value)?;
        }
        config.check(self.cloud.capabilities())?;
        Ok(config)
    }

    /// Returns the user data of a machine: the requested user data, and the config that lets in the server's key and the certificates of
    /// its authority.
    async fn user_data(
        &self,
        server: &Server,
    ) -> Result<Result<Option<UserData>, LaunchRefusal>, StoreError> {
        let mut managed = ManagedConfig::new(server.id.as_uuid());
        if let Some(key) = &server.public_key {
            managed = managed.with_public_key(key);
        }
        if let Some(id) = server.spec.ssh_authority {
            match self.authority(server, id).await? {
                Ok(found) => {
                    managed = managed
                        .with_authority(found.public_key.without_comment(), &found.id.to_string());
                }
                Err(refusal) => return Ok(Err(refusal)),
            }
        }
        let requested = server.spec.user_data.as_ref();
        let requested = requested.map_or(&[][..], UserData::as_bytes);
        // `UserData` refuses nothing but an empty text.
        let assembled = assemble(requested, &managed).map(|bytes| UserData::new(bytes).ok());
        Ok(assembled.map_err(LaunchRefusal::from))
    }

    /// Reads the authority that a server trusts. It never changes, and is not deleted while the server refers to it.
    async fn authority(
        &self,
        server: &Server,
        id: SshAuthorityId,
    ) -> Result<Result<SshAuthority, LaunchRefusal>, StoreError> {
        let found = match self.authorities.get(&Key::new(id.to_string())?).await {
            Ok(found) => found.map(|found| found.value),
            Err(StoreError::Corrupt { .. }) => {
                return Ok(Err(LaunchRefusal::UnreadableAuthority(id)));
            }
            Err(StoreError::Incompatible { reason }) => {
                return Ok(Err(LaunchRefusal::Newer { reason }));
            }
            Err(error) => return Err(error),
        };
        let tenant = (server.organization, server.project);
        let own =
            |found: &SshAuthority| (found.organization, found.project) == tenant && found.id == id;
        Ok(found.filter(own).ok_or(LaunchRefusal::NoAuthority(id)))
    }
}

impl fmt::Debug for LaunchConfigs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaunchConfigs").finish_non_exhaustive()
    }
}
