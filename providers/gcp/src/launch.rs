//! Launching: what a token has launched already, and what is launched anew.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU32,
    time::Duration,
};

use backon::BackoffBuilder as _;
use fleetwright::{
    Call, CloudInstanceState, Effect, InstanceConfig, InstanceInfo, LaunchToken, ProvisionError,
    Result, RetryAdvice, Scope, read_until,
};
use futures_util::{StreamExt as _, future::BoxFuture, stream};
use google_cloud_compute_v1::model::{Instance, Operation as NativeOperation};
use tokio::time::{Instant, sleep, timeout_at};
use uuid::Uuid;

use crate::{
    GcpProvisioner, address,
    address::Address,
    convert,
    error::{About, Failure},
    history::{self, Fate},
    plan::{Plan, owner},
};

const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// One of a launch that is under way.
enum Begun {
    /// It is there already.
    Known(Box<InstanceInfo>),
    /// It was accepted, by this operation.
    Sent(Box<NativeOperation>),
}

/// What is known of all that a token launched, by name.
#[derive(Debug, Default)]
pub(crate) struct Known {
    natives: Vec<Instance>,
    pub(crate) infos: BTreeMap<String, InstanceInfo>,
    /// What has the name of another one of `infos`, in another zone: two handles launched at once.
    pub(crate) twins: Vec<InstanceInfo>,
    /// By name, the operations by which attempts failed.
    failed: BTreeMap<String, BTreeSet<String>>,
    /// Whether something is on its way that no read shows yet.
    pub(crate) hidden: bool,
}

