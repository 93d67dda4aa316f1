//! Credentials that are exchanged during a call: no machine is lost sight of, and no result of another account is believed.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::{collections::BTreeSet, time::Duration};

use fleetwright::{Operation, Reboot, Tags};
use fleetwright_facade_testkit::{
    Moment, TwoAccounts, account_of, flavor, is_server_running, machine_of, north, operator,
    server_admin, server_id,
};
use fleetwright_memory::{Fault, Phase as When, Rule, WireCall};
use fleetwright_region::server::{Consent, Phase, Power, ServerView};

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn launch_that_another_account_does_not_have_is_not_sent_again() {
    let two = TwoAccounts::exchanged_at(Operation::FindLaunch, Moment::Before, 1);
    let lost = Fault::Lost(When::After);
    two.right.faults().add(Rule::nth(WireCall::Launch, 1, lost));
    two.create(1).await;
    two.region.during(two.running(1)).await;
    let looked_up = two.wrong.oracle().call_count(WireCall::FindLaunch);
    assert_eq!(
        looked_up, 1,
        "the launch was looked up in the other account"
    );
    assert_eq!(two.right.oracle().instances().len(), 1);
    assert_eq!(two.wrong.oracle().call_count(WireCall::Launch), 0);
}

#[tokio::test(start_paused = true)]
async fn launch_in_another_account_is_never_lost_sight_of() {
    for moment in [Moment::Before, Moment::After] {
        let two = TwoAccounts::exchanged_at(Operation::LaunchInstance, moment, 2);
        two.create(1).await;
        two.region
            .during(async {
                tokio::time::sleep(10 * MINUTE).await;
                two.running(1).await;
                two.create(2).await;
                tokio::time::sleep(10 * MINUTE).await;
                two.running(2).await;
            })
            .await;
        let (right, wrong) = (&two.right.oracle(), &two.wrong.oracle());
        let servers: Vec<_> = [1, 2].map(server_id).into();
        let mut machines = Vec::new();
        for server in &servers {
            machines.push(machine_of(&two.region.read(*server).await));
        }
        let in_right: Vec<_> = right
            .instances()
            .iter()
            .map(|one| one.info.id.clone())
            .collect();
        assert!(machines.iter().all(|id| in_right.contains(id)));
        assert_eq!(in_right.len(), 2, "each server has one machine");
        assert_eq!(wrong.call_count(WireCall::Terminate), 0);
        // Every machine in the other account is reported with that account and its id.
        let leaked = two.record().await.leaked;
        let reported: BTreeSet<_> = leaked
            .iter()
            .filter_map(|leak| leak.machine.clone())
            .collect();
        let existing: BTreeSet<_> = wrong
            .instances()
            .iter()
            .map(|one| one.info.id.clone())
            .collect();
        assert_eq!(reported, existing, "{moment:?}");
        assert_eq!(existing.is_empty(), moment == Moment::After);
        for leak in &leaked {
            assert_eq!(leak.account, Some(account_of(&two.wrong).await));
            assert!(servers.contains(&leak.server));
        }
        // The operator has terminated it there.
        for leak in leaked {
            let resolved = two
                .accounts
                .resolve_leak(&operator(), &north(), &leak.token)
                .await;
            assert!(resolved.unwrap());
        }
        assert!(two.record().await.leaked.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn no_change_of_a_machine_is_believed_of_another_account() {
    use Operation::{
        FindLaunch, RebootInstance, ResizeInstance, StopInstance, TerminateInstance, UpdateTags,
    };
    for at in [
        StopInstance,
        RebootInstance,
        ResizeInstance,
        UpdateTags,
        TerminateInstance,
        FindLaunch,
    ] {
        for moment in [Moment::Before, Moment::After] {
            let two = TwoAccounts::exchanged_at(at, moment, 1);
            two.create(1).await;
            let (id, admin, servers) = (server_id(1), server_admin(), &two.region.servers);
            let settled =
                |view: &ServerView| view.server.observed_generation == view.server.generation;
            two.region
                .during(async {
                    let machine = machine_of(&two.region.until(id, is_server_running).await);
                    servers
                        .request_reboot(&admin, id, Reboot::Hard)
                        .await
                        .unwrap();
                    two.region.until(id, is_server_running).await;
                    let mut spec = two.region.read(id).await.server.spec;
                    spec.flavor = flavor("large");
                    spec.tags = Tags::new().with("team", "blue").unwrap();
                    let keep = Consent::KeepEverything;
                    servers.set_spec(&admin, id, &spec, keep).await.unwrap();
                    two.region.until(id, is_server_running).await;
                    servers.set_power(&admin, id, Power::Stopped).await.unwrap();
                    let stopped = |view: &ServerView| view.phase == Phase::Stopped && settled(view);
                    let view = two.region.until(id, stopped).await;
                    assert_eq!(machine_of(&view), machine, "{at} {moment:?}");
                    let truth = two.right.oracle().instance(&machine).unwrap();
                    assert_eq!(truth.info.tags.get("team"), Some("blue"), "{at} {moment:?}");
                    servers.delete(&admin, id).await.unwrap();
                    two.region.until_gone(id).await;
                })
                .await;
            let left = two.right.oracle().leftovers();
            assert!(left.is_empty(), "{at} {moment:?}: {left:?}");
            assert_eq!(
                two.right.oracle().call_count(WireCall::Launch),
                1,
                "{at} {moment:?}"
            );
            assert!(two.record().await.leaked.is_empty());
        }
    }
}
