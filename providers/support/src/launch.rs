//! Launching with and without a launch token, for clouds that give instances names of our choice.
//!
//! Owns the sequence that makes a launch repeatable: compare the token with recent ones, find what
//! it has launched, adopt or create each instance by name, settle what was sent, and record the
//! result. The cloud's calls come from [`LaunchCalls`]. It must never create a second instance for
//! a name.

mod names;

use std::fmt;

use crate::{RecentLaunches, RecentTokens, read_until};
use async_trait::async_trait;
use fleetwright::{
    Call, Capabilities, Effect, Fingerprint, InstanceId, InstanceInfo, LaunchToken, ProvisionError,
    Result, RetryAdvice, Scope,
};
use futures_util::{StreamExt as _, future::BoxFuture, stream};

pub use names::{instance_names, is_spent};

/// The calls of one cloud that a launch is made of. One value serves one launch.
///
/// The names of a launch follow from its token, so that a replay uses the same names and the
/// cloud itself refuses a second instance. Each instance carries [`Marks`]: a digest of the token
/// and the fingerprint of its config.
///
/// ```
/// use std::{collections::BTreeMap, num::NonZeroU32, sync::Mutex};
///
/// use fleetwright::{
///     Call, Capabilities, CloudInstanceState, Fingerprint, InstanceConfig, InstanceId, InstanceInfo, LaunchToken,
///     Operation, Result, RetryAdvice, TagLimits, async_trait,
/// };
/// use fleetwright_provider_support::{
///     RecentLaunches, RecentTokens,
///     launch::{Attempt, CreateError, LaunchCalls, LaunchContext, LaunchOutcome, Marks, launch},
/// };
///
/// /// A cloud that stores the token's digest and the fingerprint of each instance by name.
/// type Cloud = Mutex<BTreeMap<String, (String, Fingerprint)>>;
///
/// struct Launch<'a> {
///     cloud: &'a Cloud,
///     context: &'a LaunchContext<'a>,
/// }
///
/// fn info(name: &str) -> InstanceInfo {
///     InstanceInfo::new(InstanceId::new(name).unwrap(), CloudInstanceState::Pending)
/// }
///
/// #[async_trait]
/// impl LaunchCalls for Launch<'_> {
///     type Known = BTreeMap<String, InstanceInfo>;
///     type Existing = InstanceInfo;
///     type Accepted = InstanceInfo;
///     type Native = (String, String, Fingerprint);
///
///     async fn find_by_token(&self, token: &LaunchToken) -> Result<Self::Known> {
///         let mut known = Self::Known::new();
///         for (name, (owner, fingerprint)) in self.cloud.lock().unwrap().clone() {
///             let native = (name, owner, fingerprint);
///             self.context.check_marks(token, &self.marks(&native))?;
///             known.insert(native.0.clone(), info(&native.0));
///         }
///         Ok(known)
///     }
///     fn existing(&self, known: &Self::Known, name: &str) -> Option<InstanceInfo> {
///         known.get(name).cloned()
///     }
///     async fn create(&self, name: &str, _: &Self::Known) -> std::result::Result<InstanceInfo, CreateError> {
///         let mut instances = self.cloud.lock().unwrap();
///         if instances.contains_key(name) {
///             let refusal = self.context.call.conflict("the name is taken", RetryAdvice::Never);
///             return Err(CreateError::NameTaken(refusal));
///         }
///         let owner = self.context.owner.unwrap_or_default().to_owned();
///         instances.insert(name.to_owned(), (owner, self.context.fingerprint));
///         Ok(info(name))
///     }
///     async fn have_failed(&self, _: &[InstanceId]) -> bool {
///         false
///     }
///     async fn read_by_name(&self, name: &str) -> Result<Option<Self::Native>> {
///         let found = self.cloud.lock().unwrap().get(name).cloned();
///         Ok(found.map(|(owner, fingerprint)| (name.to_owned(), owner, fingerprint)))
///     }
///     fn marks<'n>(&self, (name, owner, fingerprint): &'n Self::Native) -> Marks<'n> {
///         Marks { name, id: InstanceId::new(name).ok(), owner: Some(owner), fingerprint: Some(*fingerprint) }
///     }
///     async fn adopt(&self, _: &LaunchToken, native: Self::Native) -> Result<InstanceInfo> {
///         Ok(info(&native.0))
///     }
///     async fn settle(&self, attempts: Vec<Attempt<InstanceInfo, InstanceInfo>>) -> LaunchOutcome {
///         let results = attempts.into_iter().map(|attempt| match attempt {
///             Attempt::Existing { instance, .. } => Ok(instance),
///             Attempt::Accepted { creation, .. } => Ok(creation),
///         });
///         results.collect()
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
/// let (call, token) = (Call::new("acme", Operation::LaunchInstance), LaunchToken::new("blue/slot-1")?);
/// let context = LaunchContext {
///     call: &call,
///     capabilities: &Capabilities::new("acme", TagLimits::new(50, 128, 256), 16_384),
///     token: Some(&token),
///     owner: Some("digest of the token"),
///     fingerprint: InstanceConfig::builder("image-1", "small").build()?.fingerprint(NonZeroU32::MIN),
///     concurrency: 2,
///     first_alone: false,
///     recent_launches: &RecentLaunches::new(),
///     recent_tokens: &RecentTokens::new(),
/// };
/// let (cloud, names) = (Cloud::default(), ["vm-1".to_owned()]);
/// let calls = Launch { cloud: &cloud, context: &context };
/// let first = launch(&calls, &context, &names).await?;
/// let replay = launch(&calls, &context, &names).await?;
/// assert_eq!(first[0].id, replay[0].id, "one instance for one token");
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait LaunchCalls: Sync {
    /// All that a token has launched before, as far as reads show it. Its default is a launch
    /// without a token, or with one that was never used.
    type Known: Default + Send + Sync;
    /// An instance that existed before this attempt.
    type Existing: Send;
    /// A creation that the cloud has accepted in this attempt.
    type Accepted: Send;
    /// An instance as the cloud's reads return it.
    type Native: Send + Sync;

    /// Finds all that `token` has launched.
    ///
    /// # Errors
    ///
    /// An error of [`LaunchContext::check_marks`] for any instance with a name of the token, and
    /// [`Call::token_spent`] if nothing of it is alive.
    async fn find_by_token(&self, token: &LaunchToken) -> Result<Self::Known>;

    /// Returns the known instance with this name.
    fn existing(&self, known: &Self::Known, name: &str) -> Option<Self::Existing>;

    /// Sends the creation of one instance.
    async fn create(
        &self,
        name: &str,
        known: &Self::Known,
    ) -> std::result::Result<Self::Accepted, CreateError>;

    /// Sends the creations of several instances, `concurrency` at a time. Returns one result for each name, in the same
    /// order. A cloud that creates many instances with one call overrides it.
    async fn create_many(
        &self,
        names: &[String],
        known: &Self::Known,
        concurrency: usize,
    ) -> Vec<std::result::Result<Self::Accepted, CreateError>> {
        let each: Vec<_> = names.iter().map(|name| self.create(name, known)).collect();
        stream::iter(each)
            .buffered(concurrency.max(1))
            .collect()
            .await
    }

    /// Returns whether the launches of all these instances failed after they were accepted.
    async fn have_failed(&self, ids: &[InstanceId]) -> bool;

    /// Reads the instance that has a name now. `None` if there is none.
    async fn read_by_name(&self, name: &str) -> Result<Option<Self::Native>>;

    /// Returns the marks of an instance.
    fn marks<'n>(&self, native: &'n Self::Native) -> Marks<'n>;

    /// Turns an instance whose marks match into the result of this launch.
    ///
    /// # Errors
    ///
    /// [`Call::token_spent`] if the instance is terminating or terminated.
    async fn adopt(&self, token: &LaunchToken, native: Self::Native) -> Result<Self::Existing>;

    /// Waits for accepted creations as long as the backend waits for late failures, and returns
    /// what became of each attempt.
    async fn settle(&self, attempts: Vec<Attempt<Self::Existing, Self::Accepted>>)
    -> LaunchOutcome;
}

