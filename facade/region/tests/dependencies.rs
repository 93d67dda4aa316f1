//! A server can depend only on its own tenant's resources.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use fleetwright::Tags;
use fleetwright_facade_testkit::{
    CATALOG, TestFacade, error_chain, flavor, image, north, operator, server_id, server_spec,
    server_user, south, tenant, without_entry,
};
use fleetwright_identity::{ActorName, Permission, Principal, Resource, Verb};
use fleetwright_region::{
    catalog::{ImageOwner, NewImage, SnapshotProgress},
    ids::{NetworkId, SecurityGroupId},
    name::Name,
    network::{Deletion, IfUsed},
    server::{Field, MAX_SECURITY_GROUPS, ServerError, ServerSpec},
};
use uuid::Uuid;

async fn refusal(facade: &TestFacade, principal: &Principal, spec: &ServerSpec) -> String {
    let error = facade.ensure(principal, 1, spec).await.unwrap_err();
    assert_eq!(facade.count("server").await, 0, "{error}");
    assert_eq!(facade.count("server-key").await, 0, "{error}");
    error_chain(&error)
}

#[tokio::test]
async fn server_requires_a_ready_network_of_its_tenant_and_region() {
    let facade = TestFacade::new().await;
    let (alice, own_project) = (server_user(tenant(1, 1)), tenant(1, 1));
    let scope = format!(
        "project {} of organization {}",
        own_project.1, own_project.0
    );
    let absent = NetworkId::from_uuid(Uuid::from_u128(77));
    let others = facade.network_in(tenant(1, 2), north(), "blue").await;
    let far = facade.network_in(own_project, south(), "blue").await;
    let deleting = facade.network("deleting").await;
    facade
        .ensure(&alice, 9, &server_spec(deleting))
        .await
        .unwrap();
    let waiting = facade
        .networks
        .delete(&alice, deleting, IfUsed::DeleteFirst)
        .await;
    assert_eq!(waiting.unwrap(), Deletion::Waiting);
    let table = [
        (&alice, absent, format!("there is no network {absent}")),
        (&alice, others, format!("there is no network {others}")),
        (
            &operator(),
            others,
            format!("network {others} is not in {scope}: choose one that is"),
        ),
        (
            &alice,
            far,
            format!("network {far} is not in region north: choose one that is"),
        ),
        (
            &alice,
            deleting,
            format!("network {deleting} is being deleted: choose another network"),
        ),
    ];
    for (principal, network, expected) in table {
        let error = facade
            .ensure(principal, 1, &server_spec(network))
            .await
            .unwrap_err();
        assert!(matches!(error, ServerError::Dependency(_)), "{error:?}");
        assert_eq!(error_chain(&error), expected);
        assert_eq!(facade.count("server").await, 1);
        assert_eq!(facade.count("server-key").await, 1);
    }
    // An existing server is returned, whatever its dependencies.
    facade
        .ensure(&alice, 9, &server_spec(deleting))
        .await
        .unwrap();
}

#[tokio::test]
async fn server_requires_groups_of_its_network_and_an_authority_of_its_project() {
    let facade = TestFacade::new().await;
    let alice = server_user(tenant(1, 1));
    let blue = facade.network("blue").await;
    let green = facade.network("green").await;
    let others = facade.network_in(tenant(2, 1), north(), "blue").await;
    let on_green = facade.group(green, "ssh").await;
    let theirs = facade.group(others, "ssh").await;
    let authority = facade.authority(tenant(1, 2)).await;

    let with_group = |group| {
        let mut spec = server_spec(blue);
        spec.security_groups.insert(group);
        spec
    };
    assert_eq!(
        refusal(&facade, &alice, &with_group(on_green)).await,
        format!("security group {on_green} is not in network {blue}: choose one that is")
    );
    assert_eq!(
        refusal(&facade, &alice, &with_group(theirs)).await,
        format!("there is no security group {theirs}")
    );
    assert!(
        refusal(&facade, &operator(), &with_group(theirs))
            .await
            .contains("is not in network")
    );
    let mut with_authority = server_spec(blue);
    with_authority.ssh_authority = Some(authority);
    let hidden = format!("there is no SSH certificate authority {authority}");
    assert_eq!(refusal(&facade, &alice, &with_authority).await, hidden);
    assert!(
        refusal(&facade, &operator(), &with_authority)
            .await
            .contains("is not in project")
    );
    let mut many = server_spec(blue);
    for number in 0..=MAX_SECURITY_GROUPS {
        let number = u128::try_from(number).unwrap();
        let group = SecurityGroupId::from_uuid(Uuid::from_u128(number));
        many.security_groups.insert(group);
    }
    let message = refusal(&facade, &alice, &many).await;
    assert!(message.contains("at most 32 are allowed"), "{message}");
}

