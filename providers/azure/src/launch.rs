//! Launching: what a token has launched already, and what is launched anew.
//!
//! Owns the order in which a batch is launched. Its first machine goes alone: it carries what was asked for,
//! so that one look at it tells whether the token is used, and for what.

use std::{collections::BTreeMap, num::NonZeroU32, time::Duration};

use fleetwright::{
    Call, Effect, InstanceConfig, InstanceInfo, LaunchRecord, LaunchToken, ProvisionError, Result,
    RetryAdvice, Scope, read_until,
};
use futures_util::{StreamExt as _, TryStreamExt as _, future::BoxFuture, stream};
use tokio::time::{Instant, sleep, timeout_at};

use crate::{
    AzureProvisioner, address,
    error::{About, Failure},
    lro::{self, Outcome},
    machine::{Begun, Machine},
    plan::Plan,
    read::FEW,
    removal::{Removal, creation_outcome, status_of},
    state, tags,
};

/// One of a launch.
#[derive(Debug)]
enum Item {
    /// It was there already.
    Known(Box<Machine>),
    /// It was accepted.
    Sent(Box<Machine>, Begun),
}

/// What a token launched before, by name.
type Known = BTreeMap<String, Machine>;

impl AzureProvisioner {
    pub(crate) async fn launched(
        &self,
        call: &Call,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        let refused = |value| call.invalid(value);
        config.check(&self.capabilities).map_err(refused)?;
        let plan = Plan::new(&self.launch, config, count).map_err(refused)?;
        let (names, known) = match &config.launch_token {
            Some(token) => {
                let known = self.compared(call, token, &plan, count).await?;
                let names = (0..count.get()).map(|item| address::name_of(token, item));
                (names.collect::<Vec<_>>(), known)
            }
            None => {
                let names = (0..count.get()).map(|_| address::random_name());
                (names.collect(), Known::new())
            }
        };
        let (first, others) = names.split_at(1);
        let mut items = Vec::with_capacity(names.len());
        for name in first {
            items.push(self.begun(call, config, &plan, name, &known).await?);
        }
        let mut failed = None;
        let each: Vec<_> = others
            .iter()
            .map(|name| self.begun(call, config, &plan, name, &known))
            .collect();
        let mut each = stream::iter(each).buffered(self.width());
        while let Some(item) = each.next().await {
            match item {
                Ok(item) => items.push(item),
                Err(error) => failed = Some(graver(failed, error)),
            }
        }
        drop(each);
        let (launched, late) = self.settled(call, config, &plan, items).await;
        if let Some(error) = late {
            failed = Some(graver(failed, error));
        }
        let window = self.capabilities.consistency_window;
        self.fresh.record(&launched, window);
        if let Some(error) = failed {
            return Err(if launched.is_empty() {
                error
            } else {
                error.with_survivors(launched)
            });
        }
        if let Some(token) = &config.launch_token {
            self.used.record(token, plan.fingerprint, window);
        }
        Ok(launched)
    }

    /// What a token launched before, if it was with the same config and something of it lives.
    async fn compared(
        &self,
        call: &Call,
        token: &LaunchToken,
        plan: &Plan,
        count: NonZeroU32,
    ) -> Result<Known> {
        let window = self.capabilities.consistency_window;
        let used = self.used.fingerprint(token, window);
        if used.is_some_and(|config| config != plan.fingerprint) {
            return Err(call.token_conflict(token));
        }
        let unread = |failure: Failure| {
            let error = failure.into_error(call, About::default());
            error.with_effect(Effect::None)
        };
        let first = address::name_of(token, 0);
        let mut known = Known::new();
        match self.client.get(&first).await {
            Ok(machine) => {
                self.same(call, plan, &machine, token)?;
                known.insert(first, machine);
            }
            Err(failure) if failure.is_not_found() => {}
            Err(failure) => return Err(unread(failure)),
        }
        if count > NonZeroU32::MIN {
            for machine in self.named(token).await.map_err(unread)? {
                self.same(call, plan, &machine, token)?;
                known.insert(machine.name.clone(), machine);
            }
        }
        let spent = known.values().all(|machine| self.is_ending(machine));
        if !known.is_empty() && spent {
            return Err(self.ending(call, token, known.values()));
        }
        self.cleared(call, known).await
    }

