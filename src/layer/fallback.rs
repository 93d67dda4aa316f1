//! Launches another offering when the cloud has no capacity for the requested one.
//!
//! Owns the order in which alternatives are tried, and the memory of offerings without capacity. It
//! continues with the next alternative only for lack of capacity, and only when the attempt before is
//! known to have launched nothing. A quota error, an invalid config or an outage is returned as it
//! is.

use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::Instant;

use super::{
    LaunchOutput, Layer, Request,
    capacity_memory::{CapacityMemory, offering},
    telemetry::{self, FallbackReason},
};
use crate::{
    Effect, ErrorKind, InstanceConfig, InstanceProvisionerExt as _, InstanceType, InvalidValue,
    LaunchRecord, LaunchToken, Market, Operation, ProvisionError, Result, RetryAdvice, Scope, Tags,
    Zone,
};

/// An offering to launch. Fields that are not set keep the value of the config.
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
    /// Creates an alternative that changes nothing. The name appears in events and, if the policy
    /// [says so](FallbackPolicy::record_in_tag), in a tag.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            instance_type: None,
            zone: None,
            market: None,
        }
    }

    /// Sets the instance type.
    pub fn instance_type(mut self, name: impl AsRef<str>) -> Result<Self, InvalidValue> {
        self.instance_type = Some(InstanceType::new(name)?);
        Ok(self)
    }

    /// Sets the zone.
    pub fn zone(mut self, name: impl AsRef<str>) -> Result<Self, InvalidValue> {
        self.zone = Some(Zone::new(name)?);
        Ok(self)
    }

    /// Sets the market.
    #[must_use]
    pub const fn market(mut self, market: Market) -> Self {
        self.market = Some(market);
        self
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn apply(&self, config: &InstanceConfig) -> InstanceConfig {
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

/// The alternatives of a launch, and how long a lack of capacity is remembered.
///
/// ```
/// use std::time::Duration;
/// use fleetwright::{Market, layer::{Alternative, FallbackPolicy}};
///
/// let policy = FallbackPolicy::new([
///     Alternative::new("as requested"),
///     Alternative::new("zone-b").zone("zone-b")?,
///     Alternative::new("spot").market(Market::Spot),
/// ])
/// .remember_for(Duration::from_secs(60))
/// .record_in_tag("offering")?;
/// # Ok::<(), fleetwright::InvalidValue>(())
/// ```
#[derive(Clone, Debug)]
pub struct FallbackPolicy {
    alternatives: Vec<Alternative>,
    remember: Duration,
    tag: Option<String>,
}

impl FallbackPolicy {
    /// Tries `alternatives` in this order. A lack of capacity is remembered for 3 minutes.
    ///
    /// Only the alternatives are tried: start with one that changes nothing to try the config itself
    /// first. Without any alternative, the config is launched as it is.
    pub fn new(alternatives: impl IntoIterator<Item = Alternative>) -> Self {
        Self {
            alternatives: alternatives.into_iter().collect(),
            remember: Duration::from_secs(180),
            tag: None,
        }
    }

    /// Sets how long an offering without capacity is skipped. Zero never skips one.
    #[must_use]
    pub const fn remember_for(mut self, time: Duration) -> Self {
        self.remember = time;
        self
    }

    /// Tags each instance with the name of its alternative under `key`, in the call that launches it.
    ///
    /// # Errors
    /// [`InvalidValue`] if the key is reserved or empty. The names must be valid tag values of the
    /// cloud, which the backend checks at the launch.
    pub fn record_in_tag(mut self, key: impl Into<String>) -> Result<Self, InvalidValue> {
        let key = key.into();
        for alternative in &self.alternatives {
            Tags::new().with(key.as_str(), alternative.name())?;
        }
        self.tag = Some(key);
        Ok(self)
    }

    /// Returns the configs to try with the names of their alternatives, without duplicates.
    fn configs(&self, config: &InstanceConfig) -> Vec<(&str, InstanceConfig)> {
        let mut tried: Vec<InstanceConfig> = Vec::new();
        let mut configs = Vec::new();
        for alternative in &self.alternatives {
            let mut other = alternative.apply(config);
            if tried.contains(&other) {
                continue;
            }
            tried.push(other.clone());
            if let Some(key) = &self.tag {
                // Key and value were checked when the policy was created.
                let _ = other.tags.insert(key.as_str(), alternative.name());
            }
            configs.push((alternative.name(), other));
        }
        if configs.is_empty() {
            configs.push(("as requested", config.clone()));
        }
        configs
    }
}

/// Launches the first alternative that has capacity.
///
/// - All alternatives of a launch use its token, so the backend creates at most one instance, and
///   [`find_launch`](crate::InstanceProvisioner::find_launch) finds it. A replay whose token was used
///   with another alternative returns that alternative's instance: configs that differ only in what
///   an alternative sets are the same launch here.
/// - If the outcome of an attempt is unknown, its token is looked up before the next attempt. If that
///   does not settle it, the error is returned.
/// - An offering without capacity is skipped for a time, in the scope that its error names: one zone,
///   or one type in all zones. An error about a config without zone or market does not apply to all
///   zones or markets. If every alternative is skipped, the launch is refused without being sent, with
///   the time after which the first one may be tried; a token is looked up before that.
/// - A batch of which some instances were launched stays with its alternative: its error carries the
///   survivors.
/// - The type and placement of an instance show which alternative it got, and so does a tag if the
///   policy [sets one](FallbackPolicy::record_in_tag).
///
/// A cloud may accept a launch and run out of capacity later. Then the instance is terminated with
/// the cloud's reason, its token is spent, and this layer does nothing.
///
/// ```
/// use fleetwright::{Market, layer::{Alternative, Fallback, FallbackPolicy, Layered}};
/// use fleetwright_memory::MemoryCloud;
///
/// let alternatives = [Alternative::new("as requested"), Alternative::new("spot").market(Market::Spot)];
/// let fallback = Fallback::new(FallbackPolicy::new(alternatives));
/// let provisioner = Layered::new(MemoryCloud::new().provisioner(), fallback);
/// assert!(provisioner.layer().without_capacity().is_empty());
/// ```
#[derive(Debug)]
pub struct Fallback {
    policy: FallbackPolicy,
    memory: CapacityMemory,
}

impl Fallback {
    /// Creates a layer with the alternatives of `policy`.
    pub const fn new(policy: FallbackPolicy) -> Self {
        let memory = CapacityMemory::new(policy.remember);
        Self { policy, memory }
    }

    /// Returns the offerings that are skipped now. One without a zone means configs without a zone,
    /// or every zone, depending on what the cloud reported.
    pub fn without_capacity(&self) -> Vec<Scope> {
        self.memory.scopes()
    }

    /// Tries the alternatives in order. Returns how the last one ended.
    async fn try_alternatives<'a, T>(
        &self,
        request: &Request<'_>,
        configs: &[(&str, InstanceConfig)],
        send: &(impl Fn(InstanceConfig) -> BoxFuture<'a, Result<T>> + Send + Sync + 'a),
    ) -> Outcome<T> {
        let (mut refused, mut skipped_until) = (None, None);
        for (index, (name, config)) in configs.iter().enumerate() {
            if let Some(until) = self.memory.unavailable_until(config) {
                telemetry::fallback(request, name, FallbackReason::NoCapacityRecently);
                let first = skipped_until.map_or(until, |first: Instant| first.min(until));
                skipped_until = Some(first);
                continue;
            }
            let error = match send(config.clone()).await {
                Ok(launched) => return Outcome::Returned(Ok(launched)),
                Err(error) => error,
            };
            if error.kind() == ErrorKind::TokenConflict {
                return Outcome::TokenTaken { index, error };
            }
            if !launched_nothing(request, &error).await {
                return Outcome::Returned(Err(error));
            }
            self.memory.record(&error, config);
            telemetry::fallback(request, name, FallbackReason::NoCapacity);
            refused = Some(error);
        }
        Outcome::NoCapacity {
            refused,
            skipped_until,
        }
    }
}

/// How the attempts of a launch ended.
enum Outcome<T> {
    /// With this result.
    Returned(Result<T>),
    /// The token was used before, with another config than the one at `index`.
    TokenTaken { index: usize, error: ProvisionError },
    /// No alternative has capacity.
    NoCapacity {
        /// The last capacity error, if any alternative was tried.
        refused: Option<ProvisionError>,
        /// When the first skipped alternative may be tried again, if any was skipped.
        skipped_until: Option<Instant>,
    },
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
            let outcome = self.try_alternatives(&request, &configs, &send).await;
            let (refused, skipped_until) = match outcome {
                Outcome::Returned(result) => return result,
                Outcome::TokenTaken { index, error } => {
                    return replay(&configs, Some(index), &send, error).await;
                }
                Outcome::NoCapacity {
                    refused,
                    skipped_until,
                } => (refused, skipped_until),
            };
            if let (Some(token), Some(_)) = (request.token, skipped_until) {
                // The token may have been used with an alternative that was skipped.
                let settled = settle(&request, token).await;
                let record = settled.map_err(|error| error.with_operation(request.operation()))?;
                if record != LaunchRecord::NotFound {
                    let error = request.call.token_conflict(token);
                    return replay(&configs, None, &send, error).await;
                }
            }
            Err(refused.unwrap_or_else(|| all_skipped(&request, config, skipped_until)))
        })
    }
}

