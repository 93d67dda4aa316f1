//! Reads that do not show machines that exist.

use std::num::NonZeroU32;

use fleetwright_azure::fleetwright::{
    CloudInstanceState, ErrorKind, InstanceConfig, InstanceFilter, InstanceId, InstanceProvisioner,
    LaunchRecord,
};
use fleetwright_contract_tests::Harness as _;
use fleetwright_emulators::azure::{
    ExternalAction, Fault, FaultRule, Knobs, LateFailure, Operation, SubscriptionLists,
};

use crate::{
    HOUR, config_with_token, count_resources,
    emulated::{AzureHarness, path_of},
    running, wait_for_state, wait_until_deleted,
};

fn config_for(harness: &AzureHarness, token: Option<&str>) -> InstanceConfig {
    token.map_or_else(
        || harness.config(),
        |token| config_with_token(harness, token),
    )
}

/// Launches `count` machines, with or without a token, and waits until they run and are old.
async fn old_machines(harness: &AzureHarness, count: u32, token: Option<&str>) -> Vec<InstanceId> {
    let azure = harness.open().await;
    let config = config_for(harness, token);
    let count = NonZeroU32::new(count).unwrap();
    let launched = azure.launch_instances(&config, count).await.unwrap();
    let ids: Vec<_> = launched.into_iter().map(|info| info.id).collect();
    for id in &ids {
        wait_for_state(&*azure, id, CloudInstanceState::Running).await;
    }
    harness.emulator().advance(HOUR);
    ids
}

fn change_knobs(harness: &AzureHarness, change: impl FnOnce(&mut Knobs)) {
    let mut knobs = harness.emulator().knobs();
    change(&mut knobs);
    harness.emulator().set_knobs(knobs);
}

/// Lets the next `count` GETs of machines return 404.
fn miss_gets(harness: &AzureHarness, count: u64) {
    harness.emulator().clear_faults();
    for nth in 1..=count {
        let missed = Fault::Refused {
            status: 404,
            code: "ResourceNotFound".to_owned(),
            message: "not here".to_owned(),
        };
        let get = Operation::VirtualMachinesGet;
        harness
            .emulator()
            .add_fault(FaultRule::nth(get, nth, missed));
    }
}

#[tokio::test]
async fn trap_47_terminate_deletes_machines_that_no_read_shows() {
    for (count, token) in [(1, None), (1, Some("t-1")), (5, None), (5, Some("t-1"))] {
        for (lists, reads) in [(100, 0), (0, 100), (100, 100)] {
            let harness = AzureHarness::with_knobs(|_| {});
            let ids = old_machines(&harness, count, token).await;
            change_knobs(&harness, |knobs| {
                (knobs.omissions.lists, knobs.omissions.reads) = (lists, reads);
            });
            let azure = harness.open().await;
            for result in azure.terminate_instances(&ids).await {
                result.unwrap_or_else(|error| panic!("{count} {token:?} {lists} {reads}: {error}"));
            }
            wait_until_deleted(&harness).await;
        }
    }
}

#[tokio::test]
async fn terminate_deletes_young_machines_of_another_handle_that_lists_omit() {
    let harness = AzureHarness::with_knobs(|_| {});
    let mut options = harness.options();
    options.consistency_window = HOUR;
    let launch = AzureHarness::launch_config();
    let azure = harness
        .open_with_options(launch.clone(), options.clone())
        .await;
    let count = NonZeroU32::new(5).unwrap();
    let launched = azure.launch_instances(&harness.config(), count).await;
    let ids: Vec<_> = launched.unwrap().into_iter().map(|info| info.id).collect();
    for id in &ids {
        wait_for_state(&azure, id, CloudInstanceState::Running).await;
    }
    change_knobs(&harness, |knobs| knobs.omissions.lists = 100);
    let other = harness.open_with_options(launch, options).await;
    for result in other.terminate_instances(&ids).await {
        result.unwrap();
    }
    assert_eq!(harness.call_count("VirtualMachines_Delete"), 5);
    wait_until_deleted(&harness).await;
}

