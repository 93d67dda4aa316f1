//! What the region cannot launch is refused at the request, with a status of 422, while everything that exists keeps running: at
//! create, at update and at replace.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use fleetwright::{Tags, UserData};
use fleetwright_compute::{
    ComputeError, Meaning,
    instance::{ConditionKind, Instance},
    service::{NewInstance, UpdateInstance},
};
use fleetwright_facade_testkit::{
    MAPPING, TestFacade, error_chain, flavor, has_condition, image, is_applied, is_running,
    new_instance, project_user, tenant,
};
use fleetwright_memory::MemoryCloud;
use fleetwright_region::{
    ids::NetworkId,
    mapping::{LaunchPlanner as _, LaunchSpec},
    server::Consent,
};
use proptest::prelude::*;

/// The mapping without flavor `large` and image `rocky`.
fn poor_mapping() -> String {
    MAPPING
        .replace("large = \"m4\", ", "")
        .replace("rocky = \"img-8\", ", "")
}

/// A request, and the beginning of its refusal.
type Case = (&'static str, Box<dyn Fn(&mut NewInstance)>, String);

/// What no machine of the region can have, although the record is valid.
async fn impossible(facade: &TestFacade, network: NetworkId) -> Vec<Case> {
    let unmapped = facade.group(network, "unmapped").await;
    facade.set_mapping(&poor_mapping());
    let missing = "region north has no mapping for";
    vec![
        (
            "flavor",
            Box::new(|new| new.spec.flavor = flavor("large")),
            format!("spec.flavor: {missing} flavor large: choose another"),
        ),
        (
            "image",
            Box::new(|new| new.spec.image = image("rocky")),
            format!("spec.image: {missing} image rocky: choose another"),
        ),
        (
            "group",
            Box::new(move |new| new.spec.networking.security_groups = [unmapped].into()),
            format!("spec.networking.securityGroups: {missing} security group {unmapped}: choose another"),
        ),
        (
            "user data",
            Box::new(|new| new.spec.user_data = Some(script(16_000))),
            "spec.userData: the provider of this region refuses it, with what this system adds: user data".to_owned(),
        ),
        (
            "tags",
            Box::new(|new| new.tags = Tags::new().with("memory:team", "blue").unwrap()),
            "metadata.tags: the provider of this region refuses it, with what this system adds: tags[\"memory:team\"]"
                .to_owned(),
        ),
    ]
}

/// A script of this length: valid, and too long for some clouds once the system's part is added.
fn script(bytes: usize) -> UserData {
    let start = "#!/bin/sh\n";
    UserData::new(format!("{start}{}", "#".repeat(bytes - start.len()))).unwrap()
}

fn status_and_message(error: &ComputeError) -> (u16, String) {
    (error.meaning().status(), error_chain(error))
}

fn machines(cloud: &MemoryCloud) -> Vec<String> {
    let instances = cloud.oracle().instances();
    let ids = instances
        .iter()
        .map(|machine| format!("{:?} {:?}", machine.info.id, machine.info.state));
    ids.collect()
}

#[tokio::test(start_paused = true)]
async fn create_is_refused_if_the_region_cannot_launch_it() {
    let facade = TestFacade::new().await;
    let network = facade.network("net").await;
    let alice = project_user(tenant(1, 1));
    for (what, change, message) in impossible(&facade, network).await {
        let mut new = new_instance(network, "web");
        change(&mut new);
        let error = facade.instances.create(&alice, &new).await.unwrap_err();
        let (status, actual) = status_and_message(&error);
        assert!(actual.starts_with(&message), "{what}: {actual}");
        assert_eq!(status, 422, "{what}");
        facade.assert_balanced(0).await;
    }
    // A network without a mapping.
    facade.set_mapping(&MAPPING.replace(
        "[networks.default]",
        "[networks.00000000-0000-0000-0000-000000000077]",
    ));
    let error = facade.try_create(network, "web").await.unwrap_err();
    let (status, message) = status_and_message(&error);
    let expected =
        format!("network: region north has no mapping for network {network}: choose another");
    assert!(status == 422 && message.starts_with(&expected), "{message}");
    facade.assert_balanced(0).await;
}

#[tokio::test(start_paused = true)]
async fn update_is_refused_while_the_machine_runs_on() {
    let cloud = MemoryCloud::new();
    let (facade, network, id) = TestFacade::running_instance(&cloud).await;
    let alice = project_user(tenant(1, 1));
    let before = facade.read(id).await.instance;
    let running = machines(&cloud);
    for (what, change, message) in impossible(&facade, network).await {
        let mut new = new_instance(network, "web");
        change(&mut new);
        let mut wanted = UpdateInstance::of(&before);
        (wanted.spec, wanted.tags) = (new.spec, new.tags);
        wanted.consent = Consent::Destroy;
        let planned = facade.instances.plan_update(&alice, id, &wanted).await;
        let error = facade
            .instances
            .update(&alice, id, &wanted)
            .await
            .unwrap_err();
        let (status, actual) = status_and_message(&error);
        assert!(
            status == 422 && actual.starts_with(&message),
            "{what}: {actual}"
        );
        assert_eq!(
            error_chain(&planned.unwrap_err()),
            actual,
            "the dry run says the same"
        );
    }
    assert_eq!(facade.read(id).await.instance, before);
    facade
        .during(tokio::time::sleep(std::time::Duration::from_secs(600)))
        .await;
    assert_eq!(machines(&cloud), running);
    facade.assert_balanced(1).await;
}

#[tokio::test(start_paused = true)]
async fn replacement_is_refused_if_no_machine_could_follow() {
    let cloud = MemoryCloud::new();
    let (facade, _, id) = TestFacade::running_instance(&cloud).await;
    let alice = project_user(tenant(1, 1));
    let running = machines(&cloud);
    facade.set_mapping(&MAPPING.replace("small = \"m1\", ", ""));
    let before = facade.read(id).await.instance;
    let error = facade.instances.replace(&alice, id).await.unwrap_err();
    assert_eq!(error.meaning(), Meaning::Unprocessable);
    assert_eq!(facade.read(id).await.instance, before);
    facade.set_mapping(MAPPING);
    facade.instances.replace(&alice, id).await.unwrap();
    facade.during(facade.until(id, is_running)).await;
    assert_ne!(machines(&cloud), running);
}

/// A flavor that lost its mapping prevents only what needs a launch.
#[tokio::test(start_paused = true)]
async fn lost_mapping_does_not_block_unrelated_changes_or_their_withdrawal() {
    let cloud = MemoryCloud::new();
    let (facade, _, id) = TestFacade::running_instance(&cloud).await;
    let alice = project_user(tenant(1, 1));
    let first = facade.read(id).await.instance;
    // A destructive change that was accepted, and cannot be launched any more.
    let mut rocky = UpdateInstance::of(&first);
    rocky.spec.image = image("rocky");
    rocky.consent = Consent::Destroy;
    facade.instances.update(&alice, id, &rocky).await.unwrap();
    facade.set_mapping(
        &MAPPING
            .replace("small = \"m1\", ", "")
            .replace("rocky = \"img-8\", ", ""),
    );
    let refused = |instance: &Instance| has_condition(instance, ConditionKind::Refused);
    facade.during(facade.until(id, refused)).await;
    let mut tagged = UpdateInstance::of(&facade.read(id).await.instance);
    tagged.tags = Tags::new().with("team", "blue").unwrap();
    let error = facade
        .instances
        .update(&alice, id, &tagged)
        .await
        .unwrap_err();
    assert_eq!(
        error.meaning(),
        Meaning::Unprocessable,
        "the pending change is still impossible"
    );
    // It is taken back, although flavor `small` is unmapped too.
    let back = UpdateInstance::of(&first);
    facade.instances.update(&alice, id, &back).await.unwrap();
    let mut tagged = UpdateInstance::of(&facade.read(id).await.instance);
    tagged.tags = Tags::new().with("team", "blue").unwrap();
    facade.instances.update(&alice, id, &tagged).await.unwrap();
    tagged.description = Some("kept".to_owned());
    facade.instances.update(&alice, id, &tagged).await.unwrap();
    facade
        .during(facade.until(id, |instance| is_applied(instance) && !refused(instance)))
        .await;
    assert_eq!(cloud.oracle().instances().len(), 1);
    // Power works as ever.
    facade.instances.stop(&alice, id).await.unwrap();
    facade.during(facade.until(id, is_applied)).await;
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// A request is accepted exactly if the planner of the region can plan its launch, and then it is launched.
    #[test]
    fn accepted_requests_can_be_launched(
        mapped in prop::collection::vec(any::<bool>(), 6),
        (small, debian) in (any::<bool>(), any::<bool>()),
        grouped in any::<bool>(),
        bytes in prop_oneof![Just(20_usize), 15_000..17_000_usize],
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let facade = TestFacade::new().await;
            let network = facade.network("net").await;
            let group = facade.group(network, "ssh").await;
            let mut mapping = facade.mapping();
            let entries = ["small = \"m1\", ", "large = \"m4\", ", "debian = \"img-7\", ", "rocky = \"img-8\", "];
            for (entry, mapped) in entries.iter().zip(&mapped) {
                if !mapped {
                    mapping = mapping.replace(entry, "");
                }
            }
            if !mapped[4] {
                mapping = mapping.replace(&group.to_string(), "00000000-0000-0000-0000-000000000077");
            }
            if !mapped[5] {
                mapping = mapping.replace("[networks.default]", "[networks.00000000-0000-0000-0000-000000000077]");
            }
            facade.set_mapping(&mapping);
            let mut new = new_instance(network, "web");
            new.spec.flavor = flavor(if small { "small" } else { "large" });
            new.spec.image = image(if debian { "debian" } else { "rocky" });
            if grouped {
                new.spec.networking.security_groups.insert(group);
            }
            new.spec.user_data = Some(script(bytes));
            let launch = LaunchSpec {
                flavor: new.spec.flavor.clone(),
                image: new.spec.image.clone(),
                network,
                security_groups: new.spec.networking.security_groups.clone(),
                public_ip: new.spec.networking.public_ip,
                user_data: None,
                tags: Tags::new(),
                token: "t".parse().unwrap(),
            };
            let planned = facade.planner.plan(&launch).is_ok();
            let created = facade.instances.create(&project_user(tenant(1, 1)), &new).await;
            match created {
                Ok(view) => {
                    assert!(planned);
                    facade.during(facade.until(view.instance.id, is_running)).await;
                }
                Err(error) => {
                    assert_eq!(error.meaning(), Meaning::Unprocessable, "{error}");
                    assert!(!planned || bytes > 15_000, "{error}");
                    facade.assert_balanced(0).await;
                }
            }
        });
    }
}