#[tokio::test]
async fn largest_number_of_groups_fits_into_a_record() {
    let facade = TestFacade::new().await;
    let mut full = server_spec(facade.network("blue").await);
    for number in 0..MAX_SECURITY_GROUPS {
        let group = facade.group(full.network, &format!("g{number}")).await;
        full.security_groups.insert(group);
    }
    full.ssh_authority = Some(facade.authority(tenant(1, 1)).await);
    let created = facade
        .ensure(&server_user(tenant(1, 1)), 1, &full)
        .await
        .unwrap();
    assert_eq!(created.server.spec, full);
}

#[tokio::test]
async fn server_requires_a_visible_available_compatible_flavor_and_image() {
    let facade = TestFacade::new().await;
    let alice = server_user(tenant(1, 1));
    let blue = facade.network("blue").await;
    facade
        .catalog
        .load(&without_entry(CATALOG, "large"))
        .await
        .unwrap();
    let (organization, project) = tenant(1, 1);
    let [mut unmade, mut far] = [None, None];
    for (created, name, region) in [(&mut unmade, "unmade", north()), (&mut far, "far", south())] {
        let new = NewImage {
            name: Name::new(name).unwrap(),
            owner: ImageOwner {
                organization,
                project,
            },
            region,
            source: image("debian"),
            requested_at: facade.clock.now(),
        };
        *created = Some(
            facade
                .catalog
                .add_image(&operator(), &new, &facade.ledger)
                .await
                .unwrap()
                .id,
        );
    }
    let (unmade, far) = (unmade.unwrap(), far.unwrap());
    for making in [
        SnapshotProgress::Started("img-9".parse().unwrap()),
        SnapshotProgress::Ready,
    ] {
        let principal = operator();
        let created = facade.catalog.set_progress(&principal, &far, &making);
        created.await.unwrap();
    }

    let with =
        |flavor_id: &str, image_id: &str| ServerSpec::new(flavor(flavor_id), image(image_id), blue);
    let table = [
        (
            with("huge", "debian"),
            "there is no flavor huge: choose one that is offered",
        ),
        (
            with("large", "debian"),
            "flavor large is retired: choose one that is offered",
        ),
        (
            with("small", "beos"),
            "there is no image beos: choose one that is offered",
        ),
        (
            with("small", "golden"),
            "there is no image golden: choose one that is offered",
        ),
        (
            with("arm", "debian"),
            "image debian does not boot on flavor arm: choose another image or flavor: \
             the image is for x86_64 processors, but the flavor has aarch64",
        ),
    ];
    let not_ready =
        format!("image {unmade} is pending, not ready: wait until it is ready, or choose another");
    let far_away =
        format!("image {far} was created in region south: choose an image of region north");
    let table = table.into_iter().chain([
        (with("small", unmade.as_str()), not_ready.as_str()),
        (with("small", far.as_str()), far_away.as_str()),
    ]);
    for (spec, expected) in table {
        assert_eq!(refusal(&facade, &alice, &spec).await, expected);
        // A service sees every image, but cannot use another tenant's.
        assert_eq!(refusal(&facade, &operator(), &spec).await, expected);
    }
    let blind = [Verb::Create, Verb::Read]
        .map(|verb| Permission::new(verb, Resource::Servers).unwrap())
        .into_iter()
        .chain([Permission::new(Verb::Read, Resource::Networks).unwrap()]);
    let blind = Principal::service(ActorName::new("blind").unwrap(), blind);
    assert_eq!(
        refusal(&facade, &blind, &with("small", "debian")).await,
        "there is no flavor small: choose one that is offered"
    );
}

