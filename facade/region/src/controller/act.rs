//! Carrying out a step: at most one call of the cloud, with what must be stored before it and after it.
//!
//! Whatever is dropped or dies between two calls leaves a record from which the next pass goes on: see the
//! [module](super)'s table.

use std::time::Duration;

use chrono::{DateTime, Utc};
use fleetwright::{ErrorKind, OptionalVerb, ProvisionError};
use fleetwright_store::{StoreError, Transaction, Versioned};
use metrics::counter;

use super::{Controller, GiveUp, Step, edit, tags};
use crate::{
    clock::later,
    mutant::Mutant,
    server::{Act, Server, Why},
};

/// When a server is to be looked at again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// At once.
    Again,
    /// Then, or when its record changes.
    At(DateTime<Utc>),
    /// When its record changes.
    Idle,
}

pub(super) type Answer = Result<Next, StoreError>;
pub(super) type Read = Versioned<Server>;

impl Controller {
    /// Carries out a step that was decided on this very record.
    pub(super) async fn act(&self, read: Read, step: Step) -> Answer {
        match step {
            Step::Begin(why) => self.begin(read, why).await,
            Step::Resend => self.resend(read).await,
            Step::Settle => self.settle(read).await,
            Step::Terminate(why) => self.terminate(read, why).await,
            Step::Forget => self.forget(read).await,
            Step::GiveUp(why) => self.give_up(read, why).await,
            Step::Wait(_, until) => Ok(until.map_or(Next::Idle, Next::At)),
            Step::Done => self.done(read).await,
            Step::Start => self.change(read, Act::Start).await,
            Step::Stop => self.change(read, Act::Stop).await,
            Step::Reboot(_) => self.change(read, Act::Reboot).await,
            Step::Resize => self.change(read, Act::Resize).await,
            Step::Reimage => self.change(read, Act::Reimage).await,
            Step::Retag => self.change(read, Act::Retag).await,
        }
    }

    async fn terminate(&self, mut read: Read, why: Why) -> Answer {
        let Some(machine) = read.value.instance.clone() else {
            return Ok(Next::Again);
        };
        let answer = self.cloud.terminate_instance(&machine.id).await;
        let now = self.clock.now();
        if why == Why::Delete && self.rules.chosen.is(Mutant::ForgetEarly) {
            return self.forget(read).await;
        }
        match answer {
            Ok(()) => edit::ending(&mut read.value, why, now),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let window = self.cloud.capabilities().consistency_window;
                let shown_by = later(machine.recorded_at, window);
                if now <= shown_by {
                    return Ok(Next::At(later(shown_by, super::TURN)));
                }
                edit::ending(&mut read.value, why, now);
            }
            Err(error) => self.failed(&mut read.value, &error, now),
        }
        self.commit(read, Next::Again).await
    }

    /// Changes the machine in place, and writes down that the cloud accepted it.
    async fn change(&self, mut read: Read, act: Act) -> Answer {
        let Some(machine) = read.value.instance.clone() else {
            return Ok(Next::Again);
        };
        let (id, wanted) = (&machine.id, read.value.spec.clone());
        let answer = match act {
            Act::Start => self.cloud.start_instance(id).await.map(drop),
            Act::Stop => self.cloud.stop_instance(id).await,
            Act::Reboot => {
                if !self.supports(OptionalVerb::RebootInstance) {
                    edit::cannot_reboot(&mut read.value, self.clock.now());
                    return self.commit(read, Next::Again).await;
                }
                let how = read.value.intent.reboot_how;
                self.cloud.reboot_instance(id, how).await
            }
            Act::Resize | Act::Reimage => {
                let token = read.value.id.token(machine.incarnation);
                let config = match self.config_of(&read.value, machine.incarnation, token) {
                    Ok(config) => config,
                    Err(refusal) => {
                        let now = self.clock.now();
                        let message = format!("cannot be changed: {refusal}");
                        edit::refused(&mut read.value, self.refusal_ends(now), now, message);
                        return self.commit(read, Next::Idle).await;
                    }
                };
                if act == Act::Resize {
                    let to = &config.instance_type;
                    self.cloud.resize_instance(id, to).await
                } else {
                    self.cloud.reimage_instance(id, &config.image).await
                }
            }
            Act::Retag => {
                let change = tags::change(&read.value, &machine);
                self.cloud.update_tags(id, &change).await
            }
        };
        let now = self.clock.now();
        match answer {
            Ok(()) => edit::changed(&mut read.value, act, &wanted, now),
            Err(error) => self.failed(&mut read.value, &error, now),
        }
        self.commit(read, Next::Again).await
    }

    async fn forget(&self, read: Read) -> Answer {
        let transaction = self.servers.remove(Transaction::new(), &read);
        self.store.commit(&transaction).await?;
        counter!("fleetwright_region_servers_forgotten_total", "region" => self.label())
            .increment(1);
        Ok(Next::Idle)
    }

    async fn give_up(&self, mut read: Read, why: GiveUp) -> Answer {
        let before = read.value.clone();
        edit::given_up(
            &mut read.value,
            why,
            self.rules.max_attempts,
            self.clock.now(),
        );
        if read.value == before {
            return Ok(Next::Idle);
        }
        self.commit(read, Next::Idle).await
    }

    async fn done(&self, mut read: Read) -> Answer {
        let before = read.value.clone();
        let verbs = &self.cloud.capabilities().verbs;
        edit::done(&mut read.value, verbs, self.clock.now());
        if read.value == before {
            return Ok(Next::Idle);
        }
        self.commit(read, Next::Idle).await
    }

    /// Writes down that a call failed, why, and when the next one may be made.
    pub(super) fn failed(&self, server: &mut Server, error: &ProvisionError, now: DateTime<Utc>) {
        let failures = server.retry.as_ref().map_or(0, |retry| retry.failures);
        let failures = failures.saturating_add(1);
        let own = if edit::is_refusal(error.kind()) {
            self.rules.refused_backoff
        } else {
            self.rules.backoff(server.id, failures)
        };
        let asked = error.retry().delay().unwrap_or_default();
        let delay = if self.rules.chosen.is(Mutant::BackoffIgnored) {
            Duration::ZERO
        } else {
            own.max(asked)
        };
        edit::failed(server, error, failures, later(now, delay), now);
        let labels = [
            ("region", self.label()),
            ("operation", error.operation().to_string()),
            ("kind", error.kind().as_str().to_owned()),
        ];
        counter!("fleetwright_region_call_failures_total", &labels).increment(1);
    }

    /// When it is worth asking again for what was refused in words.
    pub(super) fn refusal_ends(&self, now: DateTime<Utc>) -> DateTime<Utc> {
        later(now, self.rules.refused_backoff)
    }

    fn supports(&self, verb: OptionalVerb) -> bool {
        self.cloud.capabilities().supports(verb)
    }

    /// Replaces the record as it was read, and answers what comes next.
    pub(super) async fn commit(&self, read: Read, next: Next) -> Answer {
        self.written(read).await.map(|_| next)
    }

    /// Replaces the record as it was read, and answers it as it is now.
    pub(super) async fn written(&self, read: Read) -> Result<Read, StoreError> {
        let transaction = self
            .servers
            .replace(Transaction::new(), &read, &read.value)?;
        let revision = self.store.commit(&transaction).await?;
        Ok(Versioned { revision, ..read })
    }
}
