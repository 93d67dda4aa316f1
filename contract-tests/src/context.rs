//! What a clause works with: a fresh account, recorded handles, and ways to wait.
//!
//! Owns the helpers of all clauses. Clauses never sleep themselves. They say what must
//! [eventually](Context::eventually) hold within the harness's budget, or
//! [consistently](Context::consistently) during a window. In virtual time both take no real time.

mod waiting;

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use fleetwright::{
    Capabilities, CloudInstanceState, Effect, ErrorKind, InstanceConfig, InstanceFilter,
    InstanceId, InstanceInfo, InstanceProvisioner, InstanceStatus, LaunchToken, PlacementField,
    ProvisionError, Result, Tags, Zone,
};

use crate::{
    ExternalActor, Failure, Faults, Harness, NotApplicable, Oracle, Time, WireFault, cleanup,
    cost_guard::MOST_IN_REAL_TIME,
    policy_tags,
    recorded_parts::{RecordedActor, RecordedFaults},
    recorder::Recorder,
    require,
    shown::{in_words, shown_any},
    sweep::Part,
    transcript::Transcript,
};

/// The key of the tag by which a [`cleanup`] recognizes what the kit launched.
pub const OWNER_TAG: &str = "fleetwright-contract";

/// The value of [`OWNER_TAG`].
pub const OWNER_VALUE: &str = "contract-kit";

/// The key of the tag that separates clauses: everything that a clause launches carries it, with a
/// value of the clause's own.
pub const SCOPE_TAG: &str = "fleetwright-contract-scope";

/// The context of one clause: the account, the clause's handle, its tags and its transcript.
///
/// Methods called `require_…` fail with a violation, and so do calls to the backend that must succeed,
/// such as [`launch`](Self::launch). `wait_…` methods wait within the harness's budget and then fail
/// with a violation. Methods that need a part of the harness return [`Failure::NotRun`] if it has none.
///
/// # Example
///
/// A check of your own, written like a clause. [`run_clause`](crate::run_clause) and the tests of the
/// kit create the context; a clause receives it:
///
/// ```
/// use fleetwright::{CloudInstanceState, ErrorKind};
/// use fleetwright_contract_tests::{Context, Outcome, Pass, require};
///
/// async fn stopped_instance_keeps_its_private_address(cx: &Context) -> Outcome {
///     // Launched with the scope's tags, so that it is terminated after the clause.
///     let id = cx.launch_running().await?.id;
///     let before = cx.describe(&id).await?.private_ip;
///     cx.stop(&id).await?;
///     cx.wait_for_state(&id, CloudInstanceState::Stopped).await?;
///     // From here on, no read may return an older state.
///     cx.wait_for_consistent_reads().await;
///     let after = cx.describe(&id).await?.private_ip;
///     require(before == after, || format!("a stop changed the address of {id}"))?;
///     // A call that must be refused.
///     let unknown = cx.provisioner().stop_instance(&cx.harness().unknown_id()).await;
///     cx.require_refused("a stop of an unknown id", unknown, ErrorKind::NotFound)?;
///     Ok(Pass::Held)
/// }
/// # let _ = stopped_instance_keeps_its_private_address;
/// ```
pub struct Context {
    harness: Arc<dyn Harness>,
    provisioner: Arc<dyn InstanceProvisioner>,
    transcript: Transcript,
    scope: Tags,
    tokens: AtomicU32,
    part: Part,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("scope", &self.scope)
            .finish_non_exhaustive()
    }
}

/// Handles, and the optional parts of the harness.
impl Context {
    /// Opens the clause's handle. `scope` is the value of [`SCOPE_TAG`] and must not have been used before.
    pub(crate) async fn new(
        harness: Arc<dyn Harness>,
        scope: &str,
        transcript: Transcript,
        part: Part,
    ) -> Result<Self, Failure> {
        let tags = cleanup::owner_tags().with(SCOPE_TAG, scope);
        let scope = tags.map_err(|error| Failure::KitError(error.to_string()))?;
        let inner = policy_tags::hide(harness.open().await, &*harness);
        let provisioner = Arc::new(Recorder::new(inner, transcript.clone(), harness.budget()));
        Ok(Self {
            harness,
            provisioner,
            transcript,
            scope,
            tokens: AtomicU32::new(0),
            part,
        })
    }

