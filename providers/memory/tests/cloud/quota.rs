//! The quota: which instances it counts, and that a refusal changes nothing.

use fleetwright::{Effect, ErrorKind, InstanceProvisioner as _, Operation, RetryAdvice, Scope};
use fleetwright_memory::{Capacity, Fault, Rule, WireCall};

use crate::support::{brisk, existing_ids, fill, open, pass, plain, seconds};

#[tokio::test(start_paused = true)]
async fn quota_counts_every_instance_that_is_not_terminated() {
    let (cloud, provisioner) = open(brisk().quota(3));
    let (number, error) = fill(&provisioner, &plain()).await;
    assert_eq!(number, 3);
    assert_eq!(
        (error.kind(), error.effect(), error.retry()),
        (ErrorKind::Quota, Effect::None, RetryAdvice::Never)
    );
    assert_eq!(error.scopes(), [Scope::Account]);
    assert_eq!(error.operation(), Operation::LaunchInstance);
    assert!(
        error
            .message()
            .contains("3 of 3 instances are in use and 1 more"),
        "{error}"
    );
    let all = existing_ids(&cloud);
    pass(seconds(1)).await;
    // A stopped instance still counts, and a start needs no quota.
    provisioner.stop_instance(&all[0]).await.unwrap();
    pass(seconds(1)).await;
    assert_eq!(fill(&provisioner, &plain()).await.0, 0);
    provisioner.start_instance(&all[0]).await.unwrap();
    // A terminating instance counts until it is terminated.
    provisioner.terminate_instance(&all[1]).await.unwrap();
    assert_eq!(fill(&provisioner, &plain()).await.0, 0);
    pass(seconds(1)).await;
    assert_eq!(fill(&provisioner, &plain()).await.0, 1);
    // An instance whose boot will fail counts until it is terminated.
    provisioner.terminate_instance(&all[2]).await.unwrap();
    pass(seconds(1)).await;
    let fails = Fault::FailsLate {
        code: "Broken".into(),
        message: "no".into(),
    };
    cloud.faults().add(Rule::nth(WireCall::Launch, 1, fails));
    provisioner.launch_instance(&plain()).await.unwrap();
    assert_eq!(fill(&provisioner, &plain()).await.0, 0);
    pass(seconds(1)).await;
    assert_eq!(fill(&provisioner, &plain()).await.0, 1);
}

#[tokio::test(start_paused = true)]
async fn quota_can_change_while_instances_exist() {
    let (cloud, provisioner) = open(brisk().quota(2));
    assert_eq!(fill(&provisioner, &plain()).await.0, 2);
    cloud.external_actor().set_quota(Some(1));
    assert_eq!(fill(&provisioner, &plain()).await.0, 0);
    cloud.external_actor().set_quota(Some(5));
    assert_eq!(fill(&provisioner, &plain()).await.0, 3);
    cloud.external_actor().set_quota(None);
    provisioner.launch_instance(&plain()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn quota_error_takes_precedence_over_capacity() {
    let (_, provisioner) = open(brisk().quota(1).capacity(Capacity::of(1)));
    assert_eq!(
        fill(&provisioner, &plain()).await.1.kind(),
        ErrorKind::Quota
    );
    let (_, provisioner) = open(brisk().quota(2).capacity(Capacity::of(1)));
    assert_eq!(
        fill(&provisioner, &plain()).await.1.kind(),
        ErrorKind::Capacity
    );
}
