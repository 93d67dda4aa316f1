//! Other offerings, when the cloud has no machine of the one that was asked for.
//!
//! Owns the order in which alternatives are tried, and which offerings lacked capacity lately. It
//! moves a launch on only when the attempt before it is known to have launched nothing, and only
//! for want of capacity: a quota, a mistake in the config or an outage is answered as it is.

use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::Instant;

use super::{
    LaunchOutput, Layer, Request,
    lacking::{Lacking, offering},
    signal,
};
use crate::{
    BoxStream, Effect, ErrorKind, InstanceConfig, InstanceId, InstanceProvisionerExt as _,
    InstanceType, InvalidValue, LaunchRecord, LaunchToken, ListItem, Market, Operation,
    ProvisionError, Result, RetryAdvice, Scope, Tags, Zone,
};

/// What to launch instead. A field that is not set stays as the config has it.
///
/// ```
/// use fleetwright::{Market, layer::Alternative};
///
/// let alternative = Alternative::new("spot-b").zone("zone-b")?.market(Market::Spot);
/// assert_eq!(alternative.name(), "spot-b");
/// # Ok::<(), fleetwright::InvalidValue>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alternative {
    name: String,
    instance_type: Option<InstanceType>,
    zone: Option<Zone>,
    market: Option<Market>,
}

impl Alternative {
    /// An alternative by this name, which is so far what the config asks for.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            instance_type: None,
            zone: None,
            market: None,
        }
    }

    /// Of another type.
    pub fn instance_type(mut self, name: impl AsRef<str>) -> Result<Self, InvalidValue> {
        self.instance_type = Some(InstanceType::new(name)?);
        Ok(self)
    }

    /// In another zone.
    pub fn zone(mut self, name: impl AsRef<str>) -> Result<Self, InvalidValue> {
        self.zone = Some(Zone::new(name)?);
        Ok(self)
    }

    /// On another market.
    #[must_use]
    pub const fn market(mut self, market: Market) -> Self {
        self.market = Some(market);
        self
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn applied(&self, config: &InstanceConfig) -> InstanceConfig {
        let mut config = config.clone();
        if let Some(instance_type) = &self.instance_type {
            config.instance_type = instance_type.clone();
        }
        if let Some(zone) = &self.zone {
            config.placement.zone = Some(zone.clone());
        }
        if self.market.is_some() {
            config.placement.market = self.market;
        }
        config
    }
}

/// Which alternatives there are.
#[derive(Clone, Debug)]
pub struct FallbackPolicy {
    alternatives: Vec<Alternative>,
    remember: Duration,
    tag: Option<String>,
}

impl FallbackPolicy {
    /// Tries these in this order, and remembers for three minutes which lacked capacity.
    ///
    /// The list is the whole order: begin it with an alternative that changes nothing to try first
    /// what the config asks for.
    pub fn new(alternatives: impl IntoIterator<Item = Alternative>) -> Self {
        Self {
            alternatives: alternatives.into_iter().collect(),
            remember: Duration::from_secs(180),
            tag: None,
        }
    }

    /// Does not ask again so long for an offering that lacked capacity.
    #[must_use]
    pub const fn remember_for(mut self, time: Duration) -> Self {
        self.remember = time;
        self
    }

    /// Tags each instance under `key` with the name of its alternative, in the very call that
    /// launches it. The names must then be values that the cloud takes.
    pub fn record_in_tag(mut self, key: impl Into<String>) -> Result<Self, InvalidValue> {
        let key = key.into();
        for alternative in &self.alternatives {
            Tags::new().with(key.as_str(), alternative.name())?;
        }
        self.tag = Some(key);
        Ok(self)
    }

    /// The configs to try, by the names of their alternatives. Of equal ones only the first.
    fn configs(&self, config: &InstanceConfig) -> Vec<(&str, InstanceConfig)> {
        let mut tried: Vec<InstanceConfig> = Vec::new();
        let mut configs = Vec::new();
        for alternative in &self.alternatives {
            let mut other = alternative.applied(config);
            if tried.contains(&other) {
                continue;
            }
            tried.push(other.clone());
            if let Some(key) = &self.tag {
                // Both were checked together when the policy was made.
                let _ = other.tags.insert(key.as_str(), alternative.name());
            }
            configs.push((alternative.name(), other));
        }
        if configs.is_empty() {
            configs.push(("as asked", config.clone()));
        }
        configs
    }
}

/// Launches the first of several offerings that has capacity.
///
/// - All alternatives of a launch have its token, so the backend itself keeps them to one instance,
///   and [`find_launch`](crate::InstanceProvisioner::find_launch) finds it. A replay that meets
///   the token under another alternative answers that one's instance: two configs that differ only
///   in what an alternative sets are one launch here.
/// - An attempt whose outcome is unknown is looked up before the next begins; where it cannot be
///   settled, its error is the answer.
/// - An offering that lacked capacity is passed over for a time, by the scope that its error names:
///   one zone, one type in all zones. A config that names no zone or market is not taken for all of
///   them. When every alternative is passed over, the launch is refused without being sent, with the
///   time after which the first may be asked again; a token is looked up before that.
/// - A batch that was launched in part is not moved: its error carries the survivors.
/// - Which alternative it got, an instance tells by its type and placement, and by its tag where
///   the policy [sets one](FallbackPolicy::record_in_tag).
///
/// Capacity that fails after a launch was accepted is not seen here: the instance is then
/// terminated with the cloud's reason, and its token is spent.
#[derive(Debug)]
pub struct Fallback {
    policy: FallbackPolicy,
    lacking: Lacking,
}

