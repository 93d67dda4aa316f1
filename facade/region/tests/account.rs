//! A region knows the account of its machines: with another one it observes, launches, changes and terminates nothing.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::time::Duration;

use fleetwright_facade_testkit::{
    TwoAccounts, account_of, is_server_running, machine_of, north, operator, project_user,
    server_admin, server_id, tenant,
};
use fleetwright_memory::WireCall;
use fleetwright_region::{
    account::{AcceptError, RegionAccount},
    ids::FlavorId,
    monitor::ScanError,
    server::{ConditionKind, Consent, Phase, Power, ServerView},
};
use fleetwright_store::{Document as _, RecordId, Store as _, Transaction};

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn another_account_for_a_while_changes_nothing() {
    for (servers, populated) in (1..=20).map(|servers| (servers, servers % 2 == 0)) {
        let two = TwoAccounts::new();
        if populated {
            two.populate(3);
        }
        for number in 1..=servers {
            two.create(number).await;
        }
        two.region
            .during(async {
                let machines = two.running(servers).await;
                two.switch.switch_to(1);
                // A comparison is used for a second. What is requested after that waits.
                tokio::time::sleep(Duration::from_secs(1)).await;
                let (admin, first) = (server_admin(), server_id(1));
                let stopped = two.region.servers.set_power(&admin, first, Power::Stopped);
                stopped.await.unwrap();
                two.create(servers + 1).await;
                tokio::time::sleep(MINUTE).await;
                let record = two.record().await;
                assert_eq!(record.account, account_of(&two.right).await);
                assert_eq!(record.other.unwrap().account, account_of(&two.wrong).await);
                let waiting = two.region.read(server_id(servers + 1)).await;
                let condition = waiting.server.condition(ConditionKind::CloudError).unwrap();
                assert!(condition.message.contains("its operator"), "{condition:?}");
                assert!(!condition.message.contains("memory/"), "{condition:?}");
                two.switch.switch_to(0);
                let stopped = |view: &ServerView| view.phase == Phase::Stopped;
                two.region.until(server_id(1), stopped).await;
                two.region
                    .until(server_id(servers + 1), is_server_running)
                    .await;
                for (number, machine) in (1..).zip(&machines) {
                    let view = two.region.read(server_id(number)).await;
                    assert_eq!(machine_of(&view), *machine, "of {servers} servers");
                    assert!(view.server.conditions.is_empty(), "{view:#?}");
                }
                assert_eq!(two.record().await.other, None);
            })
            .await;
        assert_eq!(two.right.oracle().call_count(WireCall::Terminate), 0);
        let launches = u128::from(two.right.oracle().call_count(WireCall::Launch));
        assert_eq!(launches, servers + 1);
        for call in [WireCall::Launch, WireCall::Terminate, WireCall::ListPage] {
            assert_eq!(
                two.wrong.oracle().call_count(call),
                0,
                "{call} in the wrong account"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn launch_right_after_the_credentials_were_exchanged_waits() {
    let two = TwoAccounts::new();
    two.create(1).await;
    let launched = |view: &ServerView| view.server.machine.is_some();
    two.region
        .during(async {
            two.region.until(server_id(1), launched).await;
            // The account was compared for the first launch at this very moment.
            two.create(2).await;
            two.switch.switch_to(1);
            tokio::time::sleep(MINUTE).await;
            assert!(!launched(&two.region.read(server_id(2)).await));
            two.switch.switch_to(0);
            two.region.until(server_id(2), is_server_running).await;
        })
        .await;
    assert_eq!(two.wrong.oracle().instances().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn machine_that_is_not_found_when_it_is_terminated_is_listed_for_the_operator() {
    let two = TwoAccounts::new();
    two.create(1).await;
    let left = two.region.during(two.running(1)).await;
    // The operator moves the region to another account without its machine.
    let (right, wrong) = (account_of(&two.right).await, account_of(&two.wrong).await);
    two.switch.switch_to(1);
    let (operator, region) = (operator(), north());
    let accepted = two.accounts.accept(&operator, &region, &right, wrong).await;
    accepted.unwrap();
    let (admin, servers) = (server_admin(), &two.region.servers);
    servers.delete(&admin, server_id(1)).await.unwrap();
    two.region.during(two.region.until_gone(server_id(1))).await;
    let leaked = two.record().await.leaked;
    assert_eq!(leaked.len(), 1, "{leaked:?}");
    assert_eq!(
        (leaked[0].machine.as_ref(), leaked[0].server),
        (Some(&left[0]), server_id(1))
    );
    assert_eq!(two.right.oracle().call_count(WireCall::Terminate), 0);
}

#[tokio::test(start_paused = true)]
async fn orphans_are_kept_until_the_account_is_recorded() {
    let two = TwoAccounts::new();
    two.populate(2);
    two.switch.switch_to(1);
    let report = two.region.monitor.scan().await.unwrap();
    let reason = report.frozen.unwrap();
    assert!(reason.contains("the first launch records it"), "{reason}");
    assert_eq!(report.orphans.len(), 2, "they are reported");
    assert_eq!(two.wrong.oracle().call_count(WireCall::Terminate), 0);
    two.switch.switch_to(0);
    two.create(1).await;
    two.region.during(two.running(1)).await;
    assert_eq!(two.region.monitor.scan().await.unwrap().frozen, None);
}

#[tokio::test(start_paused = true)]
async fn change_that_fails_on_another_account_is_made_when_the_account_is_back() {
    let two = TwoAccounts::new();
    two.create(1).await;
    let (admin, id) = (server_admin(), server_id(1));
    let servers = &two.region.servers;
    two.region
        .during(async {
            two.running(1).await;
            let stopped = servers.set_power(&admin, id, Power::Stopped);
            stopped.await.unwrap();
            let stopped = |view: &ServerView| view.phase == Phase::Stopped;
            let mut spec = two.region.until(id, stopped).await.server.spec;
            two.switch.switch_to(1);
            tokio::time::sleep(Duration::from_secs(1)).await;
            spec.flavor = FlavorId::new("large").unwrap();
            let changed = servers.set_spec(&admin, id, &spec, Consent::Destroy);
            changed.await.unwrap();
            let started = servers.set_power(&admin, id, Power::Running);
            started.await.unwrap();
            tokio::time::sleep(20 * MINUTE).await;
            two.switch.switch_to(0);
            let view = two.region.until(id, is_server_running).await;
            assert!(view.server.conditions.is_empty(), "{view:#?}");
            assert_eq!(view.server.machine.unwrap().applied.flavor, spec.flavor);
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn scan_of_another_account_says_which_and_what_to_do() {
    let two = TwoAccounts::new();
    two.create(1).await;
    two.region.during(two.running(1)).await;
    two.switch.switch_to(1);
    let error = two.region.monitor.scan().await.unwrap_err();
    let text = error.to_string();
    let (right, wrong) = (account_of(&two.right).await, account_of(&two.wrong).await);
    assert!(matches!(error, ScanError::OtherAccount { .. }), "{text}");
    assert!(
        text.contains(right.as_str()) && text.contains(wrong.as_str()),
        "{text}"
    );
    assert!(text.contains("the operator accepts"), "{text}");
    two.switch.switch_to(0);
    two.region.monitor.scan().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn operator_can_accept_another_account() {
    let two = TwoAccounts::new();
    two.create(1).await;
    two.region.during(two.running(1)).await;
    let (right, wrong) = (account_of(&two.right).await, account_of(&two.wrong).await);
    two.switch.switch_to(1);
    assert!(two.region.monitor.scan().await.is_err());
    let mistaken = two
        .accounts
        .accept(&operator(), &north(), &wrong, right.clone())
        .await;
    assert!(matches!(mistaken, Err(AcceptError::Changed { .. })));
    let tenant = project_user(tenant(1, 1));
    let stranger = two
        .accounts
        .accept(&tenant, &north(), &right, wrong.clone())
        .await;
    assert!(matches!(stranger, Err(AcceptError::Refused(_))));
    let accepted = two
        .accounts
        .accept(&operator(), &north(), &right, wrong.clone())
        .await;
    assert_eq!(accepted.unwrap().account, wrong);
    two.region.monitor.scan().await.unwrap();
    two.create(2).await;
    two.region
        .during(two.region.until(server_id(2), is_server_running))
        .await;
    assert_eq!(two.wrong.oracle().call_count(WireCall::Launch), 1);
    let lost = |view: &ServerView| view.phase == Phase::Lost;
    two.region
        .during(two.region.until(server_id(1), lost))
        .await;
    assert_eq!(two.right.oracle().call_count(WireCall::Terminate), 0);
}

#[tokio::test(start_paused = true)]
async fn account_of_an_older_region_is_recorded_where_its_machines_are() {
    let two = TwoAccounts::new();
    two.create(1).await;
    two.region.during(two.running(1)).await;
    let record = RecordId::new(RegionAccount::KIND, north().as_str()).unwrap();
    let deletion = Transaction::new().delete(record);
    two.region.store.commit(&deletion).await.unwrap();
    // No list of the other account contains a machine of the region, and the region has a machine.
    two.switch.switch_to(1);
    two.region.monitor.scan().await.unwrap();
    assert_eq!(two.accounts.read(&north()).await.unwrap(), None);
    two.switch.switch_to(0);
    two.region.monitor.scan().await.unwrap();
    assert_eq!(two.record().await.account, account_of(&two.right).await);
}