/// One instance of a launch, before it is settled.
#[derive(Debug)]
pub enum Attempt<E, A> {
    /// It existed before.
    Existing {
        /// Its name.
        name: String,
        /// The instance.
        instance: E,
    },
    /// Its creation was accepted.
    Accepted {
        /// Its name.
        name: String,
        /// The creation.
        creation: A,
    },
}

/// Why a creation was not accepted.
#[derive(Debug)]
pub enum CreateError {
    /// Another instance has the name. With a token it may be this launch's own; the error is
    /// returned if no read shows it, or if the launch has no token.
    NameTaken(ProvisionError),
    /// Anything else.
    Failed(ProvisionError),
}

/// What an instance carries to show which launch it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marks<'n> {
    /// The name by which the launch was sent.
    pub name: &'n str,
    /// Its id, if the read is complete enough for one.
    pub id: Option<InstanceId>,
    /// The digest of its launch token.
    pub owner: Option<&'n str>,
    /// The fingerprint of its config.
    pub fingerprint: Option<Fingerprint>,
}

/// What a launch is compared with and recorded in.
#[derive(Clone, Copy)]
pub struct LaunchContext<'a> {
    /// The call, for errors.
    pub call: &'a Call,
    /// The capabilities of the backend: its consistency window and poll interval are used.
    pub capabilities: &'a Capabilities,
    /// The launch token, if there is one.
    pub token: Option<&'a LaunchToken>,
    /// The digest of the token that the instances carry.
    pub owner: Option<&'a str>,
    /// The fingerprint of config and count.
    pub fingerprint: Fingerprint,
    /// How many creations are sent at the same time.
    pub concurrency: usize,
    /// Whether the first creation must be accepted before the others are sent.
    pub first_alone: bool,
    /// The backend's memory of launched instances.
    pub recent_launches: &'a RecentLaunches,
    /// The backend's memory of used tokens.
    pub recent_tokens: &'a RecentTokens,
}

