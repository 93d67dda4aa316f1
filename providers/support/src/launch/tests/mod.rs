//! The steps of a launch on a cloud of maps.

use super::*;
use std::{collections::BTreeMap, num::NonZeroU32, sync::Mutex, time::Duration};

use fleetwright::{CloudInstanceState, ErrorKind, InstanceConfig, Operation, TagLimits};

/// A cloud that stores owner and fingerprint by name.
#[derive(Default)]
struct Cloud {
    instances: Mutex<BTreeMap<String, (String, Fingerprint)>>,
    /// Names that lookups by token miss, as stale lists do.
    hidden: Vec<String>,
    /// Whether all launches fail after they were accepted.
    failed_late: bool,
    /// Names whose creation fails.
    broken: Vec<String>,
    sent: Mutex<Vec<String>>,
}

struct Launch<'a> {
    cloud: &'a Cloud,
    context: LaunchContext<'a>,
}

fn info(name: &str) -> InstanceInfo {
    InstanceInfo::new(InstanceId::new(name).unwrap(), CloudInstanceState::Pending)
}

#[async_trait]
impl LaunchCalls for Launch<'_> {
    type Known = BTreeMap<String, InstanceInfo>;
    type Existing = InstanceInfo;
    type Accepted = InstanceInfo;
    type Native = (String, String, Fingerprint);

    async fn find_by_token(&self, token: &LaunchToken) -> Result<Self::Known> {
        let instances = self.cloud.instances.lock().unwrap().clone();
        let mut known = Self::Known::new();
        for (name, (owner, fingerprint)) in instances {
            if !self.cloud.hidden.contains(&name) {
                let native = (name.clone(), owner, fingerprint);
                self.context.check_marks(token, &self.marks(&native))?;
                known.insert(name.clone(), info(&name));
            }
        }
        Ok(known)
    }

    fn existing(&self, known: &Self::Known, name: &str) -> Option<InstanceInfo> {
        known.get(name).cloned()
    }

    async fn create(
        &self,
        name: &str,
        _: &Self::Known,
    ) -> std::result::Result<InstanceInfo, CreateError> {
        let call = self.context.call;
        self.cloud.sent.lock().unwrap().push(name.to_owned());
        if self.cloud.broken.iter().any(|broken| broken == name) {
            return Err(CreateError::Failed(call.timeout(Effect::Unknown)));
        }
        let mut instances = self.cloud.instances.lock().unwrap();
        if instances.contains_key(name) {
            let refusal = call.conflict("the name is taken", RetryAdvice::Never);
            return Err(CreateError::NameTaken(refusal));
        }
        let owner = self.context.owner.unwrap_or_default().to_owned();
        instances.insert(name.to_owned(), (owner, self.context.fingerprint));
        Ok(info(name))
    }

    async fn have_failed(&self, ids: &[InstanceId]) -> bool {
        let mut instances = self.cloud.instances.lock().unwrap();
        let failed = self.cloud.failed_late;
        if failed {
            instances.retain(|name, _| ids.iter().all(|id| id.as_str() != name));
        }
        failed
    }

    async fn read_by_name(&self, name: &str) -> Result<Option<Self::Native>> {
        let instances = self.cloud.instances.lock().unwrap();
        let native = instances.get(name).cloned();
        Ok(native.map(|(owner, fingerprint)| (name.to_owned(), owner, fingerprint)))
    }

    fn marks<'n>(&self, (name, owner, fingerprint): &'n Self::Native) -> Marks<'n> {
        Marks {
            name,
            id: InstanceId::new(name).ok(),
            owner: Some(owner),
            fingerprint: Some(*fingerprint),
        }
    }

    async fn adopt(&self, _: &LaunchToken, native: Self::Native) -> Result<InstanceInfo> {
        Ok(info(&native.0))
    }

    async fn settle(&self, attempts: Vec<Attempt<InstanceInfo, InstanceInfo>>) -> LaunchOutcome {
        let results = attempts.into_iter().map(|attempt| match attempt {
            Attempt::Existing { instance, .. } => Ok(instance),
            Attempt::Accepted { creation, .. } => Ok(creation),
        });
        results.collect()
    }
}

/// Launches `a` and `b` under the token `t` with the memory of a new handle.
async fn launch_both(cloud: &Cloud, image: &str, owner: &str) -> Result<Vec<InstanceInfo>> {
    launch_after(cloud, image, owner, &RecentTokens::new(), Duration::ZERO).await
}

