//! Any request gets a result that is meant for the caller: no panic, and no internal error.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::collections::{BTreeMap, BTreeSet};

use fleetwright::{PublicAddress, Tags, UserData};
use fleetwright_compute::{
    ComputeError, Meaning,
    instance::{Instance, InstanceSpec},
    service::{ListInstances, NewInstance, UpdateInstance},
};
use fleetwright_facade_testkit::{TestFacade, error_chain, operator, project_user, spec, tenant};
use fleetwright_region::{
    ids::{FlavorId, ImageId, NetworkId, SecurityGroupId, SshAuthorityId},
    name::Name,
    network::Prefix,
    server::Consent,
};
use fleetwright_store::Revision;
use proptest::prelude::*;
use uuid::Uuid;

fn names() -> impl Strategy<Value = Name> {
    "[0-9A-Za-z]([0-9A-Za-z_.-]{0,61}[0-9A-Za-z])?".prop_map(|text| Name::new(text).unwrap())
}

fn tags() -> impl Strategy<Value = Tags> {
    let prefix = prop::sample::select(vec![
        "",
        "fleetwright/",
        "Fleetwright-",
        "fleet",
        "kubernetes.io/",
    ]);
    let rest = prop_oneof![8 => "[\\PC\n\u{0}]{0,10}", 1 => "[a-z]{120,140}"];
    let key = (prefix, rest).prop_map(|(prefix, rest)| prefix.to_owned() + &rest);
    let value = prop_oneof![8 => ".{0,10}", 1 => "[a-z]{250,260}"];
    let count = prop_oneof![8 => 0..4_usize, 1 => 30..36_usize];
    count
        .prop_flat_map(move |count| prop::collection::btree_map(key.clone(), value.clone(), count))
        .prop_map(|tags: BTreeMap<_, _>| Tags::from_observed(tags))
}

fn ranges() -> impl Strategy<Value = BTreeSet<Prefix>> {
    let four = (any::<[u8; 4]>(), 0_u8..34).prop_map(|(bytes, length)| {
        let [a, b, c, d] = bytes;
        format!("{a}.{b}.{c}.{d}/{length}")
    });
    let six = (any::<u128>(), 0_u8..130)
        .prop_map(|(bits, length)| format!("{}/{length}", std::net::Ipv6Addr::from_bits(bits)));
    let any_text = prop_oneof![four, six, "\\PC{0,20}"];
    let read = any_text.prop_map(|text| text.parse::<Prefix>().ok());
    let none = Just(BTreeSet::new());
    let some =
        prop::collection::vec(read, 0..4).prop_map(|read| read.into_iter().flatten().collect());
    prop_oneof![3 => none, 1 => some]
}

fn user_data() -> impl Strategy<Value = Option<UserData>> {
    let first = prop::sample::select(vec![
        "#cloud-config\n",
        "#!/bin/sh\n",
        "#include\n",
        "Content-Type: multipart/mixed; boundary=b\nMIME-Version: 1.0\n\n",
        "\u{1f}",
        "## template: jinja\n",
        "",
    ]);
    let text =
        (first, "\\PC{0,60}").prop_map(|(first, rest)| (first.to_owned() + &rest).into_bytes());
    let bytes = prop::collection::vec(any::<u8>(), 0..60);
    let large = (32_700_usize..32_800).prop_map(|count| vec![b'#'; count]);
    let bytes = prop_oneof![4 => text, 2 => bytes, 1 => large];
    prop::option::of(bytes).prop_map(|bytes| UserData::new(bytes?).ok())
}

/// A spec whose references exist in part.
fn specs() -> impl Strategy<Value = InstanceSpec> {
    let flavor = prop::sample::select(vec![
        "small", "large", "gpu", "small", "large", "gpu", "arm", "metal", "none",
    ]);
    let image = prop::sample::select(vec![
        "debian", "rocky", "debian", "rocky", "virtual", "wide", "golden", "none",
    ]);
    let group = any::<u128>().prop_map(|bits| SecurityGroupId::from_uuid(Uuid::from_u128(bits)));
    let groups = prop_oneof![
        6 => Just(BTreeSet::new()),
        1 => prop::collection::btree_set(group, 0..40),
    ];
    let authority = prop_oneof![6 => Just(None), 1 => any::<u128>().prop_map(Some)];
    (
        flavor,
        image,
        groups,
        any::<bool>(),
        ranges(),
        authority,
        user_data(),
    )
        .prop_map(|(flavor, image, groups, public, ranges, authority, data)| {
            let flavor = FlavorId::new(flavor).unwrap();
            let mut spec = InstanceSpec::new(flavor, ImageId::new(image).unwrap());
            spec.networking.security_groups = groups;
            spec.networking.allowed_sources = ranges;
            if public {
                spec.networking.public_ip = PublicAddress::Assigned;
            }
            spec.ssh_authority =
                authority.map(|bits| SshAuthorityId::from_uuid(Uuid::from_u128(bits)));
            spec.user_data = data;
            spec
        })
}