#[tokio::test]
async fn unchanged_fields_never_block_an_edit() {
    let facade = TestFacade::new().await;
    let alice = server_user(tenant(1, 1));
    let blue = facade.network("blue").await;
    let group = facade.group(blue, "ssh").await;
    let id = server_id(1);
    let first = server_spec(blue);
    facade.ensure(&alice, 1, &first).await.unwrap();
    let file = without_entry(&without_entry(CATALOG, "small"), "debian");
    facade.catalog.load(&file).await.unwrap();
    let deletion = facade
        .networks
        .delete(&alice, blue, IfUsed::DeleteFirst)
        .await;
    assert_eq!(deletion.unwrap(), Deletion::Waiting);

    let message_of =
        async |spec: &ServerSpec| error_chain(&facade.set_spec(&alice, spec).await.unwrap_err());
    // All dependencies are retired or being deleted: edits of other fields are accepted.
    let mut edited = first.clone();
    edited.tags = Tags::new().with("team", "red").unwrap();
    facade.set_spec(&alice, &edited).await.unwrap();
    edited.security_groups.insert(group);
    facade.set_spec(&alice, &edited).await.unwrap();
    // If flavor or image changes, compatibility is checked for both and availability for the new one.
    let mut arm = edited.clone();
    arm.flavor = flavor("arm");
    let message = message_of(&arm).await;
    assert!(
        message.starts_with("image debian does not boot on flavor arm"),
        "{message}"
    );
    let requested = facade.servers.plan_spec(&alice, id, &arm).await;
    assert_eq!(
        error_chain(&requested.unwrap_err()),
        message,
        "the plan is refused with the same message"
    );
    edited.image = image("rocky");
    facade.set_spec(&alice, &edited).await.unwrap();
    let rest = without_entry(CATALOG, "small");
    facade
        .catalog
        .load(&without_entry(&rest, "rocky"))
        .await
        .unwrap();
    edited.flavor = flavor("large");
    facade.set_spec(&alice, &edited).await.unwrap();
    let message = message_of(&first).await;
    assert_eq!(
        message,
        "flavor small is retired: choose one that is offered"
    );
    // Refused changes had no effect.
    let kept = facade.servers.read(&alice, id).await.unwrap().server;
    assert_eq!(kept.spec, edited);
    let changed = [
        Field::Flavor,
        Field::Image,
        Field::SecurityGroups,
        Field::Tags,
    ];
    assert_eq!(kept.spec.changed(&first), changed.into());
}

#[tokio::test]
async fn changed_dependencies_move_their_references() {
    let facade = TestFacade::new().await;
    let alice = server_user(tenant(1, 1));
    let (blue, green) = (facade.network("blue").await, facade.network("green").await);
    let (on_blue, on_green) = (
        facade.group(blue, "a").await,
        facade.group(green, "a").await,
    );
    let authority = facade.authority(tenant(1, 1)).await;
    let mut first = server_spec(blue);
    first.security_groups.insert(on_blue);
    facade.ensure(&alice, 1, &first).await.unwrap();

    let mut second = first.clone();
    second.network = green;
    let message_of =
        async |spec: &ServerSpec| error_chain(&facade.set_spec(&alice, spec).await.unwrap_err());
    // The group is unchanged but the network is not, so the group would be on another network.
    let message = message_of(&second).await;
    assert!(
        message.contains(&format!("is not in network {green}")),
        "{message}"
    );
    second.security_groups = [on_green].into();
    second.ssh_authority = Some(authority);
    facade.set_spec(&alice, &second).await.unwrap();

    facade
        .security_groups
        .delete(&alice, on_blue)
        .await
        .unwrap();
    let deletion = facade.networks.delete(&alice, blue, IfUsed::Refuse).await;
    assert_eq!(deletion.unwrap(), Deletion::Deleted);
    assert!(
        facade
            .security_groups
            .delete(&alice, on_green)
            .await
            .is_err()
    );
    assert!(
        facade
            .ssh_authorities
            .delete(&alice, authority)
            .await
            .is_err()
    );
    assert!(
        facade
            .networks
            .delete(&alice, green, IfUsed::Refuse)
            .await
            .is_err()
    );
    facade.servers.delete(&alice, server_id(1)).await.unwrap();
    let still = facade.networks.delete(&alice, green, IfUsed::Refuse).await;
    assert!(
        still.is_err(),
        "the record is there until its machine is gone"
    );
}