impl fmt::Debug for LaunchContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaunchContext")
            .field("token", &self.token)
            .field("fingerprint", &self.fingerprint)
            .finish_non_exhaustive()
    }
}

impl LaunchContext<'_> {
    /// Checks that an instance with a name of this launch belongs to it.
    ///
    /// # Errors
    ///
    /// A conflict if the instance has another owner, and [`Call::token_conflict`] if it was
    /// launched with another config.
    pub fn check_marks(&self, token: &LaunchToken, marks: &Marks<'_>) -> Result<()> {
        if marks.owner != self.owner {
            let message = format!(
                "the name {} is taken by an instance that this launch token did not create",
                marks.name
            );
            let error = self.call.conflict(&message, RetryAdvice::Never);
            return Err(match &marks.id {
                Some(id) => error.with_scope(Scope::Instance(id.clone())),
                None => error,
            });
        }
        if marks.fingerprint != Some(self.fingerprint) {
            return Err(self.call.token_conflict(token));
        }
        Ok(())
    }

    /// Refuses a token that this backend used for another config within the consistency window, unless
    /// all of that launch failed late: then the token is free.
    async fn check_recent_token<C: LaunchCalls>(
        &self,
        calls: &C,
        token: &LaunchToken,
    ) -> Result<()> {
        let window = self.capabilities.consistency_window;
        let other = self
            .recent_tokens
            .other_launch(token, self.fingerprint, window);
        match other {
            Some(ids) if ids.is_empty() || !calls.have_failed(&ids).await => {
                Err(self.call.token_conflict(token))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Records what was launched, and returns it or the error with the survivors.
    fn record(&self, outcome: LaunchOutcome) -> Result<Vec<InstanceInfo>> {
        let window = self.capabilities.consistency_window;
        self.recent_launches.record(&outcome.launched, window);
        let launched = outcome.into_result()?;
        if let Some(token) = self.token {
            self.recent_tokens
                .record_launch(token, self.fingerprint, &launched, window);
        }
        Ok(launched)
    }
}

/// What became of the instances of a launch.
#[derive(Debug, Default)]
pub struct LaunchOutcome {
    launched: Vec<InstanceInfo>,
    error: Option<ProvisionError>,
}

impl LaunchOutcome {
    /// Adds the result of one instance.
    pub fn add(&mut self, result: Result<InstanceInfo>) {
        match result {
            Ok(info) => self.launched.push(info),
            Err(error) => self.add_error(error),
        }
    }

    /// Adds an error. The first one is kept, unless only a later one has an unknown effect.
    pub fn add_error(&mut self, error: ProvisionError) {
        let unknown = |error: &ProvisionError| error.effect() == Effect::Unknown;
        let replaces = self
            .error
            .as_ref()
            .is_none_or(|first| !unknown(first) && unknown(&error));
        if replaces {
            self.error = Some(error);
        }
    }

    /// Whether every instance was launched so far.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.error.is_none()
    }

    /// Returns the instances, or the error with the instances that exist all the same.
    ///
    /// # Errors
    ///
    /// The one that [`add_error`](Self::add_error) kept.
    pub fn into_result(self) -> Result<Vec<InstanceInfo>> {
        match self.error {
            None => Ok(self.launched),
            Some(error) if self.launched.is_empty() => Err(error),
            Some(error) => Err(error.with_survivors(self.launched)),
        }
    }
}

impl FromIterator<Result<InstanceInfo>> for LaunchOutcome {
    fn from_iter<I: IntoIterator<Item = Result<InstanceInfo>>>(results: I) -> Self {
        let mut outcome = Self::default();
        for result in results {
            outcome.add(result);
        }
        outcome
    }
}

/// Launches one instance per name. [`LaunchCalls`] has an example.
///
/// With a token: refuses it if it was used for another config or is spent, adopts what it has
/// launched before, and creates the rest. Without one, `names` are random and all are created.
///
/// # Errors
///
/// The worst error of all instances, with the launched ones as survivors.
pub async fn launch<C: LaunchCalls>(
    calls: &C,
    context: &LaunchContext<'_>,
    names: &[String],
) -> Result<Vec<InstanceInfo>> {
    let known = match context.token {
        Some(token) => {
            context.check_recent_token(calls, token).await?;
            let known = calls.find_by_token(token).await;
            known.map_err(|error| error.with_effect(Effect::None))?
        }
        None => C::Known::default(),
    };
    let (first, others) = names.split_at(usize::from(context.first_alone).min(names.len()));
    let mut attempts = Vec::with_capacity(names.len());
    for name in first {
        attempts.push(match calls.existing(&known, name) {
            Some(instance) => existing(name, instance),
            None => {
                let created = calls.create(name, &known).await;
                complete(calls, context, name, created).await?
            }
        });
    }
    let mut errors = LaunchOutcome::default();
    let others: Vec<_> = others
        .iter()
        .map(|name| (name, calls.existing(&known, name)))
        .collect();
    let missing = others.iter().filter(|(_, known)| known.is_none());
    let missing: Vec<_> = missing.map(|(name, _)| (*name).clone()).collect();
    let created = match &missing[..] {
        [] => Vec::new(),
        missing => {
            calls
                .create_many(missing, &known, context.concurrency)
                .await
        }
    };
    let mut created = created.into_iter();
    let others = others.into_iter().map(|(name, known)| match known {
        Some(instance) => Some((name, Ok(instance))),
        None => created.next().map(|created| (name, Err(created))),
    });
    let others: Vec<_> = others.flatten().collect();
    let others = others.into_iter().map(|(name, result)| async move {
        match result {
            Ok(instance) => Ok(existing(name, instance)),
            Err(created) => complete(calls, context, name, created).await,
        }
    });
    let others: Vec<_> = others.collect();
    let mut others = stream::iter(others).buffered(context.concurrency.max(1));
    while let Some(result) = others.next().await {
        match result {
            Ok(attempt) => attempts.push(attempt),
            Err(error) => errors.add_error(error),
        }
    }
    drop(others);
    let mut outcome = calls.settle(attempts).await;
    let late = outcome.error.take();
    outcome.error = errors.error;
    if let Some(late) = late {
        outcome.add_error(late);
    }
    context.record(outcome)
}

/// Returns the attempt of an instance that existed before.
fn existing<E, A>(name: &str, instance: E) -> Attempt<E, A> {
    Attempt::Existing {
        name: name.to_owned(),
        instance,
    }
}

/// Turns the result of a creation into an attempt: the instance of a taken name is adopted.
async fn complete<C: LaunchCalls>(
    calls: &C,
    context: &LaunchContext<'_>,
    name: &str,
    created: std::result::Result<C::Accepted, CreateError>,
) -> Result<Attempt<C::Existing, C::Accepted>> {
    match (created, context.token) {
        (Ok(creation), _) => Ok(Attempt::Accepted {
            name: name.to_owned(),
            creation,
        }),
        (Err(CreateError::NameTaken(refusal)), Some(token)) => {
            let adopted = adopt_by_name(calls, context, token, name, refusal).await?;
            Ok(existing(name, adopted))
        }
        (Err(CreateError::NameTaken(error) | CreateError::Failed(error)), _) => Err(error),
    }
}

/// Adopts the instance that took a name, once reads show it. Returns `refusal` if none does within
/// the usual lag of reads. [`launch`] calls it; [`LaunchCalls`] has an example.
///
/// # Errors
///
/// Those of [`LaunchContext::check_marks`] and [`LaunchCalls::adopt`], and `refusal`.
pub async fn adopt_by_name<C: LaunchCalls>(
    calls: &C,
    context: &LaunchContext<'_>,
    token: &LaunchToken,
    name: &str,
    refusal: ProvisionError,
) -> Result<C::Existing> {
    let read = || -> BoxFuture<'_, _> { Box::pin(calls.read_by_name(name)) };
    let shown = read_until(context.capabilities, read, Option::is_some).await;
    let shown = shown.map_err(|error| error.with_effect(Effect::None))?;
    let native = shown.ok_or(refusal)?;
    context.check_marks(token, &calls.marks(&native))?;
    calls.adopt(token, native).await
}

#[cfg(test)]
mod tests;