    /// Returns whether this run of a sweep has the case with this number: in virtual time always, in real time unless
    /// the clause runs on several accounts ([`Harness::sweep_accounts`]) and another one has it.
    pub(crate) const fn has_case(&self, number: usize) -> bool {
        self.part.has(number)
    }

    /// Returns the clause's own handle. Its calls are recorded, time out after the harness's budget, and are
    /// retried if they are throttled.
    pub fn provisioner(&self) -> &dyn InstanceProvisioner {
        &*self.provisioner
    }

    /// Returns the clause's own handle, to share it with tasks.
    pub fn shared_provisioner(&self) -> Arc<dyn InstanceProvisioner> {
        Arc::clone(&self.provisioner)
    }

    /// Opens another handle on the same account, as a second or a restarted process would.
    pub async fn open_handle(&self) -> Arc<dyn InstanceProvisioner> {
        self.record(self.open_unrecorded_handle().await)
    }

    /// Opens another handle on the same account whose launch options differ, as after a new deployment.
    pub async fn open_handle_with_other_options(&self) -> Arc<dyn InstanceProvisioner> {
        let handle = self.harness.open_with_other_options().await;
        self.record(policy_tags::hide(handle, &*self.harness))
    }

    fn record(&self, inner: Arc<dyn InstanceProvisioner>) -> Arc<dyn InstanceProvisioner> {
        Arc::new(Recorder::new(
            inner,
            self.transcript.clone(),
            self.harness.budget(),
        ))
    }

    /// Opens another handle that is neither recorded nor guarded against panics and timeouts: for
    /// calls that are meant to hang or to be dropped.
    pub async fn open_unrecorded_handle(&self) -> Arc<dyn InstanceProvisioner> {
        policy_tags::hide(self.harness.open().await, &*self.harness)
    }

    /// Returns the harness.
    pub fn harness(&self) -> &dyn Harness {
        &*self.harness
    }

    /// Returns what the backend declares: limits, windows and optional features. Clauses derive from it
    /// what they may require.
    pub fn capabilities(&self) -> &Capabilities {
        self.provisioner.capabilities()
    }

    /// Returns the oracle.
    ///
    /// # Errors
    /// [`Failure::NotRun`] if the harness has none.
    pub fn oracle(&self) -> Result<Arc<dyn Oracle>, Failure> {
        let none = || Failure::NotRun("the harness has no oracle".to_owned());
        self.harness.oracle().ok_or_else(none)
    }

    /// Returns the fault injector, whose actions are recorded, if it supports all faults in `needed`. For a fault that it can do without,
    /// a clause calls [`Faults::supports`] itself.
    ///
    /// # Errors
    /// [`Failure::NotRun`] if the harness has none, or if it does not support all of `needed`, and
    /// [`Failure::NotApplicable`] if it declares that one of `needed` cannot occur.
    pub fn faults(&self, needed: &[WireFault]) -> Result<Arc<dyn Faults>, Failure> {
        for absent in needed.iter().filter_map(NotApplicable::of) {
            self.require_applicable(absent)?;
        }
        let none = || Failure::NotRun("the harness injects no faults".to_owned());
        let faults = self.harness.faults().ok_or_else(none)?;
        match needed.iter().find(|fault| !faults.supports(fault)) {
            Some(fault) => Err(Failure::NotRun(format!(
                "the harness does not support the fault {}",
                in_words(fault)
            ))),
            None => Ok(Arc::new(RecordedFaults::new(
                faults,
                self.transcript.clone(),
            ))),
        }
    }

