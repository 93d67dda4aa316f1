//! What a clause works with: a fresh account, recorded handles, and time without sleeping.
//!
//! Clauses never sleep. They say what must [eventually](Cx::eventually) be so within the harness's
//! budget, or [consistently](Cx::consistently) for a window; in virtual time both take none.

mod waiting;

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use fleetwright::{
    Capabilities, CloudInstanceState, Effect, ErrorKind, InstanceConfig, InstanceFilter,
    InstanceId, InstanceInfo, InstanceProvisioner, InstanceStatus, LaunchToken, ProvisionError,
    Result, Tags,
};

use crate::{
    Faults, Harness, Oracle, Outsider, Stop, Time, WireFault,
    recorder::{Recorder, Transcript},
    require, sweep,
};

/// The tag by which a sweep knows what the kit launched.
pub const OWNER_TAG: &str = "fleetwright-contract";

/// The value of [`OWNER_TAG`].
pub const OWNER_VALUE: &str = "launched by the contract kit";

/// The tag that everything the kit launches carries, with a value for each clause.
pub const SCOPE_TAG: &str = "fleetwright-contract-scope";

/// The context of one clause.
pub struct Cx {
    harness: Arc<dyn Harness>,
    provisioner: Arc<dyn InstanceProvisioner>,
    transcript: Transcript,
    scope: Tags,
    tokens: AtomicU32,
}

impl std::fmt::Debug for Cx {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cx")
            .field("scope", &self.scope)
            .finish_non_exhaustive()
    }
}

/// Handles and what the harness offers.
impl Cx {
    pub(crate) async fn new(
        harness: Arc<dyn Harness>,
        scope: &str,
        transcript: Transcript,
    ) -> Result<Self, Stop> {
        let tags = sweep::owned().with(SCOPE_TAG, scope);
        let scope = tags.map_err(|error| Stop::Kit(error.to_string()))?;
        let inner = harness.open().await;
        let provisioner = Arc::new(Recorder::new(inner, transcript.clone(), harness.budget()));
        Ok(Self {
            harness,
            provisioner,
            transcript,
            scope,
            tokens: AtomicU32::new(0),
        })
    }

    /// The clause's own handle.
    pub fn provisioner(&self) -> &dyn InstanceProvisioner {
        &*self.provisioner
    }

    /// The clause's own handle, to be shared with tasks.
    pub fn shared(&self) -> Arc<dyn InstanceProvisioner> {
        Arc::clone(&self.provisioner)
    }

    /// Another handle on the same account, as a second or a restarted process has it.
    pub async fn other_handle(&self) -> Arc<dyn InstanceProvisioner> {
        let inner = self.harness.open().await;
        Arc::new(Recorder::new(
            inner,
            self.transcript.clone(),
            self.harness.budget(),
        ))
    }

    /// Another handle that is neither recorded nor guarded: for calls that are meant to hang or to
    /// be dropped.
    pub async fn bare_handle(&self) -> Arc<dyn InstanceProvisioner> {
        self.harness.open().await
    }

    /// The harness.
    pub fn harness(&self) -> &dyn Harness {
        &*self.harness
    }

    /// What the backend declares.
    pub fn capabilities(&self) -> &Capabilities {
        self.provisioner.capabilities()
    }

    /// The truth, or the end of a clause that cannot do without it.
    pub fn oracle(&self) -> Result<Arc<dyn Oracle>, Stop> {
        let none = || Stop::NotRun("the harness has no oracle".to_owned());
        self.harness.oracle().ok_or_else(none)
    }

    /// The faults, or the end of a clause that cannot do without all of `needed`.
    pub fn faults(&self, needed: &[WireFault]) -> Result<Arc<dyn Faults>, Stop> {
        let none = || Stop::NotRun("the harness injects no faults".to_owned());
        let faults = self.harness.faults().ok_or_else(none)?;
        match needed.iter().find(|fault| !faults.offers(fault)) {
            Some(fault) => Err(Stop::NotRun(format!(
                "the harness does not offer {fault:?}"
            ))),
            None => Ok(faults),
        }
    }

