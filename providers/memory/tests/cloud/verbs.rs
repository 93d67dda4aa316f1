//! Optional verbs: declared ones work, undeclared ones are refused without a call.

use fleetwright::{
    CloudInstanceState::{Pending, Running, Stopped},
    Effect, ErrorKind, ImageId, InstanceProvisioner as _, InstanceType, Operation, OptionalVerb,
    Reboot, RetryAdvice, TagChange, Tags,
};
use fleetwright_memory::WireCall;

use crate::{
    calls::{send, snapshot_state},
    support::{brisk, open, pass, plain, running, seconds, state, stopped, truth},
};

/// The verbs, their calls, and the states they work in: pending, running, stopping or halted.
const VERBS: [(OptionalVerb, WireCall, &str); 7] = [
    (OptionalVerb::UpdateTags, WireCall::UpdateTags, "PRSH"),
    (OptionalVerb::RebootInstance, WireCall::Reboot, "R"),
    (OptionalVerb::ResizeInstance, WireCall::Resize, "H"),
    (OptionalVerb::ReimageInstance, WireCall::Reimage, "RH"),
    (OptionalVerb::ConsoleOutput, WireCall::ConsoleOutput, "PRSH"),
    (OptionalVerb::ConsoleSession, WireCall::ConsoleSession, "R"),
    (OptionalVerb::SnapshotImage, WireCall::Snapshot, "RH"),
];

#[tokio::test(start_paused = true)]
async fn undeclared_verb_is_refused_without_a_call() {
    for (left_out, ..) in VERBS {
        for (verb, call, _) in VERBS {
            let (cloud, provisioner) = open(brisk().without_verb(left_out));
            assert_eq!(provisioner.capabilities().supports(verb), verb != left_out);
            let info = if verb == OptionalVerb::ResizeInstance {
                stopped(&provisioner).await
            } else {
                running(&provisioner).await
            };
            let (before, calls) = (snapshot_state(&cloud), cloud.oracle().total_calls());
            let result = send(call, &provisioner, &info.id).await;
            if verb != left_out {
                result.unwrap();
                assert_eq!(cloud.oracle().call_count(call), 1);
                continue;
            }
            let error = result.unwrap_err();
            assert_eq!(
                (error.kind(), error.effect(), error.retry()),
                (ErrorKind::Unsupported, Effect::None, RetryAdvice::Never)
            );
            assert_eq!(error.operation(), Operation::from(verb));
            assert_eq!(
                (snapshot_state(&cloud), cloud.oracle().total_calls()),
                (before, calls)
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_verb_refuses_unsupported_states() {
    for (_, call, works) in VERBS {
        for at in "PRSHTG".chars() {
            let (cloud, provisioner) = open(brisk());
            let id = match at {
                'P' => provisioner.launch_instance(&plain()).await.unwrap().id,
                'H' => stopped(&provisioner).await.id,
                _ => running(&provisioner).await.id,
            };
            match at {
                'S' => provisioner.stop_instance(&id).await.unwrap(),
                'T' | 'G' => provisioner.terminate_instance(&id).await.unwrap(),
                _ => {}
            }
            if at == 'G' {
                pass(seconds(1)).await;
            }
            let before = snapshot_state(&cloud);
            let result = send(call, &provisioner, &id).await;
            if works.contains(at) {
                result.unwrap();
                continue;
            }
            let error = result.unwrap_err();
            assert_eq!(
                (error.kind(), error.effect()),
                (ErrorKind::WrongState, Effect::None)
            );
            let needed = match works {
                "PRSH" => "it must be not terminated",
                "R" => "it must be running",
                "H" => "it must be stopped",
                _ => "it must be running or stopped",
            };
            assert!(error.message().ends_with(needed), "{call} {at}: {error}");
            assert_eq!(snapshot_state(&cloud), before, "{call} {at}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn tag_change_is_atomic_and_exact() {
    let (cloud, provisioner) = open(brisk());
    let id = running(&provisioner).await.id;
    let change = TagChange::new()
        .set("Ä b", " x ")
        .unwrap()
        .remove("fleet")
        .unwrap();
    let change = change.remove("absent").unwrap();
    provisioner.update_tags(&id, &change).await.unwrap();
    provisioner.update_tags(&id, &change).await.unwrap();
    let tags = truth(&cloud, &id).info.tags;
    assert_eq!(tags, Tags::new().with("Ä b", " x ").unwrap());
    assert_eq!(state(&provisioner, &id).await, Running);
}

#[tokio::test(start_paused = true)]
async fn reboot_changes_only_the_boot_count() {
    let (cloud, provisioner) = open(brisk());
    let id = running(&provisioner).await.id;
    let before = truth(&cloud, &id);
    provisioner
        .reboot_instance(&id, Reboot::Soft)
        .await
        .unwrap();
    provisioner
        .reboot_instance(&id, Reboot::Hard)
        .await
        .unwrap();
    let after = truth(&cloud, &id);
    assert_eq!((before.boots, after.boots), (1, 3));
    assert_eq!((after.info, after.disk), (before.info, before.disk));
    let output = provisioner.console_output(&id).await.unwrap();
    assert_eq!(
        output.text,
        "boot 1 from image-1\nsoft reboot\nboot 2 from image-1\nhard reboot\nboot 3 from image-1"
    );
}

#[tokio::test(start_paused = true)]
async fn resize_changes_only_the_type() {
    let (cloud, provisioner) = open(brisk());
    let id = stopped(&provisioner).await.id;
    let before = truth(&cloud, &id);
    let large = InstanceType::new("large").unwrap();
    provisioner.resize_instance(&id, &large).await.unwrap();
    let mut expected = before.info;
    expected.instance_type = Some(large);
    let after = truth(&cloud, &id);
    assert_eq!((after.info, after.disk), (expected, before.disk));
}

#[tokio::test(start_paused = true)]
async fn reimage_replaces_the_disk_and_keeps_id_and_addresses() {
    let image = ImageId::new("image-2").unwrap();
    for runs in [true, false] {
        let (cloud, provisioner) = open(brisk());
        let info = if runs {
            running(&provisioner).await
        } else {
            stopped(&provisioner).await
        };
        let before = truth(&cloud, &info.id);
        provisioner
            .reimage_instance(&info.id, &image)
            .await
            .unwrap();
        let (expected, later) = if runs {
            (Pending, Running)
        } else {
            (Stopped, Stopped)
        };
        assert_eq!(state(&provisioner, &info.id).await, expected);
        let boots = truth(&cloud, &info.id).boots;
        pass(seconds(1)).await;
        let after = truth(&cloud, &info.id);
        assert_eq!(after.info.state, later);
        assert_eq!((boots, after.boots), (1, if runs { 2 } else { 1 }));
        assert_eq!(after.info.image, Some(image.clone()));
        assert_eq!(after.info.public_ip, before.info.public_ip);
        assert_eq!(after.info.private_ip, before.info.private_ip);
        assert_eq!(after.info.mac_address, before.info.mac_address);
        let (old, new) = (before.disk.unwrap(), after.disk.unwrap());
        assert_ne!(new.name, old.name);
        assert_eq!(new.size_gb, old.size_gb);
        assert_eq!(
            cloud.oracle().leftovers().disks,
            [new.name],
            "the old disk is deleted"
        );
    }
}
