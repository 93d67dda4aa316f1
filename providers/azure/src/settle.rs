//! Settling a launch: how its creations end while it waits, and what it returns.
//!
//! Owns the wait of a launch for late failures: few creations are polled one by one, many by lists
//! of states. A creation that fails in this time is deleted before the launch returns.
//!
//! Outcomes of a creation, and the result of its instance:
//!
//! | outcome | result |
//! | --- | --- |
//! | succeeded, or still running after `launch_wait` | the instance, pending |
//! | failed, and the machine was deleted | the failure, without effect |
//! | failed, and the machine could not be deleted in time | the failure, with unknown effect |
//! | failed, but the machine has power | the instance: only its guest did not report |
//! | replaced by a later operation, such as a stop | the instance |

use std::time::Duration;

use fleetwright::{Effect, InstanceInfo, Result};
use fleetwright_provider_support::{
    launch::{Attempt, LaunchOutcome},
    poll::{deadline_after, poll_delays, sleep_before},
};
use futures_util::{StreamExt as _, future::join_all, stream};
use tokio::time::{Instant, timeout_at};

use crate::{
    error::AzureFailure as _,
    launch::{AzureLaunch, Creation},
    lookup::FEW,
    lro::{self, Outcome},
    machine::{Interface, Machine},
    removal::{Removal, creation_outcome, status_of},
};

/// An attempt of this cloud.
type MachineAttempt = Attempt<Machine, Creation>;