    /// Clears the faults; one that never struck means that the clause has proven nothing.
    pub async fn struck(&self, faults: &Arc<dyn Faults>) -> Result<(), Stop> {
        if faults.clear().await {
            Ok(())
        } else {
            Err(Stop::NotRun(
                "the fault never struck: no such call was made".to_owned(),
            ))
        }
    }

    /// The outsider, or the end of a clause that cannot do without one.
    pub fn outsider(&self) -> Result<Arc<dyn Outsider>, Stop> {
        let none = || Stop::NotRun("the harness has no outsider".to_owned());
        self.harness.outsider().ok_or_else(none)
    }

    /// Writes a line into the transcript that a violation shows.
    pub fn note(&self, line: impl Into<String>) {
        self.transcript.note(line);
    }
}

/// What to launch and to look for.
impl Cx {
    /// The tags of this clause's scope.
    pub fn scope(&self) -> &Tags {
        &self.scope
    }

    /// The harness's config with the scope's tags and no token.
    pub fn config(&self) -> InstanceConfig {
        let mut config = self.harness.config();
        for (key, value) in &self.scope {
            // The scope's tags came out of a `Tags`, so they go into one.
            let _ = config.tags.insert(key, value);
        }
        config
    }

    /// The same with a token that no other config of this clause has.
    pub fn config_with_token(&self) -> InstanceConfig {
        let mut config = self.config();
        config.launch_token = Some(self.token());
        config
    }

    /// A token of this clause, another one each time.
    pub fn token(&self) -> LaunchToken {
        let number = self.tokens.fetch_add(1, Ordering::SeqCst);
        let text = format!("{}-{number}", self.scope.get(SCOPE_TAG).unwrap_or_default());
        LaunchToken::from(uuid::Uuid::new_v5(
            &uuid::Uuid::NAMESPACE_OID,
            text.as_bytes(),
        ))
    }

    /// What this clause launched and is not terminated.
    pub fn filter(&self) -> InstanceFilter {
        let mut filter = InstanceFilter::new();
        filter.tags = self.scope.clone();
        filter
    }

    /// The harness's config with the scope's tags and these, or the end of a clause for whose tags
    /// the declared limits leave no room.
    pub fn config_tagged(&self, tags: &[(&str, &str)]) -> Result<InstanceConfig, Stop> {
        let mut config = self.config();
        for (key, value) in tags {
            let set = config.tags.insert(*key, *value);
            set.map_err(|error| Stop::Kit(error.to_string()))?;
        }
        let taken = self.capabilities().tags.check(&config.tags);
        taken.map_err(|error| {
            Stop::NotRun(format!(
                "the declared limits refuse the clause's tags: {error}"
            ))
        })?;
        Ok(config)
    }

    /// Whether a clause may have so many instances here at once: they cost time and money where
    /// time is real.
    pub fn can_launch(&self, count: usize) -> bool {
        match self.harness.time() {
            Time::Virtual => count <= 1_100,
            Time::Real => count <= 32,
        }
    }
}

/// Calls that must succeed.
impl Cx {
    /// Launches one.
    pub async fn launch(&self) -> Result<InstanceInfo, Stop> {
        self.launch_as(&self.config()).await
    }

    /// Launches `config`.
    pub async fn launch_as(&self, config: &InstanceConfig) -> Result<InstanceInfo, Stop> {
        let launched = self.provisioner.launch_instance(config).await;
        launched.map_err(|error| Stop::failed("launch_instance", &error))
    }

    /// Launches one and waits until it runs.
    pub async fn running(&self) -> Result<InstanceInfo, Stop> {
        let info = self.launch().await?;
        self.reach(&info.id, CloudInstanceState::Running).await?;
        Ok(info)
    }

    /// Launches one, waits until it runs, and stops it.
    pub async fn stopped(&self) -> Result<InstanceInfo, Stop> {
        let info = self.running().await?;
        self.stop(&info.id).await?;
        self.reach(&info.id, CloudInstanceState::Stopped).await?;
        Ok(info)
    }

    /// Launches one and terminates it to the end.
    pub async fn terminated(&self) -> Result<InstanceInfo, Stop> {
        let info = self.running().await?;
        self.terminate(&info.id).await?;
        self.gone(&info.id).await?;
        Ok(info)
    }