    /// Ends a clause that is about something which the cloud does not have.
    ///
    /// # Errors
    /// [`Failure::NotApplicable`] if the harness declares that, and [`Failure::KitError`] if its
    /// declaration is false: it can inject the fault, or the backend declares the opposite.
    pub fn require_applicable(&self, part: NotApplicable) -> Result<(), Failure> {
        if !self.harness.not_applicable().contains(&part) {
            return Ok(());
        }
        let faults = self.harness.faults();
        Err(
            match part.contradiction(self.capabilities(), faults.as_deref()) {
                Some(contradiction) => Failure::KitError(contradiction),
                None => Failure::NotApplicable(part.reason().to_owned()),
            },
        )
    }

    /// Returns a zone that launches can name. If the backend does not declare zones, that is any name,
    /// because it refuses all of them.
    ///
    /// # Errors
    /// [`Failure::NotRun`] if zones are declared and the harness names none.
    pub fn zone(&self) -> Result<Zone, Failure> {
        if let Some(zone) = self.harness.zone() {
            return Ok(zone);
        }
        if self
            .capabilities()
            .placement
            .contains(&PlacementField::Zone)
        {
            return Err(Failure::NotRun("the harness names no zone".to_owned()));
        }
        Zone::new("kit-zone").map_err(|error| Failure::KitError(error.to_string()))
    }

    /// Removes the faults after the calls that they were meant for.
    ///
    /// # Errors
    /// [`Failure::NotRun`] if one of them was never injected, because the clause then proves nothing.
    pub async fn clear_faults(&self, faults: &Arc<dyn Faults>) -> Result<(), Failure> {
        if faults.clear().await {
            Ok(())
        } else {
            Err(Failure::NotRun(
                "the fault was never injected: no such call was made".to_owned(),
            ))
        }
    }

    /// Returns the external actor. Its actions are recorded.
    ///
    /// # Errors
    /// [`Failure::NotRun`] if the harness has none.
    pub fn external_actor(&self) -> Result<Arc<dyn ExternalActor>, Failure> {
        let none = || Failure::NotRun("the harness has no external actor".to_owned());
        let actor = self.harness.external_actor().ok_or_else(none)?;
        let transcript = self.transcript.clone();
        Ok(Arc::new(RecordedActor::new(actor, transcript)))
    }

    /// Says which fault every call gets from now on, or none. A call that is throttled by an announced
    /// fault is not retried: the clause wants its error.
    pub(crate) fn announce(&self, fault: Option<&WireFault>) {
        let delay = match fault {
            Some(WireFault::Throttled(delay)) => Some(*delay),
            _ => None,
        };
        self.transcript.set_injected_delay(delay);
    }

    /// Adds a line to the transcript, which is part of the message of a violation.
    pub fn note(&self, line: impl Into<String>) {
        self.transcript.note(line);
    }
}

/// Configs and filters.
impl Context {
    /// Returns the tags of this clause's scope.
    pub fn scope(&self) -> &Tags {
        &self.scope
    }

    /// Returns the harness's config with the scope's tags. Harnesses give it no token.
    pub fn config(&self) -> InstanceConfig {
        let mut config = self.harness.config();
        for (key, value) in &self.scope {
            // Cannot fail: the scope's tags come from a valid `Tags`.
            let _ = config.tags.insert(key, value);
        }
        config
    }

    /// Returns [`config`](Self::config) with a new token.
    pub fn config_with_token(&self) -> InstanceConfig {
        let mut config = self.config();
        config.launch_token = Some(self.new_token());
        config
    }

    /// Returns a new token. It is a UUID that depends on the scope and on how many tokens were created
    /// before, so no other clause and no other run uses it.
    pub fn new_token(&self) -> LaunchToken {
        let number = self.tokens.fetch_add(1, Ordering::SeqCst);
        let text = format!("{}-{number}", self.scope.get(SCOPE_TAG).unwrap_or_default());
        LaunchToken::from(uuid::Uuid::new_v5(
            &uuid::Uuid::NAMESPACE_OID,
            text.as_bytes(),
        ))
    }

