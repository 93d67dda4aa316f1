//! Kills the program at every request of a creation and of a deletion, before and after its effect, and does what GARM does next.

#![allow(clippy::expect_used, reason = "test helpers may panic")]

mod support;

use std::{process::Child, thread::sleep, time::Duration};

use support::{
    AzureCloud, Cloud, Ec2Cloud, Garm, GcpCloud, POOL, Phase, document, has_machines, nothing_left,
};

/// A call that sends more requests than this is in an endless loop.
const MOST_REQUESTS: u64 = 100;

/// What GARM does after a creation that it has killed.
#[derive(Clone, Copy, Debug)]
enum Next {
    /// It deletes the instance by its name.
    DeleteByName,
    /// A GARM that lost its state creates it again.
    CreateAgain,
}

/// Starts a call and kills it at its nth request. Returns whether it sent so many.
fn killed_at(cloud: &dyn Cloud, nth: u64, phase: Phase, start: impl FnOnce() -> Child) -> bool {
    assert!(nth <= MOST_REQUESTS, "more than {MOST_REQUESTS} requests");
    let before = cloud.calls();
    cloud.hang(nth, phase);
    let mut child = start();
    let is_killed = loop {
        if cloud.calls() >= before + nth {
            break true;
        }
        if child.try_wait().expect("its status").is_some() {
            break false;
        }
        sleep(Duration::from_millis(2));
    };
    // Fails if it has ended.
    let _ = child.kill();
    child.wait().expect("its end");
    cloud.clear_faults();
    is_killed
}

fn sweep_creation(cloud: &dyn Cloud, next: Next) {
    let garm = Garm::on(cloud);
    let mut killed = 0;
    for phase in Phase::BOTH {
        for nth in 1.. {
            let name = format!("garm-Kill{nth}{phase:?}");
            let input = document(cloud, &name).to_string();
            let pool = [("GARM_POOL_ID", POOL)];
            let start = || garm.start("CreateInstance", &pool, &input);
            let is_killed = killed_at(cloud, nth, phase, start);
            if let Next::CreateAgain = next {
                let answer = garm.create(&document(cloud, &name)).answer();
                assert_eq!(
                    answer["name"],
                    name.as_str(),
                    "killed {phase:?} request {nth}"
                );
                has_machines(cloud, &name, 1);
                let again = garm.create(&document(cloud, &name)).answer();
                assert_eq!(again["provider_id"], answer["provider_id"]);
            }
            garm.delete(&name).done();
            has_machines(cloud, &name, 0);
            nothing_left(cloud);
            if !is_killed {
                break;
            }
            killed += 1;
        }
    }
    assert!(killed >= 4, "only {killed} processes were killed");
}

fn sweep_deletion(cloud: &dyn Cloud) {
    let garm = Garm::on(cloud);
    let mut killed = 0;
    for by_id in [true, false] {
        for phase in Phase::BOTH {
            for nth in 1.. {
                let name = format!("garm-Gone{nth}{phase:?}{by_id}");
                let answer = garm.create(&document(cloud, &name)).answer();
                let id = answer["provider_id"].as_str().expect("an id").to_owned();
                let instance = if by_id { &id } else { &name };
                let more = [("GARM_INSTANCE_ID", instance.as_str())];
                let start = || garm.start("DeleteInstance", &more, "");
                let is_killed = killed_at(cloud, nth, phase, start);
                garm.delete(instance).done();
                has_machines(cloud, &name, 0);
                nothing_left(cloud);
                // A deletion by name repeats its reads for the whole window.
                if !is_killed || (!by_id && nth >= 8) {
                    break;
                }
                killed += 1;
            }
        }
    }
    assert!(killed >= 8, "only {killed} processes were killed");
}

#[test]
fn ec2_creation_killed_anywhere_leaves_nothing_that_its_name_does_not_delete() {
    sweep_creation(&Ec2Cloud::new(), Next::DeleteByName);
}

#[test]
fn ec2_creation_killed_anywhere_has_one_machine_after_the_next_creation() {
    sweep_creation(&Ec2Cloud::new(), Next::CreateAgain);
}

#[test]
fn ec2_deletion_killed_anywhere_is_finished_by_the_next() {
    sweep_deletion(&Ec2Cloud::new());
}

#[test]
fn gcp_creation_killed_anywhere_leaves_nothing_that_its_name_does_not_delete() {
    sweep_creation(&GcpCloud::new(), Next::DeleteByName);
}

#[test]
fn gcp_creation_killed_anywhere_has_one_machine_after_the_next_creation() {
    sweep_creation(&GcpCloud::new(), Next::CreateAgain);
}

#[test]
fn gcp_deletion_killed_anywhere_is_finished_by_the_next() {
    sweep_deletion(&GcpCloud::new());
}

#[test]
fn azure_creation_killed_anywhere_leaves_nothing_that_its_name_does_not_delete() {
    sweep_creation(&AzureCloud::new(), Next::DeleteByName);
}

#[test]
fn azure_creation_killed_anywhere_has_one_machine_after_the_next_creation() {
    sweep_creation(&AzureCloud::new(), Next::CreateAgain);
}

#[test]
fn azure_deletion_killed_anywhere_is_finished_by_the_next() {
    sweep_deletion(&AzureCloud::new());
}