    /// Why a token whose machines are going launches nothing: it is spent, or what failed of it is not gone yet.
    fn ending<'m>(
        &self,
        call: &Call,
        token: &LaunchToken,
        mut machines: impl Iterator<Item = &'m Machine>,
    ) -> ProvisionError {
        if machines.all(|machine| self.deletions.reason(&machine.vm_id).is_some()) {
            return self.left(call);
        }
        call.token_spent(token)
    }

    /// The refusal of a launch whose name is still taken by what is left of the one before.
    fn left(&self, call: &Call) -> ProvisionError {
        let message = "what is left of a launch that failed is being removed";
        call.conflict(message, RetryAdvice::After(self.capabilities.poll_interval))
    }

    /// Removes what was never made of an earlier launch: it left its token free.
    async fn cleared(&self, call: &Call, known: Known) -> Result<Known> {
        let each: Vec<_> = known
            .into_iter()
            .map(|(name, machine)| async move {
                let now = if state::never_made(&machine) {
                    self.cleared_one(call, &machine).await?
                } else {
                    Some(machine)
                };
                Ok(now.map(|now| (name, now)))
            })
            .collect();
        let cleared = stream::iter(each).buffered(self.width());
        let cleared: Vec<Option<(String, Machine)>> = cleared.try_collect().await?;
        Ok(cleared.into_iter().flatten().collect())
    }

    /// Removes what seems never to have been made; answers it if it was made all the same.
    async fn cleared_one(&self, call: &Call, machine: &Machine) -> Result<Option<Machine>> {
        let now = self.reread(call, machine).await;
        let now = now.map_err(|error| error.with_effect(Effect::None))?;
        match now.filter(|now| now.vm_id == machine.vm_id) {
            // Somebody else removes it; as it was never made, its token is not spent.
            Some(now) if self.is_ending(&now) => Err(self.left(call)),
            Some(now) if state::never_made(&now) => {
                self.free_name(&now).await;
                Ok(None)
            }
            now => Ok(now),
        }
    }

    /// Whether a machine with a token's name is that token's, and was launched by the same config.
    fn same(&self, call: &Call, plan: &Plan, machine: &Machine, token: &LaunchToken) -> Result<()> {
        if tags::value(&machine.tags, tags::OWNER) != plan.owner.as_deref() {
            let name = &machine.name;
            let message = format!("the name {name} is taken by a machine of somebody else");
            let error = call.conflict(&message, RetryAdvice::Never);
            return Err(match self.address_of(machine).id() {
                Some(id) => error.with_scope(Scope::Instance(id)),
                None => error,
            });
        }
        let config = tags::config_of(&machine.tags).map(|(config, _)| config);
        if config != Some(plan.fingerprint) {
            return Err(call.token_conflict(token));
        }
        Ok(())
    }

    /// Every machine that has a name of a token's, with how it is.
    async fn named(&self, token: &LaunchToken) -> std::result::Result<Vec<Machine>, Failure> {
        let stem = address::stem_of(token);
        let item = |name: &str| {
            name.strip_prefix(&stem)
                .is_some_and(|item| item.parse::<u32>().is_ok())
        };
        let mut all = self.everything().await?;
        all.retain(|machine| item(&machine.name));
        Ok(all)
    }

    /// What a token launched, as far as it is shown.
    pub(crate) async fn found(&self, call: &Call, token: &LaunchToken) -> Result<LaunchRecord> {
        let told = |failure: Failure| failure.into_error(call, About::default());
        let owner = tags::owner(token);
        let ours = |machine: &Machine| tags::value(&machine.tags, tags::OWNER) == Some(&*owner);
        let alone = |machine: &Machine| {
            let config = tags::config_of(&machine.tags);
            config.is_some_and(|(_, count)| count == 1)
        };
        let first = self.client.get(&address::name_of(token, 0)).await;
        let all = match first {
            Ok(machine) if ours(&machine) && alone(&machine) => vec![machine],
            Err(failure) if !failure.is_not_found() => return Err(told(failure)),
            Ok(_) | Err(_) => {
                let mut all = self.named(token).await.map_err(told)?;
                all.retain(ours);
                all
            }
        };
        let interfaces = self
            .interfaces(call, &all.iter().collect::<Vec<_>>())
            .await?;
        let infos = all.iter().zip(interfaces);
        let infos = infos.map(|(machine, it)| self.info(call, machine, it.as_ref()));
        Ok(LaunchRecord::from_instances(infos.collect::<Result<_>>()?))
    }

    /// One of a launch: as it is known, or its creation.
    async fn begun(
        &self,
        call: &Call,
        config: &InstanceConfig,
        plan: &Plan,
        name: &str,
        known: &Known,
    ) -> Result<Item> {
        if let Some(machine) = known.get(name) {
            return Ok(Item::Known(Box::new(machine.clone())));
        }
        match (
            self.client.create(name, &plan.order).await,
            &config.launch_token,
        ) {
            (Ok((machine, begun)), _) => {
                let machine = self.dated(call, machine).await;
                // At once: whoever launches may be dropped before it is known how this ends.
                self.cleanup.track(machine.clone());
                Ok(Item::Sent(Box::new(machine), begun))
            }
            (Err(failure), Some(token)) if failure.is_conflict() => {
                let adopted = self.adopted(call, plan, name, token, failure).await?;
                Ok(Item::Known(Box::new(adopted)))
            }
            (Err(failure), _) => Err(failure.into_error(call, about(config, plan))),
        }
    }

    /// A machine with when it was made, without which its id would be another one later.
    async fn dated(&self, call: &Call, machine: Machine) -> Machine {
        if machine.made.is_some() {
            return machine;
        }
        let read = || -> BoxFuture<'_, Result<Option<Machine>>> {
            Box::pin(async {
                match self.client.get(&machine.name).await {
                    Ok(now) => Ok(Some(now).filter(|now| now.vm_id == machine.vm_id)),
                    Err(failure) if failure.is_not_found() => Ok(None),
                    Err(failure) => Err(failure.into_error(call, About::default())),
                }
            })
        };
        let told = |now: &Option<Machine>| now.as_ref().is_some_and(|now| now.made.is_some());
        match read_until(&self.capabilities, read, told).await {
            Ok(Some(now)) => now,
            Ok(None) | Err(_) => machine,
        }
    }

    /// The machine that has the name of a launch, once it is shown, if it is that launch's.
    async fn adopted(
        &self,
        call: &Call,
        plan: &Plan,
        name: &str,
        token: &LaunchToken,
        refused: Failure,
    ) -> Result<Machine> {
        let read = || -> BoxFuture<'_, Result<Option<Machine>>> {
            Box::pin(async {
                match self.client.get(name).await {
                    Ok(machine) => Ok(Some(machine)),
                    Err(failure) if failure.is_not_found() => Ok(None),
                    Err(failure) => Err(failure.into_error(call, About::default())),
                }
            })
        };
        let shown = read_until(&self.capabilities, read, Option::is_some).await;
        let shown = shown.map_err(|error| error.with_effect(Effect::None))?;
        let Some(machine) = shown else {
            return Err(refused.into_error(call, About::default()));
        };
        self.same(call, plan, &machine, token)?;
        if self.is_ending(&machine) || state::never_made(&machine) {
            return Err(self.ending(call, token, std::iter::once(&machine)));
        }
        Ok(machine)
    }

    /// What a launch answers, once as much of it has failed as does so within our patience.
    async fn settled(
        &self,
        call: &Call,
        config: &InstanceConfig,
        plan: &Plan,
        items: Vec<Item>,
    ) -> (Vec<InstanceInfo>, Option<ProvisionError>) {
        let ends = self.ended(&items).await;
        let known = items.iter().filter_map(|item| match item {
            Item::Known(machine) => Some(&**machine),
            Item::Sent(..) => None,
        });
        let known: Vec<_> = known.collect();
        let (interfaces, unread) = match self.interfaces(call, &known).await {
            Ok(interfaces) => (interfaces, None),
            Err(error) => (Vec::new(), Some(error.with_effect(Effect::Done))),
        };
        let mut interfaces = interfaces.into_iter();
        // One for all: what cannot be removed until then is watched.
        let deadline = lro::deadline(self.options.patience);
        let each: Vec<_> = items
            .iter()
            .zip(ends)
            .map(|(item, end)| {
                let interface = match item {
                    Item::Known(_) => interfaces.next().flatten(),
                    Item::Sent(..) => None,
                };
                async move {
                    match item {
                        Item::Known(machine) => self.info(call, machine, interface.as_ref()),
                        Item::Sent(machine, _) => {
                            self.made(call, config, plan, machine, (end, deadline))
                                .await
                        }
                    }
                }
            })
            .collect();
        let (mut launched, mut failed) = (Vec::with_capacity(each.len()), None);
        let mut each = stream::iter(each).buffered(self.width());
        while let Some(answer) = each.next().await {
            match answer {
                Ok(info) => launched.push(info),
                Err(error) => failed = Some(graver(failed, error)),
            }
        }
        (launched, failed.or(unread))
    }

    /// What became of a creation: an instance, or why there is none. Until `deadline`, what it has left is removed.
    async fn made(
        &self,
        call: &Call,
        config: &InstanceConfig,
        plan: &Plan,
        machine: &Machine,
        (end, deadline): (Outcome, Instant),
    ) -> Result<InstanceInfo> {
        match end {
            Outcome::Failed(failure) if !failure.is_overtaken() => {
                let effect = match self.remove_failed(machine, &failure, deadline).await {
                    Removal::Gone | Removal::Deleting => Some(Effect::None),
                    Removal::Running => None,
                    Removal::Unfinished { .. } => Some(Effect::Unknown),
                };
                if let Some(effect) = effect {
                    let error = failure.into_error(call, about(config, plan));
                    return Err(error.with_effect(effect));
                }
            }
            Outcome::Succeeded | Outcome::Failed(_) => self.cleanup.untrack(machine),
            Outcome::Unknown => {}
        }
        let mut info = self.info(call, machine, None)?;
        info.placement = config.placement.clone();
        info.placement.zone.clone_from(&plan.zone);
        Ok(info)
    }

    /// How creations end within our patience: few are asked after one by one, many by lists of states.
    async fn ended(&self, items: &[Item]) -> Vec<Outcome> {
        let patience = self.options.launch_patience;
        let tick = self.options.poll_interval;
        let sent = items.iter().filter(|item| matches!(item, Item::Sent(..)));
        if sent.count() <= FEW {
            let each = items.iter().map(|item| async move {
                match item {
                    Item::Known(_) => Outcome::Succeeded,
                    Item::Sent(_, begun) => {
                        lro::followed(&self.client, begun, tick, patience).await
                    }
                }
            });
            return futures_util::future::join_all(each).await;
        }
        let mut ends: Vec<_> = items.iter().map(|_| Outcome::Unknown).collect();
        let deadline = lro::deadline(patience);
        let mut wished = Duration::ZERO;
        for pause in lro::pauses(tick) {
            let left = deadline.saturating_duration_since(Instant::now());
            // Asking again too soon makes it worse.
            if left.is_zero() || wished > left {
                break;
            }
            sleep(pause.max(wished).min(left)).await;
            let statuses = match timeout_at(deadline + tick, self.client.statuses()).await {
                Ok(Ok(statuses)) => statuses,
                Ok(Err(failure)) => {
                    wished = failure.retry_after.unwrap_or_default();
                    continue;
                }
                Err(_) => break,
            };
            wished = Duration::ZERO;
            let mut open = false;
            for (item, end) in items.iter().zip(&mut ends) {
                let (Item::Sent(machine, _), Outcome::Unknown) = (item, &*end) else {
                    continue;
                };
                if let Some(told) = status_of(machine, &statuses) {
                    *end = creation_outcome(told);
                }
                open |= matches!(end, Outcome::Unknown);
            }
            if !open {
                break;
            }
        }
        ends
    }
}

/// What a launch's failure is about.
fn about<'a>(config: &'a InstanceConfig, plan: &'a Plan) -> About<'a> {
    About {
        config: Some(config),
        zone: plan.zone.as_ref(),
        network: Some(&plan.network),
        ..About::default()
    }
}

/// The first of two errors, unless only the other says that something may have been launched.
fn graver(first: Option<ProvisionError>, other: ProvisionError) -> ProvisionError {
    let unknown = |error: &ProvisionError| error.effect() == Effect::Unknown;
    match first {
        Some(first) if unknown(&first) || !unknown(&other) => first,
        Some(_) | None => other,
    }
}