    /// Returns the filter for this clause's instances that are not terminated.
    pub fn filter(&self) -> InstanceFilter {
        let mut filter = InstanceFilter::new();
        filter.tags = self.scope.clone();
        filter
    }

    /// Returns the harness's config with the scope's tags and `tags`.
    ///
    /// # Errors
    /// [`Failure::NotRun`] if the backend's declared limits do not allow these tags, and
    /// [`Failure::KitError`] if they are not valid tags at all.
    pub fn config_with_tags(&self, tags: &[(&str, &str)]) -> Result<InstanceConfig, Failure> {
        let mut config = self.config();
        for (key, value) in tags {
            let set = config.tags.insert(*key, *value);
            set.map_err(|error| Failure::KitError(error.to_string()))?;
        }
        let allowed = self.capabilities().tags.check(&config.tags);
        allowed.map_err(|error| {
            Failure::NotRun(format!(
                "the declared limits refuse the clause's tags: {error}"
            ))
        })?;
        Ok(config)
    }

    /// Returns whether a clause may have `count` instances at once: at most 1,100 in virtual time, and at
    /// most [32](crate::cost_guard::MOST_IN_REAL_TIME) in real time, where they take time and may cost money.
    pub fn can_launch(&self, count: usize) -> bool {
        match self.harness.time() {
            Time::Virtual => count <= 1_100,
            Time::Real => count <= MOST_IN_REAL_TIME,
        }
    }
}

/// Calls that must succeed. An error is a violation.
impl Context {
    /// Launches an instance with [`config`](Self::config), without waiting for anything.
    pub async fn launch(&self) -> Result<InstanceInfo, Failure> {
        self.launch_config(&self.config()).await
    }

    /// Launches `config`.
    pub async fn launch_config(&self, config: &InstanceConfig) -> Result<InstanceInfo, Failure> {
        let launched = self.provisioner.launch_instance(config).await;
        launched.map_err(|error| Failure::call_failed("launch_instance", &error))
    }

    /// Launches an instance and waits until it runs.
    pub async fn launch_running(&self) -> Result<InstanceInfo, Failure> {
        let info = self.launch().await?;
        self.wait_for_state(&info.id, CloudInstanceState::Running)
            .await?;
        Ok(info)
    }

    /// Launches an instance, waits until it runs, stops it and waits until it is stopped.
    pub async fn launch_stopped(&self) -> Result<InstanceInfo, Failure> {
        let info = self.launch_running().await?;
        self.stop(&info.id).await?;
        self.wait_for_state(&info.id, CloudInstanceState::Stopped)
            .await?;
        Ok(info)
    }

    /// Launches an instance, waits until it runs, terminates it and waits until it is terminated.
    pub async fn launch_terminated(&self) -> Result<InstanceInfo, Failure> {
        let info = self.launch_running().await?;
        self.terminate(&info.id).await?;
        self.wait_until_terminated(&info.id).await?;
        Ok(info)
    }

    /// Requests that an instance is stopped.
    pub async fn stop(&self, id: &InstanceId) -> Result<(), Failure> {
        let stopped = self.provisioner.stop_instance(id).await;
        stopped.map_err(|error| Failure::call_failed("stop_instance", &error))
    }

    /// Waits until reads show every earlier change, and requests that an instance is started. Without the
    /// wait, a stale read that still says running could be mistaken for the success of the start.
    pub async fn start(&self, id: &InstanceId) -> Result<InstanceInfo, Failure> {
        self.wait_for_consistent_reads().await;
        let started = self.provisioner.start_instance(id).await;
        started.map_err(|error| Failure::call_failed("start_instance", &error))
    }

