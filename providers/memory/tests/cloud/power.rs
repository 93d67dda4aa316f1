//! Stop, start and terminate in every state, alone and in combination.

use fleetwright::{
    CloudInstanceState::{self, Pending, Running, Stopped, Stopping, Terminated, Terminating},
    Effect, ErrorKind, ImageId, InstanceId, InstanceProvisioner as _, RetryAdvice, Scope,
};
use fleetwright_memory::{MemoryCloud, MemoryProvisioner};

use crate::support::{
    brisk, builder, existing_ids, open, pass, plain, running, seconds, state, stopped, truth,
};

/// The native states, and the calls that lead to each.
const STATES: [&str; 7] = [
    "PROVISIONING",
    "ACTIVE",
    "REIMAGING",
    "HALTING",
    "HALTED",
    "DELETING",
    "DELETED",
];

/// Returns an instance that has just entered the native state `native`.
async fn in_state(provisioner: &MemoryProvisioner, native: &str) -> InstanceId {
    let id = match native {
        "PROVISIONING" => provisioner.launch_instance(&plain()).await.unwrap().id,
        "HALTED" => stopped(provisioner).await.id,
        _ => running(provisioner).await.id,
    };
    let image = ImageId::new("image-2").unwrap();
    match native {
        "REIMAGING" => provisioner.reimage_instance(&id, &image).await.unwrap(),
        "HALTING" => provisioner.stop_instance(&id).await.unwrap(),
        "DELETING" | "DELETED" => provisioner.terminate_instance(&id).await.unwrap(),
        _ => {}
    }
    if native == "DELETED" {
        pass(seconds(1)).await;
    }
    let status = provisioner.describe_instance(&id).await.unwrap();
    assert_eq!(status.native_state.unwrap(), native);
    id
}

fn snapshot_state(cloud: &MemoryCloud, id: &InstanceId) -> String {
    format!("{:?}", truth(cloud, id))
}

#[tokio::test(start_paused = true)]
async fn stop_is_refused_only_when_terminating_or_terminated() {
    for native in STATES {
        let (cloud, provisioner) = open(brisk());
        let id = in_state(&provisioner, native).await;
        let before = snapshot_state(&cloud, &id);
        let result = provisioner.stop_instance(&id).await;
        match native {
            "PROVISIONING" | "ACTIVE" | "REIMAGING" => {
                result.unwrap();
                assert_eq!(state(&provisioner, &id).await, Stopping, "{native}");
                pass(seconds(1)).await;
                assert_eq!(state(&provisioner, &id).await, Stopped, "{native}");
                pass(seconds(9)).await;
                assert_eq!(state(&provisioner, &id).await, Stopped, "{native}");
            }
            "HALTING" | "HALTED" => {
                result.unwrap();
                assert_eq!(snapshot_state(&cloud, &id), before, "{native}");
            }
            _ => {
                let error = result.unwrap_err();
                assert_eq!(
                    (error.kind(), error.effect()),
                    (ErrorKind::WrongState, Effect::None)
                );
                assert_eq!(error.scopes(), [Scope::Instance(id.clone())]);
                assert!(
                    error.message().contains("running, pending or stopped"),
                    "{error}"
                );
                assert_eq!(snapshot_state(&cloud, &id), before, "{native}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn start_is_refused_only_when_stopping_terminating_or_terminated() {
    for native in STATES {
        let (cloud, provisioner) = open(brisk());
        let id = in_state(&provisioner, native).await;
        let before = snapshot_state(&cloud, &id);
        let result = provisioner.start_instance(&id).await;
        match native {
            "PROVISIONING" | "ACTIVE" | "REIMAGING" => {
                assert_eq!(result.unwrap(), truth(&cloud, &id).info);
                assert_eq!(snapshot_state(&cloud, &id), before, "{native}");
            }
            "HALTED" => {
                let info = result.unwrap();
                assert_eq!((&info.id, info.state), (&id, Pending));
                pass(seconds(1)).await;
                assert_eq!(state(&provisioner, &id).await, Running);
            }
            "HALTING" => {
                let error = result.unwrap_err();
                assert_eq!(
                    (error.kind(), error.effect()),
                    (ErrorKind::Conflict, Effect::None)
                );
                assert_eq!(error.retry(), RetryAdvice::After(seconds(1)));
                assert_eq!(error.scopes(), [Scope::Instance(id.clone())]);
                assert_eq!(snapshot_state(&cloud, &id), before, "{native}");
                pass(error.retry().delay().unwrap()).await;
                assert_eq!(
                    provisioner.start_instance(&id).await.unwrap().state,
                    Pending
                );
            }
            _ => {
                let error = result.unwrap_err();
                assert_eq!(
                    (error.kind(), error.effect()),
                    (ErrorKind::WrongState, Effect::None)
                );
                assert!(
                    error.message().contains("stopped, pending or running"),
                    "{error}"
                );
                assert_eq!(snapshot_state(&cloud, &id), before, "{native}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn terminate_works_in_every_state_and_overrides_other_transitions() {
    for native in STATES {
        let (cloud, provisioner) = open(brisk());
        let other = running(&provisioner).await.id;
        let id = in_state(&provisioner, native).await;
        let before = snapshot_state(&cloud, &id);
        provisioner.terminate_instance(&id).await.unwrap();
        match native {
            "DELETING" | "DELETED" => assert_eq!(snapshot_state(&cloud, &id), before),
            _ => assert_eq!(state(&provisioner, &id).await, Terminating, "{native}"),
        }
        for result in [
            provisioner.stop_instance(&id).await,
            provisioner.start_instance(&id).await.map(drop),
        ] {
            assert_eq!(
                result.unwrap_err().kind(),
                ErrorKind::WrongState,
                "{native}"
            );
        }
        for _ in 0..20 {
            pass(seconds(1)).await;
            assert_eq!(state(&provisioner, &id).await, Terminated, "{native}");
        }
        assert_eq!(existing_ids(&cloud), [other]);
    }
}

#[tokio::test(start_paused = true)]
async fn replaced_transition_never_finishes() {
    // A boot takes 5 s and a stop 3 s: a stop at 4 s finishes at 7 s and cancels the end of the boot.
    let (_, provisioner) = open(builder());
    let id = &provisioner.launch_instance(&plain()).await.unwrap().id;
    pass(seconds(4)).await;
    provisioner.stop_instance(id).await.unwrap();
    let mut observed = Vec::new();
    for _ in 0..6 {
        observed.push(state(&provisioner, id).await);
        pass(seconds(1)).await;
    }
    use CloudInstanceState as S;
    assert_eq!(
        observed,
        [
            S::Stopping,
            S::Stopping,
            S::Stopping,
            S::Stopped,
            S::Stopped,
            S::Stopped
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn power_verbs_return_not_found_for_unknown_ids() {
    let (cloud, provisioner) = open(brisk());
    running(&provisioner).await;
    let unknown = InstanceId::new("i-0000000000000000").unwrap();
    let results = [
        provisioner.stop_instance(&unknown).await,
        provisioner.start_instance(&unknown).await.map(drop),
        provisioner.terminate_instance(&unknown).await,
        provisioner.describe_instance(&unknown).await.map(drop),
    ];
    for result in results {
        let error = result.unwrap_err();
        assert_eq!(
            (error.kind(), error.effect()),
            (ErrorKind::NotFound, Effect::None)
        );
        assert_eq!(error.scopes(), [Scope::Instance(unknown.clone())]);
        assert_eq!(error.native_code(), Some("InstanceNotFound"));
    }
    assert_eq!(existing_ids(&cloud).len(), 1);
}