impl GcpProvisioner {
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
                let known = self.compared(call, token, &plan).await?;
                let item = |index| (count > NonZeroU32::MIN).then_some(index);
                let names = (0..count.get()).map(|index| address::name_of(token, item(index)));
                (names.collect::<Vec<_>>(), known)
            }
            None => {
                let names = (0..count.get()).map(|_| address::random_name());
                (names.collect(), Known::default())
            }
        };
        let each = names
            .iter()
            .map(|name| self.begun(call, config, &plan, name, &known));
        let each: Vec<_> = each.collect();
        let width = self.options.concurrency.get() as usize;
        let mut begun: Vec<_> = stream::iter(each).buffered(width).collect().await;
        let sent = begun.iter_mut().filter_map(|one| match one {
            Ok(Begun::Sent(operation)) => Some(&mut **operation),
            Ok(Begun::Known(_)) | Err(_) => None,
        });
        self.all_followed(plan.zone.as_str(), sent.collect()).await;
        let each = begun.into_iter().zip(&names);
        let each = each.map(|(one, name)| self.settled(call, config, &plan, name, one));
        let each: Vec<_> = each.collect();
        let answers: Vec<_> = stream::iter(each).buffered(width).collect().await;
        let (mut launched, mut failed) = (Vec::new(), None);
        for answer in answers {
            match answer {
                Ok(info) => launched.push(info),
                Err(error) => failed = Some(graver(failed, error)),
            }
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
    async fn compared(&self, call: &Call, token: &LaunchToken, plan: &Plan) -> Result<Known> {
        let used = self
            .used
            .fingerprint(token, self.capabilities.consistency_window);
        if used.is_some_and(|config| config != plan.fingerprint) {
            return Err(call.token_conflict(token));
        }
        let read = || -> BoxFuture<'_, _> { Box::pin(self.known(call, token)) };
        let known = read_until(&self.capabilities, read, |known| !known.hidden).await;
        let known = known.map_err(|error| error.with_effect(Effect::None))?;
        for native in &known.natives {
            self.same(call, plan, native, token)?;
        }
        let mut infos = known.infos.values();
        if !known.infos.is_empty() && infos.all(|info| info.state.is_ending()) {
            return Err(call.token_spent(token));
        }
        Ok(known)
    }

    /// Whether an instance with a token's name is that token's, and was launched by the same config.
    fn same(&self, call: &Call, plan: &Plan, native: &Instance, token: &LaunchToken) -> Result<()> {
        if convert::owner(native) != plan.owner.as_deref() {
            let name = native.name.as_deref().unwrap_or_default();
            let message = format!("the name {name} is taken by an instance of somebody else");
            let error = call.conflict(&message, RetryAdvice::Never);
            return Err(match convert::info(self.client.project(), native) {
                Ok(info) => error.with_scope(Scope::Instance(info.id)),
                Err(_) => error,
            });
        }
        if convert::fingerprint(native) != Some(plan.fingerprint) {
            return Err(call.token_conflict(token));
        }
        Ok(())
    }

    /// All that a token launched, alive or not: instances, and what operations tell of the others.
    pub(crate) async fn known(&self, call: &Call, token: &LaunchToken) -> Result<Known> {
        let told = |failure: Failure| failure.into_error(call, About::default());
        let pattern = address::pattern_of(token);
        let natives = self.all_of_ours(&convert::matching(&pattern)).await;
        let mut natives = natives.map_err(told)?;
        // Lists of all zones are in no order, and a replay answers the same one each time.
        natives.sort_by(|one, other| other.zone.cmp(&one.zone));
        let infos = self.infos(call, &natives)?;
        let owner = owner(token);
        let owned = |(native, _): &(&Instance, _)| convert::owner(native) == Some(owner.as_str());
        let ours = natives.iter().zip(infos).filter(owned);
        let mut known = Known::default();
        for (name, info) in ours.filter_map(named) {
            known.twins.extend(known.infos.insert(name, info));
        }
        known.natives = natives;
        // Where operations are not asked, an instance that is being deleted is taken for a stopping one.
        if self.options.operations_kept.is_zero() {
            return Ok(known);
        }
        let filter = convert::about_named(&pattern);
        let operations = self.operations_of_ours(&filter).await.map_err(told)?;
        let mut by_target = BTreeMap::<_, (Address, Vec<NativeOperation>)>::new();
        for operation in operations {
            if let Some(at) = convert::target(self.client.project(), &operation) {
                let (_, some) = by_target
                    .entry(at.number)
                    .or_insert_with(|| (at, Vec::new()));
                some.push(operation);
            }
        }
        for (at, operations) in by_target.into_values() {
            self.add_told(&mut known, at, &history::fate(&operations));
        }
        Ok(known)
    }

    /// Adds what operations tell of one instance.
    fn add_told(&self, known: &mut Known, at: Address, fate: &Fate) {
        if let Fate::Failed(failure) = fate {
            // What could not be made leaves its token free.
            if let Some(operation) = &failure.request_id {
                let failed = known.failed.entry(at.name).or_default();
                failed.insert(operation.clone());
            }
            return;
        }
        // An instance that is there and not ours is nothing that the token launched.
        let there = known
            .natives
            .iter()
            .any(|native| native.id == Some(at.number));
        let ours = known
            .infos
            .values()
            .any(|info| at.id().as_ref() == Some(&info.id));
        if there && !ours {
            return;
        }
        let shown = known.infos.get(&at.name);
        if let Some(info) = shown.filter(|info| at.id().as_ref() == Some(&info.id)) {
            let ending = matches!(fate, Fate::Going | Fate::Gone(_));
            if ending {
                let info = convert::going(info.clone());
                known.infos.insert(at.name, info);
            }
            return;
        }
        // One that is there or coming counts more than one of that name that is gone.
        let other = shown.is_some_and(|info| !info.state.is_ending());
        match convert::absent(&at, fate, self.capabilities.consistency_window) {
            Some(info) => {
                let coming = !info.state.is_ending();
                known.hidden |= coming;
                if !other && (coming || shown.is_none()) {
                    known.infos.insert(at.name, info);
                }
            }
            None => known.hidden = true,
        }
    }

    /// One of a launch: as it is known, or its insert.
    async fn begun(
        &self,
        call: &Call,
        config: &InstanceConfig,
        plan: &Plan,
        name: &str,
        known: &Known,
    ) -> Result<Begun> {
        if let Some(info) = known.infos.get(name) {
            return Ok(Begun::Known(Box::new(info.clone())));
        }
        let failed = known.failed.get(name);
        let request_id = self.request_id(plan, name, failed.into_iter().flatten());
        let zone = plan.zone.as_str();
        let sent = self
            .client
            .insert(zone, plan.named(name), &request_id)
            .await;
        match (sent, &config.launch_token) {
            (Ok(operation), _) => Ok(Begun::Sent(Box::new(operation))),
            (Err(failure), Some(token)) if failure.is_taken() => {
                let adopted = self.adopted(call, plan, name, token).await?;
                Ok(Begun::Known(Box::new(adopted)))
            }
            (Err(failure), _) => Err(failure.into_error(call, about(config, plan))),
        }
    }

    /// One of a launch, as far as its operation tells by now.
    async fn settled(
        &self,
        call: &Call,
        config: &InstanceConfig,
        plan: &Plan,
        name: &str,
        begun: Result<Begun>,
    ) -> Result<InstanceInfo> {
        let operation = match begun? {
            Begun::Known(info) => return Ok(*info),
            Begun::Sent(operation) => operation,
        };
        match (history::failure(&operation), &config.launch_token) {
            // Another one of that name was faster, which is not always said at once.
            (Some(failure), Some(token)) if failure.is_taken() => {
                return self.adopted(call, plan, name, token).await;
            }
            (Some(failure), _) => return Err(failure.into_error(call, about(config, plan))),
            (None, _) => {}
        }
        self.pending(call, config, plan, name, &operation).await
    }

    /// The request id of an attempt: the same for the same launch, so that one that is repeated is one to
    /// Compute Engine too; another one after each attempt that failed, which would be answered again.
    /// Numbers and names of operations are in no order, so that all of them count, and not a latest.
    fn request_id<'a>(
        &self,
        plan: &Plan,
        name: &str,
        failed: impl Iterator<Item = &'a String>,
    ) -> String {
        if plan.owner.is_none() || self.options.operations_kept.is_zero() {
            return Uuid::new_v4().to_string();
        }
        let failed: Vec<_> = failed.map(String::as_str).collect();
        let failed = failed.join("\n");
        let text = format!(
            "{name}\n{}\n{}\n{failed}",
            plan.zone,
            plan.fingerprint.as_uuid()
        );
        Uuid::new_v5(&Uuid::NAMESPACE_OID, text.as_bytes()).to_string()
    }

    /// What a launch answers: pending, with all that was asked for.
    async fn pending(
        &self,
        call: &Call,
        config: &InstanceConfig,
        plan: &Plan,
        name: &str,
        operation: &NativeOperation,
    ) -> Result<InstanceInfo> {
        let number = match operation.target_id {
            Some(number) => Some(number),
            None => {
                let native = self.named_so(call, plan, name).await;
                let native = native.map_err(|error| error.with_effect(Effect::Done))?;
                native.and_then(|native| native.id)
            }
        };
        let numberless = || call.unexpected(Effect::Done, "the launched instance has no number");
        let number = number.ok_or_else(numberless)?;
        let at = Address {
            project: self.client.project().to_owned(),
            zone: plan.zone.to_string(),
            name: name.to_owned(),
            number,
        };
        let nameless = || call.unexpected(Effect::Done, "the launched instance makes no id");
        let mut info =
            InstanceInfo::new(at.id().ok_or_else(nameless)?, CloudInstanceState::Pending);
        info.tags = config.tags.clone();
        info.image = Some(config.image.clone());
        info.instance_type = Some(config.instance_type.clone());
        info.placement = config.placement.clone();
        info.placement.zone = Some(plan.zone.clone());
        info.launch_time = operation.insert_time.as_deref().and_then(history::time);
        Ok(info)
    }

    /// The instance that has the name of a launch, once it is shown.
    async fn named_so(&self, call: &Call, plan: &Plan, name: &str) -> Result<Option<Instance>> {
        let read = || -> BoxFuture<'_, Result<Option<Instance>>> {
            Box::pin(async {
                match self.client.get(plan.zone.as_str(), name).await {
                    Ok(native) => Ok(Some(native)),
                    Err(failure) if failure.is_not_found() => Ok(None),
                    Err(failure) => Err(failure.into_error(call, About::default())),
                }
            })
        };
        read_until(&self.capabilities, read, Option::is_some).await
    }

    /// The instance that has the name of a launch, once it is shown, if it is that launch's.
    async fn adopted(
        &self,
        call: &Call,
        plan: &Plan,
        name: &str,
        token: &LaunchToken,
    ) -> Result<InstanceInfo> {
        let Some(native) = self.named_so(call, plan, name).await? else {
            let message = format!("the name {name} is taken, and nothing is shown under it");
            let retry = RetryAdvice::After(self.capabilities.poll_interval);
            return Err(call.conflict(&message, retry));
        };
        self.same(call, plan, &native, token)?;
        let mut infos = self.infos(call, &[native])?;
        let lost = || call.unexpected(Effect::Unknown, "an instance is lost");
        let info = infos.pop().ok_or_else(lost)?;
        let info = self.unless_going(call, info).await?;
        if info.state.is_ending() {
            return Err(call.token_spent(token));
        }
        Ok(info)
    }

    /// Follows the inserts of one launch, for as long as the patience lasts for all of them: one by a
    /// wait, many by lists of operations, which cost less and leave none for later.
    async fn all_followed(&self, zone: &str, mut sent: Vec<&mut NativeOperation>) {
        let patience = self.options.launch_patience;
        if let [one] = &mut sent[..] {
            **one = self.followed(zone, one.clone(), patience).await;
            return;
        }
        let deadline = deadline(patience);
        for pause in self.pauses() {
            sent.retain(|operation| !history::is_over(operation));
            let left = deadline.saturating_duration_since(Instant::now());
            if sent.is_empty() || left.is_zero() {
                return;
            }
            sleep(pause.min(left)).await;
            let numbers = sent.iter().filter_map(|operation| operation.target_id);
            let numbers: Vec<_> = numbers.collect();
            let read = self.histories([zone], &numbers);
            let read = timeout_at(deadline + self.options.poll_interval, read).await;
            let Ok(Ok(histories)) = read else {
                continue;
            };
            for operation in &mut sent {
                let number = operation.target_id.unwrap_or_default();
                let mut seen = histories.get(&number).into_iter().flatten();
                if let Some(now) = seen.find(|one| one.name == operation.name) {
                    **operation = now.clone();
                }
            }
        }
    }

    /// How long to wait between two looks at an operation.
    fn pauses(&self) -> impl Iterator<Item = Duration> + use<> {
        let tick = self.options.poll_interval;
        let pauses = backon::ExponentialBuilder::new()
            .with_min_delay(tick.min(Duration::from_millis(500)))
            .with_max_delay(tick)
            .without_max_times();
        pauses.build()
    }

    /// Follows an operation to its end, for as long as `patience` lasts, past calls that fail. Where it
    /// cannot be followed any more, because it has expired, it stays as it was last seen: it was
    /// accepted, and what becomes of it is seen by looking at the instance.
    pub(crate) async fn followed(
        &self,
        zone: &str,
        mut operation: NativeOperation,
        patience: Duration,
    ) -> NativeOperation {
        let deadline = deadline(patience);
        for pause in self.pauses() {
            let Some(name) = operation.name.clone() else {
                return operation;
            };
            if history::is_over(&operation) || Instant::now() >= deadline {
                return operation;
            }
            match timeout_at(deadline, self.client.wait(zone, &name)).await {
                Ok(Ok(waited)) => operation = waited,
                Ok(Err(failure)) if failure.may_pass() => {}
                Ok(Err(_)) | Err(_) => return operation,
            }
            if !history::is_over(&operation) {
                let left = deadline.saturating_duration_since(Instant::now());
                sleep(pause.min(left)).await;
            }
        }
        operation
    }
}

/// When patience ends. For ever is as good as a year here.
fn deadline(patience: Duration) -> Instant {
    Instant::now() + patience.min(YEAR)
}

/// What a launch's failure is about.
fn about<'a>(config: &'a InstanceConfig, plan: &'a Plan) -> About<'a> {
    About {
        config: Some(config),
        zone: Some(&plan.zone),
        network: plan.network.as_ref(),
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

fn named((native, info): (&Instance, InstanceInfo)) -> Option<(String, InstanceInfo)> {
    Some((native.name.clone()?, info))
}