    /// Requests that an instance is terminated.
    pub async fn terminate(&self, id: &InstanceId) -> Result<(), Failure> {
        let terminated = self.provisioner.terminate_instance(id).await;
        terminated.map_err(|error| Failure::call_failed("terminate_instance", &error))
    }

    /// Describes an instance.
    pub async fn describe(&self, id: &InstanceId) -> Result<InstanceStatus, Failure> {
        let described = self.provisioner.describe_instance(id).await;
        described.map_err(|error| Failure::call_failed("describe_instance", &error))
    }

    /// Lists the instances that `filter` selects.
    pub async fn list(&self, filter: &InstanceFilter) -> Result<Vec<InstanceInfo>, Failure> {
        let listed = self.provisioner.list_instances(filter).await;
        listed.map_err(|error| Failure::call_failed("list_instances", &error))
    }

    /// Waits until `id` is in the list of this scope, and returns its entry.
    pub async fn wait_until_listed(&self, id: &InstanceId) -> Result<InstanceInfo, Failure> {
        self.eventually(&format!("{id} is in the list of its tags"), async || {
            let list = self.list(&self.filter()).await?;
            Ok(list.into_iter().find(|info| info.id == *id))
        })
        .await
    }

    /// Launches `count` instances, one after the other, so that a cloud that lists by launch time has a
    /// defined order. Check [`can_launch`](Self::can_launch) first if `count` is not small.
    pub async fn launch_many(&self, count: usize) -> Result<Vec<InstanceId>, Failure> {
        let mut ids = Vec::with_capacity(count);
        for _ in 0..count {
            ids.push(self.launch().await?.id);
        }
        Ok(ids)
    }
}

/// Refusals, and the number of instances.
impl Context {
    /// Requires that a call failed with `kind`, and returns its error, so that the clause can check its effect
    /// and its retry advice. `call` describes the call at the beginning of the message.
    pub fn require_refused<T: std::fmt::Debug + 'static>(
        &self,
        call: &str,
        result: Result<T>,
        kind: ErrorKind,
    ) -> Result<ProvisionError, Failure> {
        match result {
            Ok(value) => Err(Failure::violated(format!(
                "{call} must fail as {kind}, but returned {}",
                shown_any(&value)
            ))),
            Err(error) if error.kind() == kind => Ok(error),
            Err(error) => Err(Failure::violated(format!(
                "{call} must fail as {kind}, but failed as: {error}"
            ))),
        }
    }

    /// Requires that the clause's scope has exactly `count` instances that are not terminated, by the
    /// list and, if there is one, by the oracle. Returns the list.
    pub async fn require_count(&self, count: usize) -> Result<Vec<InstanceInfo>, Failure> {
        self.wait_for_consistent_reads().await;
        let list = self.list(&self.filter()).await?;
        require(list.len() == count, || {
            format!(
                "{} instances are listed instead of {count}: {}",
                list.len(),
                names(&list)
            )
        })?;
        if let Some(oracle) = self.harness.oracle() {
            let truth = oracle.instances(&self.scope).await;
            let live = truth.iter().filter(|t| !t.info.state.is_final()).count();
            require(live == count, || {
                format!("the cloud has {live} instances instead of {count}")
            })?;
        }
        Ok(list)
    }

    /// Requires that a call failed with `kind` and effect none, and that the clause's scope is empty.
    /// Returns the error.
    pub async fn require_refused_without_effect<T: std::fmt::Debug + 'static>(
        &self,
        call: &str,
        result: Result<T>,
        kind: ErrorKind,
    ) -> Result<ProvisionError, Failure> {
        let error = self.require_refused(call, result, kind)?;
        require(error.effect() == Effect::None, || {
            format!("{call} must fail without effect, but failed as: {error}")
        })?;
        self.require_count(0).await?;
        Ok(error)
    }
}

/// Returns the ids of a list, for a message.
pub(crate) fn names(list: &[InstanceInfo]) -> String {
    list.iter()
        .map(|info| info.id.as_str())
        .collect::<Vec<_>>()
        .join(", ")
}
