//! The actor: its changes are visible to handles and do not count as calls.

use fleetwright::{
    CloudInstanceState::{Pending, Running, Stopped, Terminated},
    ErrorKind, InstanceFilter, InstanceId, InstanceProvisioner as _, TagChange,
};

use crate::support::{
    all_blue, brisk, existing_ids, ids, open, pass, plain, running, seconds, state, truth,
    with_token, zone,
};

#[tokio::test(start_paused = true)]
async fn instance_of_an_external_actor_is_listed_with_its_own_tags() {
    let (cloud, provisioner) = open(brisk());
    let foreign = fleetwright::InstanceConfig::builder("image-1", "small")
        .tag("owner", "somebody else")
        .build()
        .unwrap();
    let foreign = cloud.external_actor().launch(&foreign).unwrap();
    assert_eq!(foreign.state, Pending);
    let ours = provisioner.launch_instance(&plain()).await.unwrap();
    pass(seconds(1)).await;
    let everything = provisioner
        .list_instances(&InstanceFilter::new())
        .await
        .unwrap();
    assert_eq!(ids(&everything), [foreign.id.clone(), ours.id.clone()]);
    let blue = provisioner.list_instances(&all_blue()).await.unwrap();
    assert_eq!(ids(&blue), [ours.id]);
    assert_eq!(state(&provisioner, &foreign.id).await, Running);
}

#[tokio::test(start_paused = true)]
async fn changes_by_an_external_actor_are_visible_with_their_reason() {
    let (cloud, provisioner) = open(brisk());
    let id = running(&provisioner).await.id;
    let actor = cloud.external_actor();
    actor.stop(&id).unwrap();
    let status = provisioner.describe_instance(&id).await.unwrap();
    assert_eq!(
        status.state_reason.as_deref(),
        Some("stopped by an external actor")
    );
    pass(seconds(1)).await;
    assert_eq!(state(&provisioner, &id).await, Stopped);
    actor.start(&id).unwrap();
    pass(seconds(1)).await;
    assert_eq!(state(&provisioner, &id).await, Running);
    let change = TagChange::new().set("checked", "yes").unwrap();
    actor.update_tags(&id, &change).unwrap();
    let listed = provisioner.list_instances(&all_blue()).await.unwrap();
    assert_eq!(listed[0].tags.get("checked"), Some("yes"));
    actor.terminate(&id).unwrap();
    let status = provisioner.describe_instance(&id).await.unwrap();
    assert_eq!(
        status.state_reason.as_deref(),
        Some("terminated by an external actor")
    );
    pass(seconds(1)).await;
    assert_eq!(state(&provisioner, &id).await, Terminated);
    assert_eq!(existing_ids(&cloud), []);
}

#[tokio::test(start_paused = true)]
async fn external_actor_gets_the_same_refusals_as_a_handle() {
    let (cloud, provisioner) = open(brisk().quota(1));
    let id = running(&provisioner).await.id;
    let (actor, unknown) = (
        cloud.external_actor(),
        InstanceId::new("i-unknown").unwrap(),
    );
    let change = TagChange::new();
    for result in [
        actor.stop(&unknown),
        actor.start(&unknown),
        actor.terminate(&unknown),
        actor.update_tags(&unknown, &change),
    ] {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::NotFound);
    }
    let error = actor.launch(&plain()).unwrap_err();
    assert_eq!(
        (error.kind(), error.provider()),
        (ErrorKind::Quota, "memory external actor")
    );
    actor.terminate(&id).unwrap();
    assert_eq!(actor.start(&id).unwrap_err().kind(), ErrorKind::WrongState);
}

#[tokio::test(start_paused = true)]
async fn external_actor_and_oracle_do_not_count_as_calls() {
    let (cloud, provisioner) = open(brisk());
    let id = running(&provisioner).await.id;
    let (actor, oracle) = (cloud.external_actor(), cloud.oracle());
    let counted = || (oracle.calls(), oracle.records_touched());
    let before = counted();
    actor.launch(&plain()).unwrap();
    actor.stop(&id).unwrap();
    pass(seconds(1)).await;
    actor.start(&id).unwrap();
    actor.update_tags(&id, &TagChange::new()).unwrap();
    actor.terminate(&id).unwrap();
    oracle.instances();
    truth(&cloud, &id);
    oracle.leftovers();
    oracle.images();
    assert_eq!(counted(), before);
}

#[tokio::test(start_paused = true)]
async fn external_actor_reaches_unreachable_zones() {
    let (cloud, provisioner) = open(brisk());
    let id = running(&provisioner).await.id;
    let actor = cloud.external_actor();
    actor.disconnect(zone("mem-a"));
    actor.launch(&plain()).unwrap();
    actor.terminate(&id).unwrap();
    pass(seconds(1)).await;
    let error = provisioner.describe_instance(&id).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    actor.reconnect(zone("mem-a"));
    assert_eq!(state(&provisioner, &id).await, Terminated);
    assert_eq!(existing_ids(&cloud).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn launch_tokens_are_shared_with_external_actors() {
    let (cloud, provisioner) = open(brisk());
    let theirs = cloud.external_actor().launch(&with_token("t")).unwrap();
    let ours = provisioner.launch_instance(&with_token("t")).await.unwrap();
    assert_eq!(ours, theirs);
    assert_eq!(existing_ids(&cloud), [theirs.id]);
}