/// Launches `a` and `b` under the token `t` with a memory of tokens.
async fn launch_after(
    cloud: &Cloud,
    image: &str,
    owner: &str,
    tokens: &RecentTokens,
    window: Duration,
) -> Result<Vec<InstanceInfo>> {
    let call = Call::new("test", Operation::LaunchInstances);
    let mut capabilities = Capabilities::new("test", TagLimits::new(10, 10, 10), 10);
    capabilities.consistency_window = window;
    let config = InstanceConfig::builder(image, "small").build().unwrap();
    let token = LaunchToken::new("t").unwrap();
    let launches = RecentLaunches::new();
    let context = LaunchContext {
        call: &call,
        capabilities: &capabilities,
        token: Some(&token),
        owner: Some(owner),
        fingerprint: config.fingerprint(NonZeroU32::MIN),
        concurrency: 2,
        first_alone: true,
        recent_launches: &launches,
        recent_tokens: tokens,
    };
    let names = ["a".to_owned(), "b".to_owned()];
    launch(&Launch { cloud, context }, &context, &names).await
}

fn sent(cloud: &Cloud) -> Vec<String> {
    std::mem::take(&mut *cloud.sent.lock().unwrap())
}

#[tokio::test]
async fn replay_returns_the_same_instances_without_a_creation() {
    let cloud = Cloud::default();
    let first = launch_both(&cloud, "image", "me").await.unwrap();
    assert_eq!((first.len(), sent(&cloud).len()), (2, 2));
    let replay = launch_both(&cloud, "image", "me").await.unwrap();
    assert_eq!(replay, first);
    assert!(sent(&cloud).is_empty());
}

#[tokio::test]
async fn instance_that_the_lookup_misses_is_adopted_by_name() {
    let mut cloud = Cloud::default();
    let first = launch_both(&cloud, "image", "me").await.unwrap();
    cloud.hidden = vec!["b".to_owned()];
    let replay = launch_both(&cloud, "image", "me").await.unwrap();
    assert_eq!(replay, first);
    assert_eq!(cloud.instances.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn another_config_or_owner_is_refused_without_effect() {
    let cloud = Cloud::default();
    launch_both(&cloud, "image", "me").await.unwrap();
    sent(&cloud);
    let error = launch_both(&cloud, "other", "me").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TokenConflict, "{error}");
    let error = launch_both(&cloud, "image", "you").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    assert_eq!(error.effect(), Effect::None, "{error}");
    assert!(sent(&cloud).is_empty());
}

#[tokio::test(start_paused = true)]
async fn token_of_a_recent_launch_is_free_only_if_it_failed_late() {
    let (mut cloud, tokens) = (Cloud::default(), RecentTokens::new());
    let window = Duration::from_secs(9);
    let launched = launch_after(&cloud, "image", "me", &tokens, window).await;
    launched.unwrap();
    let other = launch_after(&cloud, "other", "me", &tokens, window).await;
    assert_eq!(other.unwrap_err().kind(), ErrorKind::TokenConflict);
    cloud.failed_late = true;
    let other = launch_after(&cloud, "other", "me", &tokens, window).await;
    assert_eq!(other.unwrap().len(), 2);
}

#[tokio::test]
async fn failed_first_instance_stops_the_batch_and_a_later_one_leaves_survivors() {
    let mut cloud = Cloud {
        broken: vec!["a".to_owned()],
        ..Cloud::default()
    };
    launch_both(&cloud, "image", "me").await.unwrap_err();
    assert_eq!(sent(&cloud), ["a"]);
    cloud.broken = vec!["b".to_owned()];
    let error = launch_both(&cloud, "image", "me").await.unwrap_err();
    assert_eq!(error.effect(), Effect::Unknown, "{error}");
    assert_eq!(error.survivors().len(), 1);
}

#[test]
fn worst_error_has_unknown_effect() {
    let call = Call::new("test", Operation::LaunchInstances);
    let mut outcome = LaunchOutcome::default();
    outcome.add_error(call.quota(Scope::Account, "full"));
    outcome.add_error(call.timeout(Effect::Unknown));
    outcome.add_error(call.throttled(Duration::from_secs(1)));
    assert!(!outcome.is_ok());
    let error = outcome.into_result().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
}
