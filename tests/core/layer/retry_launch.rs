//! Retries of launches, and the final lookup by token, on the memory cloud.

use fleetwright::{
    CloudInstanceState, Effect, ErrorKind, InstanceConfig, InstanceInfo, InstanceProvisioner as _,
    LaunchRecord, Market, NetworkId, Operation, PublicAddress, RetryAdvice, SecurityGroupId, Zone,
    layer::{Layered, Retry, RetryPolicy},
};
use fleetwright_memory::{Fault, MemoryCloud, MemoryProvisioner, Phase, Rule, WireCall};

use super::{
    live, many, plain,
    scripted::{Response, Scripted, info},
    token, with_token,
};
use crate::fake::{call, id, secs};

fn open(cloud: &MemoryCloud) -> Layered<MemoryProvisioner, Retry> {
    Layered::new(cloud.provisioner(), Retry::new(RetryPolicy::default()))
}

fn unknown(phase: Phase) -> [Fault; 2] {
    [Fault::Lost(phase), Fault::ServerError(phase)]
}

#[tokio::test(start_paused = true)]
async fn launch_without_token_and_unknown_outcome_is_sent_once() {
    for fault in [Phase::Before, Phase::After].into_iter().flat_map(unknown) {
        let cloud = MemoryCloud::new();
        cloud
            .faults()
            .add(Rule::nth(WireCall::Launch, 1, fault.clone()));
        let error = open(&cloud).launch_instance(&plain()).await.unwrap_err();
        assert_eq!(error.effect(), Effect::Unknown);
        assert_eq!(cloud.oracle().call_count(WireCall::Launch), 1, "{fault:?}");
        assert_eq!(cloud.oracle().call_count(WireCall::FindLaunch), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn launch_with_token_is_retried_and_creates_one_instance() {
    for fault in [Phase::Before, Phase::After].into_iter().flat_map(unknown) {
        for count in [1, 3] {
            let cloud = MemoryCloud::new();
            for nth in [1, 2] {
                cloud
                    .faults()
                    .add(Rule::nth(WireCall::Launch, nth, fault.clone()));
            }
            let launched = open(&cloud)
                .launch_instances(&with_token("t-1"), many(count))
                .await
                .unwrap();
            assert_eq!(
                (launched.len(), live(&cloud)),
                (count as usize, count as usize)
            );
            assert_eq!(cloud.oracle().call_count(WireCall::Launch), 3, "{fault:?}");
            assert!(cloud.faults().unused_rules().is_empty());
            let tokens = cloud.oracle().instances().into_iter().map(|one| one.token);
            assert!(tokens.into_iter().all(|one| one == Some(token("t-1"))));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn launched_instance_is_returned_if_all_responses_are_lost() {
    for count in [1, 3] {
        let cloud = MemoryCloud::new();
        cloud
            .faults()
            .add(Rule::always(WireCall::Launch, Fault::Lost(Phase::After)));
        let (retry, config) = (open(&cloud), with_token("t-1"));
        let launched = retry.launch_instances(&config, many(count)).await.unwrap();
        let live = cloud.oracle().leftovers().instances;
        assert_eq!(
            launched.into_iter().map(|one| one.id).collect::<Vec<_>>(),
            live
        );
        assert_eq!(live.len(), count as usize);
        assert_eq!(cloud.oracle().call_count(WireCall::Launch), 5);
        assert_eq!(cloud.oracle().call_count(WireCall::FindLaunch), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn outcome_stays_unknown_if_no_request_arrives() {
    let cloud = MemoryCloud::new();
    cloud
        .faults()
        .add(Rule::always(WireCall::Launch, Fault::Lost(Phase::Before)));
    let error = open(&cloud)
        .launch_instance(&with_token("t-1"))
        .await
        .unwrap_err();
    assert_eq!(
        (error.kind(), error.effect()),
        (ErrorKind::Timeout, Effect::Unknown)
    );
    assert_eq!(error.operation(), Operation::LaunchInstance);
    assert_eq!(live(&cloud), 0);
}

/// Returns configs that differ from `with_token("t-1")` in a field that an instance has.
fn others() -> Vec<InstanceConfig> {
    let change = |change: fn(&mut InstanceConfig)| {
        let mut config = with_token("t-1");
        change(&mut config);
        config
    };
    vec![
        change(|config| drop(config.tags.insert("fleet", "red"))),
        change(|config| drop(config.tags.insert("more", ""))),
        change(|config| config.tags = fleetwright::Tags::new()),
        change(|config| config.image = fleetwright::ImageId::new("image-2").unwrap()),
        change(|config| config.instance_type = fleetwright::InstanceType::new("big").unwrap()),
        change(|config| config.placement.zone = Some(Zone::new("mem-b").unwrap())),
        change(|config| config.placement.network = Some(NetworkId::new("net-2").unwrap())),
        change(|config| config.placement.market = Some(Market::Spot)),
        change(|config| config.placement.public_address = Some(PublicAddress::Absent)),
        change(|config| {
            let group = SecurityGroupId::new("group-2").unwrap();
            config.placement.security_groups = [group].into();
        }),
    ]
}

#[tokio::test(start_paused = true)]
async fn instance_of_another_config_is_never_returned() {
    for other in others() {
        let cloud = MemoryCloud::new();
        let retry = open(&cloud);
        let first = retry.launch_instance(&with_token("t-1")).await.unwrap();
        cloud
            .faults()
            .add(Rule::always(WireCall::Launch, Fault::Lost(Phase::After)));
        let error = retry.launch_instance(&other).await.unwrap_err();
        assert_eq!(error.effect(), Effect::Unknown, "{other:?}");
        assert_eq!(live(&cloud), 1);
        // The same config succeeds, so it was not the lookup that failed.
        let same = retry.launch_instance(&with_token("t-1")).await.unwrap();
        assert_eq!(same.id, first.id);
    }
}

#[tokio::test(start_paused = true)]
async fn ending_or_partial_launch_is_not_returned() {
    let in_state = |state| InstanceInfo::new(id("i-1"), state);
    let (up, down) = (
        in_state(CloudInstanceState::Pending),
        in_state(CloudInstanceState::Terminating),
    );
    let mut config = with_token("t-1");
    config.tags = fleetwright::Tags::new();
    let cases = [
        (1, vec![up.clone()], true),
        (1, vec![down.clone()], false),
        (2, vec![up.clone()], false),
        (2, vec![up.clone(), down.clone()], false),
        (1, vec![up.clone(), down], false),
        (2, vec![up.clone(), up], true),
    ];
    for (count, found, results) in cases {
        let lost = call(Operation::LaunchInstances).timeout(Effect::Unknown);
        let found = Response::Found(LaunchRecord::Found(found));
        let policy = RetryPolicy::default().max_attempts(many(1));
        let retry = Layered::new(Scripted::new([lost.into(), found]), Retry::new(policy));
        let result = retry.launch_instances(&config, many(count)).await;
        assert_eq!(result.is_ok(), results, "{result:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn look_up_respects_the_deadline_of_the_launch() {
    let lost = call(Operation::LaunchInstance)
        .timeout(Effect::Unknown)
        .retry_after(secs(10));
    let policy = RetryPolicy::default()
        .max_attempts(many(99))
        .timeout(secs(25));
    let retry = Layered::new(Scripted::always(lost), Retry::new(policy));
    let error = retry.launch_instance(&with_token("t-1")).await.unwrap_err();
    assert_eq!(error.operation(), Operation::LaunchInstance);
    let calls = retry.inner().calls();
    let finds = calls
        .iter()
        .filter(|one| one.operation == Operation::FindLaunch);
    assert_eq!(finds.map(|one| one.at).collect::<Vec<_>>(), [secs(20)]);
    assert_eq!(retry.inner().elapsed(), secs(20));
}

#[tokio::test(start_paused = true)]
async fn failed_look_up_is_retried_until_the_deadline() {
    let call = call(Operation::LaunchInstance);
    let down = call.unavailable(Effect::None, "down");
    let mut created = info(&id("i-1"));
    created.tags = plain().tags;
    let found = Response::Found(LaunchRecord::Found(vec![created]));
    let backend = [call.timeout(Effect::Unknown).into(), down.into(), found];
    let policy = RetryPolicy::default().max_attempts(many(2)).jitter_seed(1);
    let once = policy.clone().max_attempts(many(1));
    let retry = Layered::new(Scripted::new(backend.clone()), Retry::new(once));
    retry.launch_instance(&with_token("t-1")).await.unwrap_err();
    // One more attempt would succeed and hide the lookup.
    let backend = [backend[0].clone()].into_iter().chain(backend);
    let retry = Layered::new(Scripted::new(backend), Retry::new(policy));
    assert_eq!(
        retry.launch_instance(&with_token("t-1")).await.unwrap().id,
        id("i-1")
    );
    assert_eq!(retry.inner().calls().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn final_refusal_is_returned_without_a_look_up() {
    let call = call(Operation::LaunchInstance);
    let backend = [
        call.timeout(Effect::Unknown).into(),
        call.forbidden("no").into(),
    ];
    let retry = Layered::new(Scripted::new(backend), Retry::new(RetryPolicy::default()));
    let error = retry.launch_instance(&with_token("t-1")).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.effect()),
        (ErrorKind::Forbidden, Effect::Unknown)
    );
    assert_eq!(error.retry(), RetryAdvice::Never);
    assert_eq!(retry.inner().calls().len(), 2);
}

/// Returns what a cloud with policies reports of `config`: one more tag, and its own name of the
/// network.
fn reported(config: &InstanceConfig) -> InstanceInfo {
    let mut created = info(&id("i-1"));
    created.tags = config.tags.clone();
    created
        .tags
        .insert("cost-centre", "added by a policy")
        .unwrap();
    created.placement.network = Some(NetworkId::new("projects/p/networks/net-1").unwrap());
    created.placement.security_groups = [SecurityGroupId::new("group-9").unwrap()].into();
    created
}

/// Launches on a backend that loses the response and then finds `found`.
async fn launch_lost(config: &InstanceConfig, found: InstanceInfo) -> Option<InstanceInfo> {
    let lost = call(Operation::LaunchInstance).timeout(Effect::Unknown);
    let found = Response::Found(LaunchRecord::Found(vec![found]));
    let policy = RetryPolicy::default().max_attempts(many(1));
    let retry = Layered::new(Scripted::new([lost.into(), found]), Retry::new(policy));
    retry.launch_instance(config).await.ok()
}

#[tokio::test(start_paused = true)]
async fn launch_is_recognized_by_its_fingerprint_whatever_the_cloud_adds() {
    let mut config = with_token("t-1");
    config.placement.network = Some(NetworkId::new("net-1").unwrap());
    for fingerprint in [Some(config.fingerprint(many(1))), None] {
        let mut created = reported(&config);
        created.config = fingerprint;
        let found = launch_lost(&config, created).await.unwrap();
        assert_eq!(found.id, id("i-1"));
    }
    // An item of a batch that was launched one by one.
    let mut item = config.clone();
    item.batch = Some(many(1));
    let mut created = reported(&config);
    created.config = Some(item.fingerprint(many(1)));
    assert!(launch_lost(&config, created).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn another_fingerprint_is_never_returned() {
    let config = with_token("t-1");
    let mut other = config.clone();
    other.user_data = Some(fleetwright::UserData::new("other").unwrap());
    for wrong in [other.fingerprint(many(1)), config.fingerprint(many(2))] {
        let mut created = info(&id("i-1"));
        created.tags = config.tags.clone();
        created.config = Some(wrong);
        assert!(launch_lost(&config, created).await.is_none());
    }
}