impl Fallback {
    /// Falls back as `policy` says.
    pub const fn new(policy: FallbackPolicy) -> Self {
        let lacking = Lacking::new(policy.remember);
        Self { policy, lacking }
    }

    /// The offerings that are passed over now. One without a zone is of configs without a zone, or of
    /// every zone, as its cloud has said.
    pub fn without_capacity(&self) -> Vec<Scope> {
        self.lacking.scopes()
    }
}

impl Layer for Fallback {
    fn launch<'a, T: LaunchOutput + 'a>(
        &'a self,
        request: Request<'a>,
        config: &'a InstanceConfig,
        send: impl Fn(InstanceConfig) -> BoxFuture<'a, Result<T>> + Send + Sync + 'a,
    ) -> BoxFuture<'a, Result<T>> {
        Box::pin(async move {
            let configs = self.policy.configs(config);
            let (mut refused, mut passed_over) = (None, None);
            for (at, (name, config)) in configs.iter().enumerate() {
                if let Some(until) = self.lacking.until(config) {
                    signal::falls_back(&request, name, "remembered");
                    passed_over =
                        Some(passed_over.map_or(until, |first: Instant| first.min(until)));
                    continue;
                }
                let error = match send(config.clone()).await {
                    Ok(launched) => return Ok(launched),
                    Err(error) => error,
                };
                if error.kind() == ErrorKind::TokenConflict {
                    return replay(&configs, Some(at), &send, error).await;
                }
                if !launched_nothing(&request, &error).await {
                    return Err(error);
                }
                self.lacking.note(&error, config);
                signal::falls_back(&request, name, "capacity");
                refused = Some(error);
            }
            if let (Some(token), Some(_)) = (request.token, passed_over) {
                // Nobody has asked whether the token was launched with what was passed over.
                let known = known(&request, token).await;
                if known.map_err(|error| error.with_operation(request.operation()))?
                    != LaunchRecord::NotFound
                {
                    let error = request.call.token_conflict(token);
                    return replay(&configs, None, &send, error).await;
                }
            }
            Err(refused.unwrap_or_else(|| nothing_left(&request, config, passed_over)))
        })
    }

    fn call<'a, T: Send + 'a>(
        &'a self,
        _: Request<'a>,
        send: impl Fn() -> BoxFuture<'a, Result<T>> + Send + Sync + 'a,
    ) -> BoxFuture<'a, Result<T>> {
        Box::pin(async move { send().await })
    }

    fn batch<'a, T: Send + 'a>(
        &'a self,
        request: Request<'a>,
        send: impl Fn(Vec<InstanceId>) -> BoxFuture<'a, Vec<Result<T>>> + Send + Sync + 'a,
    ) -> BoxFuture<'a, Vec<Result<T>>> {
        Box::pin(async move { send(request.ids.to_vec()).await })
    }

    fn stream<'a>(
        &'a self,
        _: Request<'a>,
        open: impl Fn() -> BoxStream<'a, Result<ListItem>> + Send + Sync + 'a,
    ) -> BoxStream<'a, Result<ListItem>> {
        open()
    }
}

/// Whether a launch failed for want of capacity and is known to have made nothing.
async fn launched_nothing(request: &Request<'_>, error: &ProvisionError) -> bool {
    if error.kind() != ErrorKind::Capacity {
        return false;
    }
    match (error.effect(), request.token) {
        (Effect::None, _) => true,
        // An earlier attempt of it went unanswered.
        (Effect::Unknown, Some(token)) => {
            matches!(known(request, token).await, Ok(LaunchRecord::NotFound))
        }
        (Effect::Done, _) | (Effect::Unknown, None) => false,
    }
}

/// What the cloud knows of the token, once the consistency window has passed.
async fn known(request: &Request<'_>, token: &LaunchToken) -> Result<LaunchRecord> {
    let record = request.inner.settle_launch(token).await?;
    if record == LaunchRecord::NotFound && request.operation() == Operation::LaunchInstances {
        // The window is over by now, so one look at the items of a batch is enough.
        return request.inner.find_launches(token, request.count).await;
    }
    Ok(record)
}

/// The token was used before, with an alternative: whichever answers it without a conflict. Nothing
/// new is launched by asking, because the token is taken.
async fn replay<'a, T>(
    configs: &[(&str, InstanceConfig)],
    asked: Option<usize>,
    send: &(impl Fn(InstanceConfig) -> BoxFuture<'a, Result<T>> + Send + Sync + 'a),
    conflict: ProvisionError,
) -> Result<T> {
    for (at, (_, config)) in configs.iter().enumerate() {
        if Some(at) == asked {
            continue;
        }
        match send(config.clone()).await {
            Err(error) if is_not_the_one(&error) => {}
            answer => return answer,
        }
    }
    Err(conflict)
}

/// Whether the token is not this alternative's: it says so, or refuses for good whatever is asked.
fn is_not_the_one(error: &ProvisionError) -> bool {
    let for_good = error.effect() == Effect::None && error.retry() == RetryAdvice::Never;
    for_good && error.kind() != ErrorKind::TokenSpent
}

/// The refusal of a launch of which every alternative is passed over.
fn nothing_left(
    request: &Request<'_>,
    config: &InstanceConfig,
    until: Option<Instant>,
) -> ProvisionError {
    let message = "every alternative lacked capacity lately; wait, or offer more alternatives";
    let error = request.call.capacity(offering(config), message);
    match until {
        Some(until) => error.retry_after(until.saturating_duration_since(Instant::now())),
        None => error,
    }
}
