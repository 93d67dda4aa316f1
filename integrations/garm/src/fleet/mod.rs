//! What each command does with the instances of a controller.
//!
//! Owns who may be touched: an instance without the controller's tag is never stopped, started or terminated. A process makes one call and
//! may be killed at any point of it, so nothing is kept in it: what happened before is read from the cloud, by tags and by launch token.

mod create;
mod delete;
mod find;
mod polls;

use fleetwright::{InstanceId, InstanceInfo, InstanceProvisioner, ListItem};
use futures_util::StreamExt as _;

use crate::{
    answer::ProviderInstance,
    failure::Failure,
    identity::{Controller, InstanceName, Pool, key, name_of},
};

pub(crate) use create::NewInstance;
use polls::Polls;

/// What a command is about: an id of the cloud, or the name of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// An id.
    Id(InstanceId),
    /// A name.
    Name(InstanceName),
}

/// The instances of one controller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fleet<'a> {
    cloud: &'a dyn InstanceProvisioner,
    controller: &'a Controller,
}

impl<'a> Fleet<'a> {
    /// Opens the instances of `controller`.
    pub(crate) const fn new(
        cloud: &'a dyn InstanceProvisioner,
        controller: &'a Controller,
    ) -> Self {
        Self { cloud, controller }
    }

    /// Describes an instance.
    ///
    /// # Errors
    /// There is none, or it belongs to another controller.
    pub(crate) async fn describe(&self, target: &Target) -> Result<ProviderInstance, Failure> {
        let info = self.one(target).await?;
        ProviderInstance::of(&info).ok_or_else(|| Self::no_name(&info))
    }

    /// Lists the instances of a pool: all of them, or the call fails. Terminated ones are left out.
    ///
    /// # Errors
    /// The list cannot be read completely.
    pub(crate) async fn list(&self, pool: &Pool) -> Result<Vec<ProviderInstance>, Failure> {
        let filter = self.controller.filter()?;
        let filter = filter.with_tag(key::POOL, pool.as_str());
        let filter = filter.map_err(|invalid| Failure::new(invalid.to_string()))?;
        let infos = self.cloud.list_instances(&filter).await?;
        let described = infos.iter();
        Ok(described.filter_map(ProviderInstance::of).collect())
    }

    /// Stops an instance.
    ///
    /// # Errors
    /// There is none, it belongs to another controller, or it is ending.
    pub(crate) async fn stop(&self, target: &Target) -> Result<(), Failure> {
        let info = self.one(target).await?;
        Ok(self.cloud.stop_instance(&info.id).await?)
    }

    /// Starts an instance.
    ///
    /// # Errors
    /// There is none, it belongs to another controller, or it is ending.
    pub(crate) async fn start(&self, target: &Target) -> Result<(), Failure> {
        let info = self.one(target).await?;
        self.cloud.start_instance(&info.id).await?;
        Ok(())
    }

    /// Reads all instances of the controller that are not terminated, and whether that is all of them.
    async fn owned(&self) -> Result<(Vec<InstanceInfo>, Option<Failure>), Failure> {
        let filter = self.controller.filter()?;
        let mut items = self.cloud.stream_instances(&filter);
        let (mut owned, mut gap) = (Vec::new(), None);
        while let Some(item) = items.next().await {
            match item? {
                ListItem::Instance(info) if self.controller.owns(&info) => owned.push(*info),
                ListItem::Instance(_) => {}
                ListItem::Gap { scope, error } => {
                    gap.get_or_insert(Failure::new(format!("{scope} could not be read: {error}")));
                }
            }
        }
        Ok((owned, gap))
    }

    /// Finds the only instance of a target. Reads are repeated for the usual lag before it counts as absent.
    async fn one(&self, target: &Target) -> Result<InstanceInfo, Failure> {
        let mut polls = Polls::new(self.cloud, self.cloud.capabilities().usual_lag());
        loop {
            let (mut found, gap) = match target {
                Target::Id(id) => self.with_id(id).await?,
                Target::Name(name) => (self.with_name(name).await?, None),
            };
            found.retain(|info| !info.state.is_final());
            match (found.len(), gap) {
                (0, Some(gap)) => return Err(gap),
                (0, None) => {
                    if !polls.next().await {
                        if let Target::Id(id) = target {
                            self.refuse_foreign(id).await?;
                        }
                        return Err(Failure::not_found(format!(
                            "controller {} has no instance {}",
                            self.controller,
                            target.as_str()
                        )));
                    }
                }
                (1, _) => return Ok(found.remove(0)),
                (_, _) => return Err(Self::several(target.as_str(), &found)),
            }
        }
    }

    fn several(name: &str, found: &[InstanceInfo]) -> Failure {
        let ids: Vec<_> = found.iter().map(|info| info.id.as_str()).collect();
        Failure::duplicate(format!(
            "{} instances have the name {name}: {}; delete the instance by its name, which deletes all of them",
            ids.len(),
            ids.join(", ")
        ))
    }

    fn no_name(info: &InstanceInfo) -> Failure {
        let what = format!(
            "instance {} has no tag {}, which GARM needs",
            info.id,
            key::NAME
        );
        Failure::new(what)
    }
}

impl Target {
    /// Returns the id or the name.
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Id(id) => id.as_str(),
            Self::Name(name) => name.as_str(),
        }
    }

    /// Returns whether an instance has this id, or this name: a name may look like an id.
    fn is(&self, info: &InstanceInfo) -> bool {
        match self {
            Self::Id(id) => info.id == *id || name_of(info) == Some(id.as_str()),
            Self::Name(name) => name_of(info) == Some(name.as_str()),
        }
    }
}
