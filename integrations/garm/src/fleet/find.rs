//! Finds the instances of a name or an id.

use std::num::NonZeroU32;

use fleetwright::{InstanceFilter, InstanceId, InstanceInfo, LaunchRecord};

use super::{Fleet, Target};
use crate::{
    failure::Failure,
    identity::{InstanceName, key},
};

/// How many creations of one name are looked up. GARM repeats a creation five times.
pub(super) const MAX_ATTEMPTS: u32 = 200;

impl Fleet<'_> {
    /// Finds what a name has, by its tags and by its launch tokens: a launch shows by its token before a list shows it. Instances that are
    /// terminating are included, terminated ones are not.
    pub(super) async fn with_name(
        &self,
        name: &InstanceName,
    ) -> Result<Vec<InstanceInfo>, Failure> {
        let mut found = self.launched_as(name).await?;
        let filter = self.controller.filter()?;
        let filter = filter.with_tag(key::NAME, name.as_str());
        let filter = filter.map_err(|invalid| Failure::new(invalid.to_string()))?;
        match self.cloud.list_instances(&filter).await {
            Ok(listed) => {
                for info in listed {
                    if self.controller.owns(&info) && found.iter().all(|other| other.id != info.id)
                    {
                        found.push(info);
                    }
                }
            }
            // What the token has launched is known, whatever another zone does.
            Err(_) if found.iter().any(|info| !info.state.is_ending()) => {}
            Err(error) => return Err(error.into()),
        }
        found.retain(|info| !info.state.is_final());
        Ok(found)
    }

    /// Looks the launches of a name up by their tokens, one attempt after the other.
    async fn launched_as(&self, name: &InstanceName) -> Result<Vec<InstanceInfo>, Failure> {
        let token = self.controller.token(name);
        let mut found = Vec::new();
        for number in 1..=MAX_ATTEMPTS {
            let attempt = NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
            match self.cloud.find_launch(&token.attempt(attempt)).await? {
                LaunchRecord::NotFound => break,
                LaunchRecord::Found(infos) | LaunchRecord::Terminated(infos) => {
                    for info in infos {
                        self.refuse_other_owner(&info)?;
                        found.push(info);
                    }
                }
            }
            if !self.has_attempts() {
                break;
            }
        }
        Ok(found)
    }

    /// Returns whether a name can have several launches: the cloud remembers a token after its instance has ended.
    pub(super) fn has_attempts(&self) -> bool {
        !self.cloud.capabilities().token_after_terminate.is_zero()
    }

    /// Finds the instance of an id in the list of the controller's instances. The second value says why the list is not complete.
    pub(super) async fn with_id(
        &self,
        id: &InstanceId,
    ) -> Result<(Vec<InstanceInfo>, Option<Failure>), Failure> {
        let (mut owned, gap) = self.owned().await?;
        let target = Target::Id(id.clone());
        owned.retain(|info| target.is(info));
        Ok((owned, gap))
    }

    /// Fails if an instance with this id exists and belongs to somebody else.
    pub(super) async fn refuse_foreign(&self, id: &InstanceId) -> Result<(), Failure> {
        let all = self.cloud.list_instances(&InstanceFilter::new()).await?;
        let found = all.iter().find(|info| info.id == *id);
        found.map_or(Ok(()), |info| self.refuse_other_owner(info))
    }

    /// Fails if an instance belongs to somebody else.
    pub(super) fn refuse_other_owner(&self, info: &InstanceInfo) -> Result<(), Failure> {
        // A cloud that forgets tags with the instance shows none of a terminated one.
        if self.controller.owns(info) || info.state.is_final() {
            return Ok(());
        }
        let owner = match info.tags.get(key::CONTROLLER) {
            Some(other) => format!("belongs to controller {other}"),
            None => format!("has no tag {}", key::CONTROLLER),
        };
        Err(Failure::new(format!(
            "instance {} {owner}, not to controller {}: it is left alone; correct the provider's config, or the instance's tags",
            info.id, self.controller
        )))
    }
}
