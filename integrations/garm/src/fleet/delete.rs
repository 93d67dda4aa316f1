//! Deletes instances by name and by id, and all of a controller.
//!
//! Owns when "there is none" is proven. A process that was killed while it launched may have left an instance that no read shows yet, so
//! absence counts only after reads have shown nothing for the whole consistency window.

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
            let failed = open
                .iter()
                .zip(results)
                .filter_map(|(id, result)| match result {
                    Err(error) if error.kind() != ErrorKind::NotFound => {
                        Some(format!("{id}: {error}"))
                    }
                    Ok(()) | Err(_) => None,
                });
            let failed: Vec<_> = failed.collect();
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
            if !open.is_empty() {
                polls.restart(window);
            }
            done.extend(open);
            if !polls.next().await {
                return Ok(());
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
            for info in open.collect::<Vec<_>>() {
                self.terminate(&info).await?;
                let was_live = !info.state.is_ending();
                done.insert(info.id);
                if was_live {
                    // The launch that was looked for. A read may be so old that it shows the one before.
                    polls.restart(capabilities.usual_lag());
                }
            }
            if !polls.next().await {
                return Ok(());
            }
        }
    }

    async fn delete_id(&self, id: &InstanceId) -> Result<(), Failure> {
        let mut polls = Polls::new(self.cloud, self.cloud.capabilities().consistency_window);
        loop {
            let (found, gap) = self.with_id(id).await?;
            if !found.is_empty() {
                for info in &found {
                    self.terminate(info).await?;
                }
                return Ok(());
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

    async fn terminate(&self, info: &InstanceInfo) -> Result<(), Failure> {
        self.refuse_other_owner(info)?;
        match self.cloud.terminate_instance(&info.id).await {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}