/// Returns whether a launch failed for lack of capacity and certainly launched nothing.
async fn launched_nothing(request: &Request<'_>, error: &ProvisionError) -> bool {
    if error.kind() != ErrorKind::Capacity {
        return false;
    }
    match (error.effect(), request.token) {
        (Effect::None, _) => true,
        // The outcome of an earlier attempt of the same launch is unknown.
        (Effect::Unknown, Some(token)) => {
            matches!(settle(request, token).await, Ok(LaunchRecord::NotFound))
        }
        (Effect::Done, _) | (Effect::Unknown, None) => false,
    }
}

/// Finds out what the token launched. Waits for the consistency window before "not found".
async fn settle(request: &Request<'_>, token: &LaunchToken) -> Result<LaunchRecord> {
    let record = request.inner.settle_launch(token).await?;
    if record == LaunchRecord::NotFound && request.operation() == Operation::LaunchInstances {
        // The window is over, so one look-up of the batch's items is enough.
        return request.inner.find_launches(token, request.count).await;
    }
    Ok(record)
}

/// Replays a token that was used before: returns the result of the first alternative that the
/// backend accepts for it. Nothing is launched, because the token is taken.
async fn replay<'a, T>(
    configs: &[(&str, InstanceConfig)],
    already_tried: Option<usize>,
    send: &(impl Fn(InstanceConfig) -> BoxFuture<'a, Result<T>> + Send + Sync + 'a),
    conflict: ProvisionError,
) -> Result<T> {
    for (index, (_, config)) in configs.iter().enumerate() {
        if Some(index) == already_tried {
            continue;
        }
        match send(config.clone()).await {
            Err(error) if is_another_config(&error) => {}
            result => return result,
        }
    }
    Err(conflict)
}

/// Returns whether the token was used with another alternative: the backend reports a conflict, or
/// refuses this config for good.
fn is_another_config(error: &ProvisionError) -> bool {
    let for_good = error.effect() == Effect::None && error.retry() == RetryAdvice::Never;
    for_good && error.kind() != ErrorKind::TokenSpent
}

/// Creates the error of a launch whose alternatives were all skipped.
fn all_skipped(
    request: &Request<'_>,
    config: &InstanceConfig,
    until: Option<Instant>,
) -> ProvisionError {
    let message = "no alternative had capacity recently; wait, or configure more alternatives";
    let error = request.call.capacity(offering(config), message);
    match until {
        Some(until) => error.retry_after(until.saturating_duration_since(Instant::now())),
        None => error,
    }
}