#[tokio::test]
async fn terminate_of_an_old_id_spares_the_next_machine_of_its_name() {
    let harness = AzureHarness::with_knobs(|_| {});
    let ids = old_machines(&harness, 1, Some("t-1")).await;
    let delete = ExternalAction::Delete {
        id: path_of(&ids[0]),
    };
    harness.emulator().perform_external(delete).unwrap();
    wait_until_deleted(&harness).await;
    let next = old_machines(&harness, 1, Some("t-1")).await;
    assert_ne!(next, ids);
    for missed in 0..=2 {
        miss_gets(&harness, missed);
        let azure = harness.open().await;
        azure.terminate_instance(&ids[0]).await.unwrap();
        assert_eq!(harness.call_count("VirtualMachines_Delete"), 0);
        assert_eq!(count_resources(&harness)[0], 1);
    }
}

#[tokio::test]
async fn refused_delete_of_a_machine_that_no_read_shows_is_an_error_until_it_succeeds() {
    let harness = AzureHarness::with_knobs(|_| {});
    let ids = old_machines(&harness, 1, Some("t-1")).await;
    change_knobs(&harness, |knobs| knobs.omissions.reads = 100);
    let azure = harness.open().await;
    let broken = Fault::ServerError {
        phase: fleetwright_emulators::azure::Phase::Before,
    };
    let delete = Operation::VirtualMachinesDelete;
    let rule = FaultRule::nth(delete, 1, broken);
    harness.emulator().add_fault(rule);
    let error = azure.terminate_instance(&ids[0]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert_eq!(count_resources(&harness)[0], 1);
    azure.terminate_instance(&ids[0]).await.unwrap();
    wait_until_deleted(&harness).await;
}

#[tokio::test]
async fn two_missing_reads_do_not_end_a_machine() {
    let harness = AzureHarness::with_knobs(|_| {});
    for count in [1, 3, 5] {
        let token = format!("t-{count}");
        let ids = old_machines(&harness, count, Some(&token)).await;
        change_knobs(&harness, |knobs| knobs.omissions.lists = 100);
        for missed in 0..=2 {
            let azure = harness.open().await;
            let describe = || {
                miss_gets(&harness, missed);
                azure.describe_instances(&ids)
            };
            for status in describe().await {
                let status = status.unwrap();
                assert_eq!(status.state, CloudInstanceState::Running);
                assert!(status.private_ip.is_some() && status.mac_address.is_some());
            }
            miss_gets(&harness, missed);
            for result in azure.stop_instances(&ids).await {
                result.unwrap();
            }
            for id in &ids {
                wait_for_state(&*azure, id, CloudInstanceState::Stopped).await;
            }
            miss_gets(&harness, missed);
            for result in azure.start_instances(&ids).await {
                result.unwrap();
            }
            for id in &ids {
                wait_for_state(&*azure, id, CloudInstanceState::Running).await;
            }
        }
        change_knobs(&harness, |knobs| knobs.omissions.lists = 0);
    }
}

#[tokio::test]
async fn missing_reads_hide_no_launch_and_lead_to_no_second_machine() {
    for count in [1, 3, 5] {
        let harness = AzureHarness::with_knobs(|_| {});
        let ids = old_machines(&harness, count, Some("t-1")).await;
        let config = config_with_token(&harness, "t-1");
        let token = config.launch_token.as_ref().unwrap();
        for (lists, missed) in [(100, 0), (0, 2), (40, 1), (60, 2)] {
            change_knobs(&harness, |knobs| knobs.omissions.lists = lists);
            let azure = harness.open().await;
            miss_gets(&harness, missed);
            let wanted = NonZeroU32::new(count).unwrap();
            let again = azure.launch_instances(&config, wanted).await.unwrap();
            let mut again: Vec<_> = again.into_iter().map(|info| info.id).collect();
            again.sort();
            let mut launched = ids.clone();
            launched.sort();
            assert_eq!(again, launched);
            assert_eq!(count_resources(&harness)[0], ids.len());
            miss_gets(&harness, missed);
            match azure.find_launch(token).await.unwrap() {
                LaunchRecord::Found(found) => assert_eq!(found.len(), ids.len()),
                other @ (LaunchRecord::Terminated(_) | LaunchRecord::NotFound) => {
                    panic!("{lists} {missed}: {other:?}")
                }
            }
        }
    }
}

#[tokio::test]
async fn list_shows_every_machine_although_its_lists_omit_some() {
    let harness = AzureHarness::with_knobs(|knobs| {
        knobs.page_size = NonZeroU32::new(5).unwrap();
    });
    let mut ids = old_machines(&harness, 12, Some("t-1")).await;
    ids.sort();
    let azure = harness.open().await;
    for percent in [0, 20, 50, 80, 100] {
        change_knobs(&harness, |knobs| knobs.omissions.lists = percent);
        for _ in 0..5 {
            let listed = azure.list_instances(&InstanceFilter::new()).await.unwrap();
            let mut listed_ids: Vec<_> = listed.iter().map(|info| info.id.clone()).collect();
            listed_ids.sort();
            assert_eq!(listed_ids, ids, "{percent}");
            for info in listed {
                assert_eq!(info.state, CloudInstanceState::Running);
                assert!(info.private_ip.is_some() && info.image.is_some());
            }
        }
    }
}

#[tokio::test]
async fn group_that_one_read_does_not_find_is_not_empty() {
    for list in [
        Operation::VirtualMachinesList,
        Operation::NetworkInterfacesList,
    ] {
        let harness = AzureHarness::with_knobs(|_| {});
        old_machines(&harness, 2, None).await;
        let missing = Fault::Refused {
            status: 404,
            code: "ResourceGroupNotFound".to_owned(),
            message: "Resource group 'rg' could not be found.".to_owned(),
        };
        harness
            .emulator()
            .add_fault(FaultRule::nth(list, 1, missing));
        let azure = harness.open().await;
        let filter = InstanceFilter::new();
        let error = azure.list_instances(&filter).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{list:?}: {error}");
        let listed = azure.list_instances(&filter).await.unwrap();
        assert_eq!(listed.len(), 2, "{list:?}");
    }
}

#[tokio::test]
async fn trap_51_group_that_one_creation_does_not_find_exists() {
    for token in [None, Some("t-1")] {
        let harness = AzureHarness::with_knobs(|knobs| {
            knobs.omissions.groups = 100;
            knobs.omissions.groups_in_a_row = Some(2);
        });
        let azure = harness.open().await;
        let config = config_for(&harness, token);
        let id = azure.launch_instance(&config).await.unwrap().id;
        assert!(path_of(&id).ends_with(&harness.only_instance().name));
        assert_eq!(harness.call_count("VirtualMachines_CreateOrUpdate"), 3);
    }
}

#[tokio::test]
async fn machine_that_another_actor_deleted_is_terminated_after_several_reads() {
    let harness = AzureHarness::with_knobs(|_| {});
    let azure = harness.open().await;
    let id = running(&harness, &*azure).await;
    harness.emulator().advance(HOUR);
    let delete = ExternalAction::Delete { id: path_of(&id) };
    harness.emulator().perform_external(delete).unwrap();
    wait_until_deleted(&harness).await;
    let gets = || harness.call_count("VirtualMachines_Get");
    let before = gets();
    let status = azure.describe_instance(&id).await.unwrap();
    assert_eq!(status.state, CloudInstanceState::Terminated);
    assert_eq!(gets() - before, 3);
    // Once it is known, one read is enough.
    azure.describe_instance(&id).await.unwrap();
    assert_eq!(gets() - before, 4);
}

#[tokio::test]
async fn machines_that_lists_omit_during_their_deletion_are_not_terminated() {
    let harness = AzureHarness::with_knobs(|_| {});
    let ids = old_machines(&harness, 8, None).await;
    change_knobs(&harness, |knobs| {
        knobs.timing.delete = HOUR;
        knobs.omissions.lists = 100;
    });
    let azure = harness.open().await;
    for result in azure.terminate_instances(&ids).await {
        result.unwrap();
    }
    for status in azure.describe_instances(&ids).await {
        assert_eq!(status.unwrap().state, CloudInstanceState::Terminating);
    }
    harness.emulator().advance(HOUR);
    wait_until_deleted(&harness).await;
    for status in azure.describe_instances(&ids).await {
        assert_eq!(status.unwrap().state, CloudInstanceState::Terminated);
    }
}

#[tokio::test]
async fn ends_that_lists_cannot_prove_are_proved_with_gets() {
    for list in [
        Operation::VirtualMachinesList,
        Operation::NetworkInterfacesList,
    ] {
        let harness = AzureHarness::with_knobs(|_| {});
        let azure = harness.open().await;
        let count = NonZeroU32::new(8).unwrap();
        let launched = azure.launch_instances(&harness.config(), count).await;
        let ids: Vec<_> = launched.unwrap().into_iter().map(|info| info.id).collect();
        for id in &ids {
            wait_for_state(&*azure, id, CloudInstanceState::Running).await;
        }
        for result in azure.terminate_instances(&ids).await {
            result.unwrap();
        }
        wait_until_deleted(&harness).await;
        harness.emulator().advance(HOUR);
        let refused = Fault::Refused {
            status: 403,
            code: "AuthorizationFailed".to_owned(),
            message: "refused by the test".to_owned(),
        };
        let rule = FaultRule::always(list, refused);
        harness.emulator().add_fault(rule);
        let before = harness.call_count("VirtualMachines_Get");
        for status in azure.describe_instances(&ids).await {
            assert_eq!(status.unwrap().state, CloudInstanceState::Terminated);
        }
        let sent = harness.call_count("VirtualMachines_Get") - before;
        assert_eq!(sent, 3 * 8, "{list:?}");
    }
}

#[tokio::test]
async fn cleanup_deletes_failed_machines_that_lists_omit() {
    let harness = AzureHarness::with_knobs(|knobs| {
        knobs.late_failures = vec![LateFailure::new("AllocationFailed", "no")];
        knobs.timing.boot = HOUR;
        knobs.omissions.lists = 100;
    });
    let azure = harness.open_with(AzureHarness::launch_config()).await;
    azure.launch_instance(&harness.config()).await.unwrap();
    // Longer than two consistency windows and several passes.
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    assert_eq!(azure.cleanup().tracked(), 1);
    harness.emulator().advance(HOUR);
    azure.cleanup().wait_idle().await;
    wait_until_deleted(&harness).await;
}

#[tokio::test]
async fn rights_on_the_resource_group_are_enough() {
    for lists in [SubscriptionLists::Forbidden, SubscriptionLists::Empty] {
        let harness = AzureHarness::with_knobs(|knobs| knobs.subscription_lists = lists);
        let mut ids = old_machines(&harness, 5, Some("t-1")).await;
        ids.sort();
        let azure = harness.open().await;
        for _ in 0..2 {
            let listed = azure.list_instances(&InstanceFilter::new()).await.unwrap();
            let states = listed.iter().map(|info| info.state);
            assert!(states.eq([CloudInstanceState::Running; 5]), "{lists:?}");
            assert!(listed.iter().all(|info| info.private_ip.is_some()));
        }
        for status in azure.describe_instances(&ids).await {
            let status = status.unwrap();
            assert_eq!(status.state, CloudInstanceState::Running);
            assert!(status.private_ip.is_some());
        }
        let token = "t-1".parse().unwrap();
        let found = azure.find_launch(&token).await.unwrap();
        assert!(matches!(found, LaunchRecord::Found(found) if found.len() == 5));
        if lists == SubscriptionLists::Forbidden {
            // The refused list is not sent with every call.
            let before = harness.call_count("VirtualMachines_ListAll");
            azure.list_instances(&InstanceFilter::new()).await.unwrap();
            assert_eq!(harness.call_count("VirtualMachines_ListAll"), before);
        }
        for result in azure.terminate_instances(&ids).await {
            result.unwrap();
        }
        wait_until_deleted(&harness).await;
    }
}

#[tokio::test]
async fn random_omissions_neither_double_nor_leak_a_machine() {
    for seed in 0..8 {
        let harness = AzureHarness::with_knobs(|knobs| {
            knobs.seed = seed;
            (knobs.omissions.lists, knobs.omissions.reads) = (40, 30);
            // Three reads in a row are the proof that a machine does not exist.
            knobs.omissions.reads_in_a_row = Some(2);
        });
        let count = 1 + u32::try_from(seed % 2).unwrap() * 4;
        let (config, wanted) = (
            config_with_token(&harness, "t-1"),
            NonZeroU32::new(count).unwrap(),
        );
        let mut ids = Vec::new();
        for _ in 0..4 {
            // Each time as another process that knows nothing.
            let azure = harness.open().await;
            let launched = azure.launch_instances(&config, wanted).await.unwrap();
            let mut launched: Vec<_> = launched.into_iter().map(|info| info.id).collect();
            launched.sort();
            if ids.is_empty() {
                ids.clone_from(&launched);
            }
            assert_eq!(launched, ids, "seed {seed}");
            assert_eq!(count_resources(&harness)[0], ids.len(), "seed {seed}");
            harness.emulator().advance(HOUR);
        }
        for result in harness.open().await.terminate_instances(&ids).await {
            result.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        }
        wait_until_deleted(&harness).await;
    }
}