    /// Stops one.
    pub async fn stop(&self, id: &InstanceId) -> Result<(), Stop> {
        let stopped = self.provisioner.stop_instance(id).await;
        stopped.map_err(|error| Stop::failed("stop_instance", &error))
    }

    /// Starts one, once reads show what was done to it before: a lagging read that still says
    /// running must not be taken for the start's success.
    pub async fn start(&self, id: &InstanceId) -> Result<InstanceInfo, Stop> {
        self.settle_reads().await;
        let started = self.provisioner.start_instance(id).await;
        started.map_err(|error| Stop::failed("start_instance", &error))
    }

    /// Terminates one.
    pub async fn terminate(&self, id: &InstanceId) -> Result<(), Stop> {
        let terminated = self.provisioner.terminate_instance(id).await;
        terminated.map_err(|error| Stop::failed("terminate_instance", &error))
    }

    /// Describes one.
    pub async fn describe(&self, id: &InstanceId) -> Result<InstanceStatus, Stop> {
        let described = self.provisioner.describe_instance(id).await;
        described.map_err(|error| Stop::failed("describe_instance", &error))
    }

    /// Lists what `filter` selects.
    pub async fn list(&self, filter: &InstanceFilter) -> Result<Vec<InstanceInfo>, Stop> {
        let listed = self.provisioner.list_instances(filter).await;
        listed.map_err(|error| Stop::failed("list_instances", &error))
    }

    /// The entry of `id` in the list of this scope, once it is there.
    pub async fn listed(&self, id: &InstanceId) -> Result<InstanceInfo, Stop> {
        self.eventually(&format!("{id} is in the list of its tags"), async || {
            let list = self.list(&self.filter()).await?;
            Ok(list.into_iter().find(|info| info.id == *id))
        })
        .await
    }

    /// Launches `count`, one by one.
    pub async fn launch_many(&self, count: usize) -> Result<Vec<InstanceId>, Stop> {
        let mut ids = Vec::with_capacity(count);
        for _ in 0..count {
            ids.push(self.launch().await?.id);
        }
        Ok(ids)
    }
}

/// Refusals.
impl Cx {
    /// Demands that a call failed with `kind`, and answers its error.
    pub fn refused<T: std::fmt::Debug>(
        &self,
        call: &str,
        answer: Result<T>,
        kind: ErrorKind,
    ) -> Result<ProvisionError, Stop> {
        match answer {
            Ok(value) => Err(Stop::violated(format!(
                "{call} must fail as {kind}, but answered {value:?}"
            ))),
            Err(error) if error.kind() == kind => Ok(error),
            Err(error) => Err(Stop::violated(format!(
                "{call} must fail as {kind}, but: {error}"
            ))),
        }
    }

    /// Demands that the clause's scope holds exactly `count` instances that are not terminated,
    /// by the list and, where there is one, by the oracle.
    pub async fn exactly(&self, count: usize) -> Result<Vec<InstanceInfo>, Stop> {
        self.settle_reads().await;
        let list = self.list(&self.filter()).await?;
        require(list.len() == count, || {
            format!(
                "{} instances are listed where {count} must be: {}",
                list.len(),
                names(&list)
            )
        })?;
        if let Some(oracle) = self.harness.oracle() {
            let truth = oracle.instances(&self.scope).await;
            let live = truth.iter().filter(|t| !t.info.state.is_final()).count();
            require(live == count, || {
                format!("the cloud has {live} instances where {count} must be")
            })?;
        }
        Ok(list)
    }

    /// Demands that a call failed with `kind`, said that it had no effect, and left the clause's
    /// scope empty.
    pub async fn refused_and_nothing_made<T: std::fmt::Debug>(
        &self,
        call: &str,
        answer: Result<T>,
        kind: ErrorKind,
    ) -> Result<ProvisionError, Stop> {
        let error = self.refused(call, answer, kind)?;
        require(error.effect() == Effect::None, || {
            format!("{call} must fail without effect, but: {error}")
        })?;
        self.exactly(0).await?;
        Ok(error)
    }
}

/// Their ids, for a message.
pub(crate) fn names(list: &[InstanceInfo]) -> String {
    list.iter()
        .map(|info| info.id.as_str())
        .collect::<Vec<_>>()
        .join(", ")
}
