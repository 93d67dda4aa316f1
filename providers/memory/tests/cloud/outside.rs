//! Changes from outside: what others do is seen, and is not counted as ours.

use fleetwright::{
    CloudInstanceState::{Pending, Running, Stopped, Terminated},
    ErrorKind, InstanceFilter, InstanceId, InstanceProvisioner as _, TagChange,
};

use crate::support::{
    all_blue, brisk, ids, live, open, pass, plain, running, seconds, state, truth, with_token, zone,
};

#[tokio::test(start_paused = true)]
async fn a_foreign_instance_is_listed_like_any_other_and_belongs_to_nobody() {
    let (cloud, provisioner) = open(brisk());
    let foreign = fleetwright::InstanceConfig::builder("image-1", "small")
        .tag("owner", "somebody else")
        .build()
        .unwrap();
    let foreign = cloud.operator().launch(&foreign).unwrap();
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
async fn what_others_do_is_seen_with_its_reason() {
    let (cloud, provisioner) = open(brisk());
    let id = running(&provisioner).await.id;
    let operator = cloud.operator();
    operator.stop(&id).unwrap();
    let status = provisioner.describe_instance(&id).await.unwrap();
    assert_eq!(status.state_reason.as_deref(), Some("stopped from outside"));
    pass(seconds(1)).await;
    assert_eq!(state(&provisioner, &id).await, Stopped);
    operator.start(&id).unwrap();
    pass(seconds(1)).await;
    assert_eq!(state(&provisioner, &id).await, Running);
    let change = TagChange::new().set("seen", "yes").unwrap();
    operator.update_tags(&id, &change).unwrap();
    let listed = provisioner.list_instances(&all_blue()).await.unwrap();
    assert_eq!(listed[0].tags.get("seen"), Some("yes"));
    operator.terminate(&id).unwrap();
    let status = provisioner.describe_instance(&id).await.unwrap();
    assert_eq!(
        status.state_reason.as_deref(),
        Some("terminated from outside")
    );
    pass(seconds(1)).await;
    assert_eq!(state(&provisioner, &id).await, Terminated);
    assert_eq!(live(&cloud), []);
}

#[tokio::test(start_paused = true)]
async fn the_operator_is_refused_what_cannot_be() {
    let (cloud, provisioner) = open(brisk().quota(1));
    let id = running(&provisioner).await.id;
    let (operator, unknown) = (cloud.operator(), InstanceId::new("i-unknown").unwrap());
    let change = TagChange::new();
    for answer in [
        operator.stop(&unknown),
        operator.start(&unknown),
        operator.terminate(&unknown),
        operator.update_tags(&unknown, &change),
    ] {
        assert_eq!(answer.unwrap_err().kind(), ErrorKind::NotFound);
    }
    let error = operator.launch(&plain()).unwrap_err();
    assert_eq!(
        (error.kind(), error.provider()),
        (ErrorKind::Quota, "memory operator")
    );
    operator.terminate(&id).unwrap();
    assert_eq!(
        operator.start(&id).unwrap_err().kind(),
        ErrorKind::WrongState
    );
}

#[tokio::test(start_paused = true)]
async fn neither_operator_nor_oracle_is_counted() {
    let (cloud, provisioner) = open(brisk());
    let id = running(&provisioner).await.id;
    let (operator, oracle) = (cloud.operator(), cloud.oracle());
    let counted = || (oracle.calls(), oracle.records_touched());
    let before = counted();
    operator.launch(&plain()).unwrap();
    operator.stop(&id).unwrap();
    pass(seconds(1)).await;
    operator.start(&id).unwrap();
    operator.update_tags(&id, &TagChange::new()).unwrap();
    operator.terminate(&id).unwrap();
    oracle.instances();
    truth(&cloud, &id);
    oracle.leftovers();
    oracle.images();
    assert_eq!(counted(), before);
}

#[tokio::test(start_paused = true)]
async fn others_act_in_a_zone_that_no_handle_can_reach() {
    let (cloud, provisioner) = open(brisk());
    let id = running(&provisioner).await.id;
    let operator = cloud.operator();
    operator.cut_off(zone("mem-a"));
    operator.launch(&plain()).unwrap();
    operator.terminate(&id).unwrap();
    pass(seconds(1)).await;
    let error = provisioner.describe_instance(&id).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    operator.reconnect(zone("mem-a"));
    assert_eq!(state(&provisioner, &id).await, Terminated);
    assert_eq!(live(&cloud).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_token_of_a_foreign_launch_is_the_accounts() {
    let (cloud, provisioner) = open(brisk());
    let theirs = cloud.operator().launch(&with_token("t")).unwrap();
    let ours = provisioner.launch_instance(&with_token("t")).await.unwrap();
    assert_eq!(ours, theirs);
    assert_eq!(live(&cloud), [theirs.id]);
}