impl AzureLaunch<'_> {
    /// Waits for creations to fail, and returns what became of each attempt.
    pub(crate) async fn settle_attempts(&self, attempts: Vec<MachineAttempt>) -> LaunchOutcome {
        let outcomes = self.await_creations(&attempts).await;
        let (interfaces, unread) = self.read_interfaces(&attempts).await;
        // One deadline for all. The cleanup continues with what cannot be deleted until then.
        let deadline = deadline_after(self.azure.options.call_timeout);
        let results: Vec<_> = attempts
            .iter()
            .zip(outcomes.into_iter().zip(interfaces))
            .map(|(attempt, (outcome, interface))| async move {
                match attempt {
                    Attempt::Existing { instance, .. } => {
                        let call = self.context.call;
                        self.azure.info(call, instance, interface.as_ref())
                    }
                    Attempt::Accepted { creation, .. } => {
                        self.settle_creation(&creation.machine, outcome, deadline)
                            .await
                    }
                }
            })
            .collect();
        let results = stream::iter(results).buffered(self.context.concurrency);
        let mut outcome: LaunchOutcome = results.collect::<Vec<_>>().await.into_iter().collect();
        if let (true, Some(error)) = (outcome.is_ok(), unread) {
            outcome.add_error(error);
        }
        outcome
    }

    /// Reads the interfaces of the machines that existed before: one entry per attempt.
    async fn read_interfaces(
        &self,
        attempts: &[MachineAttempt],
    ) -> (Vec<Option<Interface>>, Option<fleetwright::ProvisionError>) {
        let existing = attempts.iter().filter_map(|attempt| match attempt {
            Attempt::Existing { instance, .. } => Some(instance),
            Attempt::Accepted { .. } => None,
        });
        let existing: Vec<_> = existing.collect();
        let read = self.azure.interfaces(self.context.call, &existing).await;
        let (read, unread) = match read {
            Ok(read) => (read, None),
            Err(error) => (Vec::new(), Some(error.with_effect(Effect::Done))),
        };
        let mut read = read.into_iter();
        let interfaces = attempts.iter().map(|attempt| match attempt {
            Attempt::Existing { .. } => read.next().flatten(),
            Attempt::Accepted { .. } => None,
        });
        (interfaces.collect(), unread)
    }

    /// Returns the instance of a creation, or deletes its remains until `deadline` and returns why
    /// it failed.
    async fn settle_creation(
        &self,
        machine: &Machine,
        outcome: Outcome,
        deadline: Instant,
    ) -> Result<InstanceInfo> {
        match outcome {
            Outcome::Failed(failure) if !failure.is_overtaken() => {
                let removal = self.azure.remove_failed(machine, &failure, deadline).await;
                let effect = match removal {
                    Removal::Gone | Removal::Deleting => Some(Effect::None),
                    Removal::Running => None,
                    Removal::Unfinished { .. } => Some(Effect::Unknown),
                };
                if let Some(effect) = effect {
                    return Err(self.launch_error(*failure).with_effect(effect));
                }
            }
            Outcome::Succeeded | Outcome::Failed(_) => self.azure.cleanup.untrack(machine),
            Outcome::Unknown => {}
        }
        let mut info = self.azure.info(self.context.call, machine, None)?;
        info.placement = self.config.placement.clone();
        info.placement.zone.clone_from(&self.plan.zone);
        Ok(info)
    }

    /// Waits until all creations have ended, for `launch_wait` at most.
    async fn await_creations(&self, attempts: &[MachineAttempt]) -> Vec<Outcome> {
        let accepted = attempts
            .iter()
            .filter(|attempt| matches!(attempt, Attempt::Accepted { .. }));
        if accepted.count() > FEW {
            return self.await_by_lists(attempts).await;
        }
        let options = &self.azure.options;
        let outcomes = attempts.iter().map(|attempt| async move {
            match attempt {
                Attempt::Existing { .. } => Outcome::Succeeded,
                Attempt::Accepted { creation, .. } => {
                    let (interval, timeout) = (options.poll_interval, options.launch_wait);
                    lro::await_operation(&self.azure.client, &creation.operation, interval, timeout)
                        .await
                }
            }
        });
        join_all(outcomes).await
    }

    /// Reads lists of states until every outcome is known, for `launch_wait` at most. Respects
    /// retry delays.
    async fn await_by_lists(&self, attempts: &[MachineAttempt]) -> Vec<Outcome> {
        let interval = self.azure.options.poll_interval;
        let names: Vec<_> = attempts
            .iter()
            .filter_map(|attempt| match attempt {
                Attempt::Existing { .. } => None,
                Attempt::Accepted { creation, .. } => Some(creation.machine.name.clone()),
            })
            .collect();
        let read = || {
            self.azure
                .client
                .statuses_of(&names, self.azure.concurrency())
        };
        let mut outcomes: Vec<_> = attempts.iter().map(|_| Outcome::Unknown).collect();
        let deadline = deadline_after(self.azure.options.launch_wait);
        let mut retry_after = Duration::ZERO;
        for delay in poll_delays(interval) {
            if !sleep_before(deadline, delay, retry_after).await {
                break;
            }
            match timeout_at(deadline + interval, read()).await {
                Ok(Ok(statuses)) => {
                    retry_after = Duration::ZERO;
                    for (attempt, outcome) in attempts.iter().zip(&mut outcomes) {
                        let (Attempt::Accepted { creation, .. }, Outcome::Unknown) =
                            (attempt, &*outcome)
                        else {
                            continue;
                        };
                        if let Some(status) = status_of(&creation.machine, &statuses) {
                            *outcome = creation_outcome(status);
                        }
                    }
                    if is_settled(attempts, &outcomes) {
                        break;
                    }
                }
                Ok(Err(failure)) => retry_after = failure.retry_after.unwrap_or_default(),
                Err(_) => break,
            }
        }
        outcomes
    }
}

/// Whether the outcome of every creation is known.
fn is_settled(attempts: &[MachineAttempt], outcomes: &[Outcome]) -> bool {
    attempts.iter().zip(outcomes).all(|pair| match pair {
        (Attempt::Existing { .. }, _) => true,
        (Attempt::Accepted { .. }, outcome) => !matches!(outcome, Outcome::Unknown),
    })
}