/// Checks that an error is meant for the caller and contains no user data.
fn check_error(error: &ComputeError, spec: &InstanceSpec) {
    let text = format!("{error:?} {}", error_chain(error));
    assert_ne!(error.meaning(), Meaning::Internal, "{text}");
    assert!((400..=503).contains(&error.meaning().status()));
    assert!(!error.to_string().contains('\n'), "{text}");
    let data = spec
        .user_data
        .as_ref()
        .and_then(|data| std::str::from_utf8(data.as_bytes()).ok());
    if let Some(secret) = data
        .and_then(|data| data.lines().nth(1))
        .filter(|line| line.len() > 12)
    {
        assert!(!text.contains(secret), "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn any_request_gets_a_result_meant_for_its_caller(
        name in names(),
        tags in tags(),
        description in prop::option::of(prop_oneof![8 => "(?s).{0,40}", 1 => "[a-z]{1020,1030}"]),
        spec in specs(),
        other in specs(),
        other_tags in tags(),
        other_name in prop::option::weighted(0.1, names()),
        if_revision in prop::option::weighted(0.2, any::<bool>()),
        agrees in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let facade = TestFacade::new().await;
            let alice = project_user(tenant(1, 1));
            let blue = facade.network("blue").await;
            let mut requested = NewInstance::new(name.clone(), tenant(1, 1), blue, spec.clone());
            (requested.tags, requested.description) = (tags.clone(), description.clone());
            if let Err(error) = facade.instances.create(&alice, &requested).await {
                check_error(&error, &spec);
                assert_eq!(facade.count("instance").await + facade.count("allocation").await, 0);
                requested = NewInstance::new(name.clone(), tenant(1, 1), blue, fleetwright_facade_testkit::spec());
                facade.instances.create(&alice, &requested).await.unwrap();
            }
            let before = read(&facade, &requested).await;
            facade.make_machine(&before).await;
            let mut wanted = UpdateInstance::new(other_name.unwrap_or(name), other.clone());
            (wanted.tags, wanted.description) = (other_tags, description);
            wanted.if_revision = match if_revision {
                Some(true) => Some(facade.read(before.id).await.revision),
                Some(false) => Some(Revision::ZERO),
                None => None,
            };
            if agrees {
                wanted.consent = Consent::Destroy;
            }
            let dry = facade.instances.plan_update(&alice, before.id, &wanted).await;
            let result = facade.instances.update(&alice, before.id, &wanted).await;
            match (dry, result) {
                (Ok(planned), Ok((view, plan))) => {
                    assert_eq!(planned, plan);
                    assert_eq!((&view.instance.spec, &view.instance.tags), (&wanted.spec, &wanted.tags));
                    let destroys = plan.destructive().next().is_some();
                    assert!(agrees || !destroys);
                }
                (Ok(planned), Err(error)) => {
                    assert!(matches!(&error, ComputeError::NeedsConsent { plan, .. } if *plan == planned), "{error:?}");
                    check_error(&error, &other);
                    assert_eq!(read(&facade, &requested).await, before);
                }
                (Err(dry), Err(error)) => {
                    assert_eq!(dry.to_string(), error.to_string());
                    check_error(&error, &other);
                    assert_eq!(read(&facade, &requested).await, before);
                }
                (Err(dry), Ok(_)) => panic!("{dry:?}"),
            }
            let after = read(&facade, &requested).await;
            assert_eq!(fixed(&after), fixed(&before));
            // The region accepts whatever the service accepted.
            let principal = operator();
            let desired = after.desired_state();
            let applied = facade.servers.apply(&principal, after.server, &desired, after.consent);
            applied.await.unwrap();
        });
    }

    #[test]
    fn any_list_gets_a_result_meant_for_its_caller(
        tags in tags(),
        ids in prop::collection::vec(any::<u128>(), 0..120),
        limit in any::<u32>(),
        after in prop::option::of(any::<u128>()),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let facade = TestFacade::new().await;
            let mut wanted = ListInstances::default();
            wanted.tags = tags;
            wanted.networks = ids.iter().map(|bits| NetworkId::from_uuid(Uuid::from_u128(*bits))).collect();
            wanted.limit = limit;
            wanted.after = after.map(|bits| fleetwright_compute::instance::InstanceId::from_uuid(Uuid::from_u128(bits)));
            for principal in [project_user(tenant(1, 1)), operator()] {
                if let Err(error) = facade.instances.list(&principal, &wanted).await {
                    check_error(&error, &spec());
                }
            }
        });
    }
}

/// The fields that no update changes: identity, place, creator and status.
fn fixed(instance: &Instance) -> impl PartialEq + std::fmt::Debug {
    let owner = (instance.organization, instance.project);
    let place = (instance.region.clone(), instance.network);
    let created = (instance.created_at, instance.created_by.clone());
    let seen = (instance.status.clone(), instance.intent.clone());
    (
        instance.id,
        instance.server,
        instance.name.clone(),
        owner,
        place,
        created,
        seen,
    )
}

async fn read(facade: &TestFacade, requested: &NewInstance) -> Instance {
    let id = fleetwright_compute::instance::InstanceId::derive(requested.network, &requested.name);
    facade.read(id).await.instance
}
