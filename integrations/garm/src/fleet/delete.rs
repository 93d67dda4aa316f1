//! Deletes instances by name and by id, and all of a controller.
//!
//! Owns when "there is none" is proven. A process that was killed while it launched may have left an instance that no read shows yet, so
//! absence counts only after reads have shown nothing for the whole consistency window. A termination that the cloud refuses with "not found"
//! proves nothing about an instance that a read shows: a change may not find a new instance that reads show already, so it is repeated.

use std::collections::BTreeSet;

use fleetwright::{CloudInstanceState, ErrorKind, InstanceId, InstanceInfo};

use super::{Fleet, Polls, Target};
use crate::{failure::Failure, identity::InstanceName};

impl Fleet<'_> {
    /// Deletes an instance. Succeeds if there is none.
    ///
    /// # Errors
    /// It belongs to another controller, cannot be deleted, or its absence cannot be proven.
    pub(crate) async fn delete(&self, target: &Target) -> Result<(), Failure> {
        match target {
            Target::Name(name) => self.delete_name(name).await,
            Target::Id(id) => self.delete_id(id).await,
        }
    }

    /// Deletes every instance of the controller, and returns when there has been none for the consistency window.
    ///
    /// # Errors
    /// The list is not complete, or an instance cannot be deleted. The others are deleted all the same.
    pub(crate) async fn delete_all(&self) -> Result<(), Failure> {
        let window = self.cloud.capabilities().consistency_window;
        let mut polls = Polls::new(self.cloud, window);
        let mut done = BTreeSet::new();
        loop {
            let (owned, gap) = self.owned().await?;
            let open = owned.iter().map(|info| info.id.clone());
            let open: Vec<_> = open.filter(|id| !done.contains(id)).collect();
            let results = self.cloud.terminate_instances(&open).await;
            let (mut failed, mut not_found, mut accepted) = (Vec::new(), None, Vec::new());
            for (id, result) in open.iter().zip(results) {
                match result {
                    Ok(()) => accepted.push(id.clone()),
                    Err(error) if error.kind() == ErrorKind::NotFound => {
                        let ends = |info: &InstanceInfo| info.id == *id && info.state.is_ending();
                        if !owned.iter().any(ends) {
                            not_found = Some(id.clone());
                        }
                    }
                    Err(error) => failed.push(format!("{id}: {error}")),
                }
            }
            if !failed.is_empty() {
                let (failed, count) = (failed.join("; "), failed.len());
                return Err(Failure::new(format!(
                    "{count} of {} instances could not be deleted: {failed}",
                    open.len()
                )));
            }
            if let Some(gap) = gap {
                return Err(gap.during("the list of instances is not complete"));
            }
            if !accepted.is_empty() {
                polls.restart(window);
            }
            done.extend(accepted);
            if !polls.next().await {
                return not_found.map_or(Ok(()), |id| Err(Self::shown_but_not_found(&id)));
            }
        }
    }

    async fn delete_name(&self, name: &InstanceName) -> Result<(), Failure> {
        let capabilities = self.cloud.capabilities();
        // Enough for a launch that nobody knows to show.
        let mut polls = Polls::new(self.cloud, capabilities.consistency_window);
        let mut done = BTreeSet::new();
        loop {
            let found = self.with_name(name).await?;
            let open = found.into_iter().filter(|info| !done.contains(&info.id));
            let mut not_found = None;
            for info in open.collect::<Vec<_>>() {
                if !self.terminate(&info).await? {
                    not_found = Some(info.id);
                    continue;
                }
                let was_live = !info.state.is_ending();
                done.insert(info.id);
                if was_live {
                    // The launch that was looked for. A read may be so old that it shows the one before.
                    polls.restart(capabilities.usual_lag());
                }
            }
            if !polls.next().await {
                return not_found.map_or(Ok(()), |id| Err(Self::shown_but_not_found(&id)));
            }
        }
    }

    async fn delete_id(&self, id: &InstanceId) -> Result<(), Failure> {
        let mut polls = Polls::new(self.cloud, self.cloud.capabilities().consistency_window);
        loop {
            let (found, gap) = self.with_id(id).await?;
            if !found.is_empty() {
                let mut is_accepted = true;
                for info in &found {
                    is_accepted &= self.terminate(info).await?;
                }
                if is_accepted {
                    return Ok(());
                }
                if !polls.next().await {
                    return Err(Self::shown_but_not_found(id));
                }
                continue;
            }
            let described = self.cloud.describe_instance(id).await;
            let exists = match described {
                Ok(status) if status.state == CloudInstanceState::Terminated => return Ok(()),
                Ok(_) => true,
                Err(error) if error.kind() == ErrorKind::NotFound => false,
                Err(error) => return Err(error.into()),
            };
            if exists {
                self.refuse_foreign(id).await?;
            }
            if !polls.next().await {
                return match gap {
                    // The cloud itself says that the id does not exist.
                    _ if !exists => Ok(()),
                    Some(gap) => Err(gap),
                    None => Err(Failure::new(format!(
                        "instance {id} exists, and no list shows it as one of controller {}: it is left alone",
                        self.controller
                    ))),
                };
            }
        }
    }

    /// Terminates an instance that a read has shown. Returns whether it is ending now; `false` means that the cloud does not find it, which may
    /// be as wrong as a stale read.
    async fn terminate(&self, info: &InstanceInfo) -> Result<bool, Failure> {
        self.refuse_other_owner(info)?;
        match self.cloud.terminate_instance(&info.id).await {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(info.state.is_ending()),
            Err(error) => Err(error.into()),
        }
    }

    fn shown_but_not_found(id: &InstanceId) -> Failure {
        Failure::new(format!(
            "reads show instance {id}, and its termination was refused as not found for as long as reads may be stale: delete it again"
        ))
    }
}
