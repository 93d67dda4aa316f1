//! What people do wrong does not destroy a machine: another account for a while, a change without a mapping, a size that the cloud
//! refuses. And whatever is refused, the machine can be stopped, started and rebooted.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::{sync::Arc, time::Duration};

use fleetwright::{
    InstanceId, InstanceProvisioner as _, OptionalVerb, Reboot, UserData, layer::Layered,
};
use fleetwright_facade_testkit::{
    HiddenMachines, NamePlanner, TestRegion, advance_until, is_server_running, machine_of,
    server_admin, server_id,
};
use fleetwright_memory::{Fault, MemoryCloud, Phase as When, RefusalReason, Rule, WireCall};
use fleetwright_region::{
    ids::{FlavorId, ImageId},
    server::{
        ConditionKind, Consent, MAX_USER_DATA_BYTES, Phase, Power, ServerId, ServerSpec, ServerView,
    },
};

fn refused(view: &ServerView) -> bool {
    view.server.condition(ConditionKind::Refused).is_some()
}

/// A region with a server that runs. The loops must run to keep it so.
async fn running_region(cloud: &MemoryCloud) -> (TestRegion, ServerId) {
    let region = TestRegion::new(Arc::new(cloud.provisioner()));
    let id = region.create(1).await;
    region.during(region.until(id, is_server_running)).await;
    (region, id)
}

async fn set_spec(region: &TestRegion, spec: &ServerSpec) {
    let admin = server_admin();
    let changed = region
        .servers
        .set_spec(&admin, server_id(1), spec, Consent::Destroy);
    changed.await.unwrap();
}

