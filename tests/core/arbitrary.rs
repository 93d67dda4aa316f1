//! Strategies for arbitrary values of the public types.

use std::{
    net::IpAddr,
    num::{NonZeroU32, NonZeroUsize},
    time::Duration,
};

use chrono::DateTime;
use fleetwright::{
    BatchLaunch, Capabilities, CloudInstanceState, ImageId, InstanceConfig, InstanceFilter,
    InstanceId, InstanceInfo, InstanceType, KeyCase, LaunchRecord, LaunchToken, MacAddress, Market,
    NetworkId, OptionalVerb, Placement, PlacementField, PublicAddress, SecurityGroupId, TagLimits,
    Tags, UserData, Zone,
};
use proptest::{
    collection::{btree_map, btree_set, vec},
    option::of,
    prelude::*,
    sample::{Select, select, subsequence},
};

/// An arbitrary valid name.
fn name() -> impl Strategy<Value = String> {
    r"[^\s\p{C}]{1,12}"
}

pub(crate) fn state() -> Select<CloudInstanceState> {
    select(&CloudInstanceState::ALL[..])
}

pub(crate) fn tags() -> impl Strategy<Value = Tags> {
    btree_map("\\PC{0,6}", "\\PC{0,6}", 0..4).prop_map(Tags::from_observed)
}

pub(crate) fn placement() -> impl Strategy<Value = Placement> {
    let address = select(&[PublicAddress::Assigned, PublicAddress::Absent]);
    let market = select(&[Market::OnDemand, Market::Spot]);
    let groups = btree_set(name(), 0..3);
    let fields = (of(name()), of(name()), groups, of(address), of(market));
    fields.prop_map(|(zone, network, groups, public_address, market)| {
        let mut placement = Placement::default();
        placement.zone = zone.map(|name| Zone::new(name).unwrap());
        placement.network = network.map(|name| NetworkId::new(name).unwrap());
        placement.security_groups = groups
            .into_iter()
            .map(|name| SecurityGroupId::new(name).unwrap())
            .collect();
        placement.public_address = public_address;
        placement.market = market;
        placement
    })
}

pub(crate) fn config() -> impl Strategy<Value = InstanceConfig> {
    let fields = (
        name(),
        name(),
        of(vec(any::<u8>(), 1..20)),
        tags(),
        of(any::<NonZeroU32>()),
        of("[!-~]{1,128}"),
        placement(),
    );
    fields.prop_map(|(image, kind, data, tags, disk, token, placement)| {
        let image = ImageId::new(image).unwrap();
        let mut config = InstanceConfig::new(image, InstanceType::new(kind).unwrap());
        config.user_data = data.map(|data| UserData::new(data).unwrap());
        config.tags = tags;
        config.disk_size_gb = disk;
        config.launch_token = token.map(|token| LaunchToken::new(token).unwrap());
        config.placement = placement;
        config
    })
}

pub(crate) fn info() -> impl Strategy<Value = InstanceInfo> {
    // The years 0 to 9999, the range of RFC 3339.
    let time = (-62_167_219_200_i64..253_402_300_800, 0_u32..1_000_000_000)
        .prop_map(|(secs, nanos)| DateTime::from_timestamp(secs, nanos).unwrap());
    let base = (name(), state(), of(".{0,9}"), of(".{0,9}"), of(time));
    let addresses = (
        of(any::<IpAddr>()),
        of(any::<IpAddr>()),
        of(any::<[u8; 6]>()),
    );
    let fields = (base, addresses, tags(), of(name()), of(name()), placement());
    fields.prop_map(|(base, addresses, tags, image, kind, placement)| {
        let mut info = InstanceInfo::new(InstanceId::new(base.0).unwrap(), base.1);
        (info.native_state, info.state_reason, info.launch_time) = (base.2, base.3, base.4);
        (info.private_ip, info.public_ip) = (addresses.0, addresses.1);
        info.mac_address = addresses.2.map(MacAddress::new);
        info.tags = tags;
        info.image = image.map(|name| ImageId::new(name).unwrap());
        info.instance_type = kind.map(|name| InstanceType::new(name).unwrap());
        info.placement = placement;
        info
    })
}

pub(crate) fn filter() -> impl Strategy<Value = InstanceFilter> {
    let states = subsequence(&CloudInstanceState::ALL[..], 0..=6);
    (tags(), states).prop_map(|(tags, states)| {
        let mut filter = InstanceFilter::new();
        filter.tags = tags;
        filter.states = states.into_iter().collect();
        filter
    })
}

pub(crate) fn record() -> impl Strategy<Value = LaunchRecord> {
    // Not by `LaunchRecord::from_instances`: a record of another version is read unchanged.
    prop_oneof![
        Just(LaunchRecord::NotFound),
        vec(info(), 0..3).prop_map(LaunchRecord::Found),
        vec(info(), 0..3).prop_map(LaunchRecord::Terminated),
    ]
}

fn limits() -> impl Strategy<Value = TagLimits> {
    let case = select(&[KeyCase::Distinct, KeyCase::Folded]);
    (any::<[usize; 3]>(), vec(".{0,4}", 0..3), ".{0,4}", case).prop_map(
        |([tags, key, value], reserved, forbidden, case)| {
            let mut limits = TagLimits::new(tags, key, value);
            limits.reserved_prefixes = reserved;
            limits.forbidden_in_keys = forbidden;
            limits.key_case = case;
            limits
        },
    )
}

pub(crate) fn capabilities() -> impl Strategy<Value = Capabilities> {
    let batch = select(&[BatchLaunch::AllOrNothing, BatchLaunch::Partial]);
    let size = any::<NonZeroUsize>;
    let sets = (
        subsequence(&PlacementField::ALL[..], 0..=5),
        subsequence(&OptionalVerb::ALL[..], 0..=OptionalVerb::ALL.len()),
    );
    let fields = (
        ".{0,9}",
        limits(),
        any::<usize>(),
        size(),
        size(),
        batch,
        sets,
    );
    let times = any::<[Duration; 4]>();
    (fields, times).prop_map(|(fields, times)| {
        let (provider, tags, data, page, size, batch, (placement, verbs)) = fields;
        let mut declared = Capabilities::new(provider, tags, data);
        (declared.page_size, declared.batch_size) = (page, size);
        declared.batch_launch = batch;
        declared.placement = placement.into_iter().collect();
        declared.verbs = verbs.into_iter().collect();
        [
            declared.consistency_window,
            declared.token_after_terminate,
            declared.terminated_visible,
            declared.poll_interval,
        ] = times;
        declared
    })
}
