//! Stop, start and terminate in every state, alone and against each other.

use fleetwright::{
    CloudInstanceState::{self, Pending, Running, Stopped, Stopping, Terminated, Terminating},
    Effect, ErrorKind, ImageId, InstanceId, InstanceProvisioner as _, RetryAdvice, Scope,
};
use fleetwright_memory::{MemoryCloud, MemoryProvisioner};

use crate::support::{
    brisk, builder, live, open, pass, plain, running, seconds, state, stopped, truth,
};

/// The native states, and how an instance gets there.
const STATES: [&str; 7] = [
    "PROVISIONING",
    "ACTIVE",
    "REIMAGING",
    "HALTING",
    "HALTED",
    "DELETING",
    "DELETED",
];

/// An instance in the native state `native`, with all its time there ahead of it.
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

fn picture(cloud: &MemoryCloud, id: &InstanceId) -> String {
    format!("{:?}", truth(cloud, id))
}

#[tokio::test(start_paused = true)]
async fn stop_works_in_every_state_but_the_last_two() {
    for native in STATES {
        let (cloud, provisioner) = open(brisk());
        let id = in_state(&provisioner, native).await;
        let before = picture(&cloud, &id);
        let answer = provisioner.stop_instance(&id).await;
        match native {
            "PROVISIONING" | "ACTIVE" | "REIMAGING" => {
                answer.unwrap();
                assert_eq!(state(&provisioner, &id).await, Stopping, "{native}");
                pass(seconds(1)).await;
                assert_eq!(state(&provisioner, &id).await, Stopped, "{native}");
                pass(seconds(9)).await;
                assert_eq!(state(&provisioner, &id).await, Stopped, "{native}");
            }
            "HALTING" | "HALTED" => {
                answer.unwrap();
                assert_eq!(picture(&cloud, &id), before, "{native}");
            }
            _ => {
                let error = answer.unwrap_err();
                assert_eq!(
                    (error.kind(), error.effect()),
                    (ErrorKind::WrongState, Effect::None)
                );
                assert_eq!(error.scopes(), [Scope::Instance(id.clone())]);
                assert!(
                    error.message().contains("running, pending or stopped"),
                    "{error}"
                );
                assert_eq!(picture(&cloud, &id), before, "{native}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn start_works_in_every_state_but_three() {
    for native in STATES {
        let (cloud, provisioner) = open(brisk());
        let id = in_state(&provisioner, native).await;
        let before = picture(&cloud, &id);
        let answer = provisioner.start_instance(&id).await;
        match native {
            "PROVISIONING" | "ACTIVE" | "REIMAGING" => {
                assert_eq!(answer.unwrap(), truth(&cloud, &id).info);
                assert_eq!(picture(&cloud, &id), before, "{native}");
            }
            "HALTED" => {
                let info = answer.unwrap();
                assert_eq!((&info.id, info.state), (&id, Pending));
                pass(seconds(1)).await;
                assert_eq!(state(&provisioner, &id).await, Running);
            }
            "HALTING" => {
                let error = answer.unwrap_err();
                assert_eq!(
                    (error.kind(), error.effect()),
                    (ErrorKind::Conflict, Effect::None)
                );
                assert_eq!(error.retry(), RetryAdvice::After(seconds(1)));
                assert_eq!(error.scopes(), [Scope::Instance(id.clone())]);
                assert_eq!(picture(&cloud, &id), before, "{native}");
                pass(error.retry().delay().unwrap()).await;
                assert_eq!(
                    provisioner.start_instance(&id).await.unwrap().state,
                    Pending
                );
            }
            _ => {
                let error = answer.unwrap_err();
                assert_eq!(
                    (error.kind(), error.effect()),
                    (ErrorKind::WrongState, Effect::None)
                );
                assert!(
                    error.message().contains("stopped, pending or running"),
                    "{error}"
                );
                assert_eq!(picture(&cloud, &id), before, "{native}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn terminate_works_in_every_state_and_wins() {
    for native in STATES {
        let (cloud, provisioner) = open(brisk());
        let bystander = running(&provisioner).await.id;
        let id = in_state(&provisioner, native).await;
        let before = picture(&cloud, &id);
        provisioner.terminate_instance(&id).await.unwrap();
        match native {
            "DELETING" | "DELETED" => assert_eq!(picture(&cloud, &id), before),
            _ => assert_eq!(state(&provisioner, &id).await, Terminating, "{native}"),
        }
        for answer in [
            provisioner.stop_instance(&id).await,
            provisioner.start_instance(&id).await.map(drop),
        ] {
            assert_eq!(
                answer.unwrap_err().kind(),
                ErrorKind::WrongState,
                "{native}"
            );
        }
        for _ in 0..20 {
            pass(seconds(1)).await;
            assert_eq!(state(&provisioner, &id).await, Terminated, "{native}");
        }
        assert_eq!(live(&cloud), [bystander]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_transition_that_was_overtaken_never_ends() {
    // Booting takes 5 s, so the stop at 4 s is over at 7 s, and the boot's own end at 5 s is void.
    let (_, provisioner) = open(builder());
    let id = &provisioner.launch_instance(&plain()).await.unwrap().id;
    pass(seconds(4)).await;
    provisioner.stop_instance(id).await.unwrap();
    let mut seen = Vec::new();
    for _ in 0..6 {
        seen.push(state(&provisioner, id).await);
        pass(seconds(1)).await;
    }
    use CloudInstanceState as S;
    assert_eq!(
        seen,
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
async fn the_power_verbs_know_no_unknown_id() {
    let (cloud, provisioner) = open(brisk());
    running(&provisioner).await;
    let unknown = InstanceId::new("i-0000000000000000").unwrap();
    let answers = [
        provisioner.stop_instance(&unknown).await,
        provisioner.start_instance(&unknown).await.map(drop),
        provisioner.terminate_instance(&unknown).await,
        provisioner.describe_instance(&unknown).await.map(drop),
    ];
    for answer in answers {
        let error = answer.unwrap_err();
        assert_eq!(
            (error.kind(), error.effect()),
            (ErrorKind::NotFound, Effect::None)
        );
        assert_eq!(error.scopes(), [Scope::Instance(unknown.clone())]);
        assert_eq!(error.native_code(), Some("InstanceNotFound"));
    }
    assert_eq!(live(&cloud).len(), 1);
}