async fn set_power(region: &TestRegion, power: Power) {
    let admin = server_admin();
    let changed = region.servers.set_power(&admin, server_id(1), power);
    changed.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn machines_survive_a_while_on_another_account() {
    for servers in [1, 3, 12] {
        let cloud = MemoryCloud::new();
        let hidden = HiddenMachines::default();
        let layered = Layered::new(cloud.provisioner(), hidden.clone());
        let region = TestRegion::new(Arc::new(layered));
        for number in 1..=servers {
            region.create(number).await;
        }
        region
            .during(async {
                let mut machines = Vec::new();
                for number in 1..=servers {
                    let view = region.until(server_id(number), is_server_running).await;
                    machines.push(machine_of(&view));
                }
                hidden.set(true);
                tokio::time::sleep(Duration::from_secs(600)).await;
                hidden.set(false);
                tokio::time::sleep(Duration::from_secs(600)).await;
                for (number, machine) in (1..).zip(machines) {
                    let view = region.until(server_id(number), is_server_running).await;
                    assert_eq!(machine_of(&view), machine, "of {servers} servers");
                    assert!(view.server.conditions.is_empty(), "{view:#?}");
                }
            })
            .await;
        let oracle = cloud.oracle();
        assert_eq!(oracle.call_count(WireCall::Terminate), 0);
        assert_eq!(u128::from(oracle.call_count(WireCall::Launch)), servers);
    }
}

#[tokio::test(start_paused = true)]
async fn replacement_that_cannot_be_launched_keeps_the_machine() {
    let cloud = without_resizes();
    let (region, id) = running_region(&cloud).await;
    let before = region.read(id).await;
    let limit = cloud.provisioner().capabilities().max_user_data_bytes;
    let mut unmapped = before.server.spec.clone();
    unmapped.flavor = FlavorId::new("huge").unwrap();
    let mut too_large = before.server.spec.clone();
    too_large.flavor = FlavorId::new("large").unwrap();
    let size = (limit + 1).min(MAX_USER_DATA_BYTES);
    let script = format!("{:#<size$}", "#!/bin/sh\n");
    too_large.user_data = Some(UserData::new(script).unwrap());
    let mut cases = vec![(unmapped, "flavor huge is not in the catalog")];
    if size > limit {
        cases.push((too_large, "user data"));
    }
    region
        .during(async {
            for (spec, expected) in &cases {
                set_spec(&region, spec).await;
                let view = region.until(id, refused).await;
                let condition = view.server.condition(ConditionKind::Refused).unwrap();
                assert!(condition.message.contains(expected), "{condition:?}");
                tokio::time::sleep(Duration::from_secs(1200)).await;
                let view = region.read(id).await;
                assert_eq!(view.phase, Phase::Running, "{view:#?}");
                assert_eq!(machine_of(&view), machine_of(&before));
                set_spec(&region, &before.server.spec).await;
                let view = region.until(id, is_server_running).await;
                assert!(view.server.conditions.is_empty(), "{view:#?}");
            }
        })
        .await;
    assert_eq!(cloud.oracle().call_count(WireCall::Terminate), 0);
    assert_eq!(cloud.oracle().call_count(WireCall::Stop), 0);
}

/// A cloud on which another flavor needs another machine.
fn without_resizes() -> MemoryCloud {
    let builder = MemoryCloud::builder();
    builder.without_verb(OptionalVerb::ResizeInstance).build()
}

/// Requests a larger flavor, which needs a replacement, while terminations fail. Returns the spec and the number of terminations sent.
async fn fail_to_replace(
    cloud: &MemoryCloud,
    region: &TestRegion,
    before: &ServerView,
) -> (ServerSpec, u64) {
    let mut spec = before.server.spec.clone();
    spec.flavor = FlavorId::new("large").unwrap();
    region
        .during(async {
            set_spec(region, &spec).await;
            tokio::time::sleep(Duration::from_secs(60)).await;
        })
        .await;
    let sent = cloud.oracle().call_count(WireCall::Terminate);
    assert!(sent > 1, "the termination is repeated while it fails");
    (spec, sent)
}

/// The same region as a process with a mapping that lacks the flavor `large` opens it.
fn without_large(region: &TestRegion) -> TestRegion {
    let mut names = NamePlanner::identity();
    names.flavors.remove("large");
    let (store, clock) = (Arc::clone(&region.store), Arc::clone(&region.clock));
    TestRegion::reopened(Arc::clone(&region.cloud), store, names, clock)
}

#[tokio::test(start_paused = true)]
async fn termination_for_a_replacement_is_withdrawn_when_the_mapping_loses_the_entry() {
    let cloud = without_resizes();
    let (region, id) = running_region(&cloud).await;
    let before = region.read(id).await;
    let expired = Fault::Refused(RefusalReason::BadCredentials);
    cloud
        .faults()
        .add(Rule::always(WireCall::Terminate, expired));
    let (spec, sent) = fail_to_replace(&cloud, &region, &before).await;
    cloud.faults().clear();
    let incomplete = without_large(&region);
    incomplete
        .during(async {
            let view = incomplete.until(id, refused).await;
            assert_eq!(machine_of(&view), machine_of(&before));
            tokio::time::sleep(Duration::from_secs(1200)).await;
            assert_eq!(incomplete.read(id).await.phase, Phase::Running);
        })
        .await;
    assert_eq!(cloud.oracle().call_count(WireCall::Terminate), sent);
    // With the entry the replacement takes place.
    region
        .during(async {
            let view = region.until(id, is_server_running).await;
            assert_ne!(machine_of(&view), machine_of(&before));
            assert_eq!(view.server.machine.unwrap().applied.flavor, spec.flavor);
        })
        .await;
}

/// The first termination ends the machine and its response is lost; the second one does not find the machine. Then the mapping loses the
/// entry. The last observation is from before both, so it does not show that the machine still exists.
#[tokio::test(start_paused = true)]
async fn termination_that_had_an_effect_is_not_withdrawn_by_an_earlier_observation() {
    let cloud = MemoryCloud::builder()
        .without_verb(OptionalVerb::ResizeInstance)
        .terminated_visible(Duration::ZERO)
        .build();
    let (region, id) = running_region(&cloud).await;
    let before = region.read(id).await;
    let lost = Rule::nth(WireCall::Terminate, 1, Fault::Lost(When::After));
    let expired = Fault::Refused(RefusalReason::BadCredentials);
    for rule in [
        lost,
        Rule::always(WireCall::ListPage, expired.clone()),
        Rule::always(WireCall::Describe, expired),
    ] {
        cloud.faults().add(rule);
    }
    fail_to_replace(&cloud, &region, &before).await;
    let incomplete = without_large(&region);
    incomplete
        .during(async {
            tokio::time::sleep(Duration::from_secs(1200)).await;
            let machine = incomplete.read(id).await.server.machine.unwrap();
            assert!(machine.termination.is_some(), "{machine:#?}");
            cloud.faults().clear();
            let view = incomplete.until(id, refused).await;
            assert_ne!(view.phase, Phase::Lost, "{view:#?}");
        })
        .await;
    // With the entry the replacement takes place.
    region
        .during(async {
            let view = region.until(id, is_server_running).await;
            assert_ne!(machine_of(&view), machine_of(&before));
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn termination_for_a_replacement_is_not_sent_to_an_unreachable_zone_without_the_entry() {
    let cloud = without_resizes();
    let (region, id) = running_region(&cloud).await;
    let before = region.read(id).await;
    let zone = cloud.oracle().instance(&machine_of(&before)).unwrap();
    let zone = zone.info.placement.zone.unwrap();
    cloud.external_actor().disconnect(zone.clone());
    let (_, sent) = fail_to_replace(&cloud, &region, &before).await;
    let incomplete = without_large(&region);
    incomplete
        .during(async {
            tokio::time::sleep(Duration::from_secs(1200)).await;
            assert_eq!(cloud.oracle().call_count(WireCall::Terminate), sent);
            cloud.external_actor().reconnect(zone);
            let view = incomplete.until(id, refused).await;
            assert_eq!(machine_of(&view), machine_of(&before));
        })
        .await;
    assert_eq!(cloud.oracle().call_count(WireCall::Terminate), sent);
    // With the entry the replacement takes place.
    region
        .during(async {
            let view = region.until(id, is_server_running).await;
            assert_ne!(machine_of(&view), machine_of(&before));
        })
        .await;
}

/// A server whose tenant requests a flavor that needs another machine, while the cloud fails the termination. Then the tenant takes it
/// back, and the cloud recovers. Returns the machine before, and the server that runs after.
async fn take_back_a_replacement(cloud: &MemoryCloud, fault: Fault) -> (InstanceId, ServerView) {
    let (region, id) = running_region(cloud).await;
    let before = region.read(id).await;
    let mut spec = before.server.spec.clone();
    spec.flavor = FlavorId::new("large").unwrap();
    cloud.faults().add(Rule::always(WireCall::Terminate, fault));
    let after = region.during(async {
        set_spec(&region, &spec).await;
        let sent = async || (cloud.oracle().call_count(WireCall::Terminate) > 0).then_some(());
        advance_until("a termination that failed", sent).await;
        set_spec(&region, &before.server.spec).await;
        cloud.faults().clear();
        tokio::time::sleep(Duration::from_secs(1200)).await;
        region.until(id, is_server_running).await
    });
    let after = after.await;
    (machine_of(&before), after)
}

#[tokio::test(start_paused = true)]
async fn replacement_that_is_taken_back_before_the_cloud_accepted_it_keeps_the_machine() {
    let cloud = without_resizes();
    let busy = Fault::Refused(RefusalReason::Throttled(Duration::from_secs(1)));
    let (before, after) = take_back_a_replacement(&cloud, busy).await;
    assert_eq!(machine_of(&after), before);
    assert_eq!(cloud.oracle().instances().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn replacement_that_is_taken_back_too_late_launches_another_machine() {
    let cloud = without_resizes();
    let lost = Fault::Lost(When::After);
    let (before, after) = take_back_a_replacement(&cloud, lost).await;
    assert_ne!(machine_of(&after), before, "it was terminated");
    assert_eq!(
        after.server.machine.unwrap().applied.flavor.as_str(),
        "small"
    );
}

#[tokio::test(start_paused = true)]
async fn resize_that_cannot_be_planned_does_not_stop_the_machine() {
    let cloud = MemoryCloud::new();
    let (region, id) = running_region(&cloud).await;
    let mut spec = region.read(id).await.server.spec;
    spec.flavor = FlavorId::new("huge").unwrap();
    region
        .during(async {
            set_spec(&region, &spec).await;
            region.until(id, refused).await;
            tokio::time::sleep(Duration::from_secs(1200)).await;
            assert_eq!(region.read(id).await.phase, Phase::Running);
        })
        .await;
    assert_eq!(cloud.oracle().call_count(WireCall::Stop), 0);
}

#[tokio::test(start_paused = true)]
async fn size_that_the_cloud_refuses_late_starts_the_old_size_again() {
    let cloud = MemoryCloud::new();
    let (region, id) = running_region(&cloud).await;
    let no_capacity = Fault::Refused(RefusalReason::Capacity);
    cloud
        .faults()
        .add(Rule::always(WireCall::Resize, no_capacity));
    let mut spec = region.read(id).await.server.spec;
    spec.flavor = FlavorId::new("large").unwrap();
    region
        .during(async {
            set_spec(&region, &spec).await;
            let back = |view: &ServerView| view.phase == Phase::Running && refused(view);
            let view = region.until(id, back).await;
            let condition = view.server.condition(ConditionKind::Refused).unwrap();
            assert!(condition.message.contains("flavor large"), "{condition:?}");
            tokio::time::sleep(Duration::from_secs(1200)).await;
            let oracle = cloud.oracle();
            assert_eq!(oracle.call_count(WireCall::Stop), 1, "it is stopped once");
            assert_eq!(region.read(id).await.phase, Phase::Running);
            // While it is stopped on request, the change costs nothing and is tried again.
            cloud.faults().clear();
            set_power(&region, Power::Stopped).await;
            let resized = |view: &ServerView| {
                let applied = view
                    .server
                    .machine
                    .as_ref()
                    .map(|machine| &machine.applied.flavor);
                applied.is_some_and(|flavor| flavor.as_str() == "large")
            };
            region.until(id, resized).await;
            set_power(&region, Power::Running).await;
            let view = region.until(id, is_server_running).await;
            assert!(view.server.conditions.is_empty(), "{view:#?}");
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn change_that_fails_without_credentials_is_made_when_they_are_back() {
    type Change = fn(&mut ServerSpec);
    let changes: [(WireCall, Change); 2] = [
        (WireCall::Reimage, |spec| {
            spec.image = ImageId::new("rocky").unwrap();
        }),
        (WireCall::Resize, |spec| {
            spec.flavor = FlavorId::new("large").unwrap();
        }),
    ];
    for (call, change) in changes {
        let cloud = MemoryCloud::new();
        let (region, id) = running_region(&cloud).await;
        let expired = Fault::Refused(RefusalReason::BadCredentials);
        cloud.faults().add(Rule::always(call, expired));
        let mut spec = region.read(id).await.server.spec;
        change(&mut spec);
        region
            .during(async {
                set_spec(&region, &spec).await;
                tokio::time::sleep(Duration::from_secs(1200)).await;
                assert!(cloud.oracle().call_count(call) > 3, "{call:?} is repeated");
                cloud.faults().clear();
                let view = region.until(id, is_server_running).await;
                let machine = view.server.machine.as_ref().unwrap();
                assert_eq!(machine.applied.image, spec.image);
                assert_eq!(machine.applied.flavor, spec.flavor);
                assert!(view.server.conditions.is_empty(), "{view:#?}");
            })
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn refused_change_delays_no_stop_start_or_reboot() {
    let cloud = MemoryCloud::new();
    let (region, id) = running_region(&cloud).await;
    let before = region.read(id).await;
    let machine = machine_of(&before);
    let mut spec = before.server.spec;
    spec.flavor = FlavorId::new("huge").unwrap();
    region
        .during(async {
            set_spec(&region, &spec).await;
            region.until(id, refused).await;
            set_power(&region, Power::Stopped).await;
            region.until(id, |view| view.phase == Phase::Stopped).await;
            set_power(&region, Power::Running).await;
            region.until(id, |view| view.phase == Phase::Running).await;
            let boots = cloud.oracle().instance(&machine).unwrap().boots;
            let admin = server_admin();
            let requested = region.servers.request_reboot(&admin, id, Reboot::Hard);
            requested.await.unwrap();
            let rebooted = |view: &ServerView| {
                let machine = view.server.machine.as_ref().unwrap();
                machine.reboots == view.server.intent.reboots
            };
            region.until(id, rebooted).await;
            assert_eq!(cloud.oracle().instance(&machine).unwrap().boots, boots + 1);
            assert!(refused(&region.read(id).await), "the change is still shown");
        })
        .await;
}
