//! Parses the parameters of RunInstances.
//!
//! The engine resolves the names in the result. Parameters that EC2 has and the emulator does not
//! are refused unless they are at their default, because nothing here reads them.

use std::{net::Ipv4Addr, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::Call;
use crate::ec2::{
    engine::{
        Engine,
        launch::{
            Credits, DeviceRequest, LaunchRequest, MetadataOptions, ShutdownBehavior, SpotKind,
        },
        network::group_not_found,
    },
    error::Refusal,
    knobs::Market,
    wire::params::Scope,
};

/// The maximum size of user data in bytes, before encoding.
const MAX_USER_DATA_BYTES: usize = 16 * 1024;

/// Parameters that may differ when a client token is used again.
const IGNORED_IN_DIGEST: [&str; 3] = ["ClientToken", "DryRun", "Placement.AvailabilityZone"];

/// The resource types that RunInstances can tag.
const TAGGABLE: [&str; 4] = [
    "instance",
    "volume",
    "network-interface",
    "spot-instances-request",
];

/// Parses a launch. Default instance type `m1.small`, as EC2's.
///
/// # Errors
///
/// `MissingParameter` for a missing image or count, `InvalidParameterValue` for a wrong value,
/// `InvalidParameterCombination` for a network interface together with a subnet or groups of the
/// instance.
pub(super) fn parse(call: &Call<'_>, engine: &Engine) -> Result<LaunchRequest, Refusal> {
    let root = call.root();
    let (min, max) = counts(&root)?;
    let mut tags = call.tag_specifications(&TAGGABLE)?;
    let mut tags_for = |kind: &str| tags.remove(kind).unwrap_or_default();
    let nic = nic(&root)?;
    let (market, spot_kind) = market(&root)?;
    let placement = root.scope("Placement");
    placement.choice("Tenancy", &[("default", ())])?;
    let mut groups = root.list("SecurityGroupId");
    groups.extend(groups_by_name(&root, engine)?);
    if nic.given && (!groups.is_empty() || root.text("SubnetId").is_some()) {
        let message = "Network interfaces and an instance-level subnet ID or security groups may not be specified on the \
                       same request";
        return Err(Refusal::combination(message));
    }
    groups.extend(nic.groups);
    let profile = root.scope("IamInstanceProfile");
    let request = LaunchRequest {
        image: root.required("ImageId")?,
        instance_type: root
            .text("InstanceType")
            .unwrap_or_else(|| "m1.small".to_owned()),
        min,
        max,
        zone: placement
            .text("AvailabilityZone")
            .filter(|zone| !zone.is_empty()),
        subnet: root.text("SubnetId").or(nic.subnet),
        groups,
        key_name: root.text("KeyName"),
        user_data: user_data(root.text("UserData"))?,
        token: token(call)?,
        instance_tags: tags_for("instance"),
        volume_tags: tags_for("volume"),
        nic_tags: tags_for("network-interface"),
        devices: devices(&root)?,
        public_address: nic.public,
        nic_description: nic.description,
        keep_nic: nic.keep,
        profile: profile.text("Arn").or_else(|| profile.text("Name")),
        metadata: metadata(&root.scope("MetadataOptions"), &MetadataOptions::default())?,
        market,
        spot_kind,
        protected: root.flag("DisableApiTermination")?.unwrap_or(false),
        shutdown: shutdown(&root, "InstanceInitiatedShutdownBehavior")?.unwrap_or_default(),
        ebs_optimized: root.flag("EbsOptimized")?.unwrap_or(false),
        monitoring: root.scope("Monitoring").flag("Enabled")?.unwrap_or(false),
        external: false,
        spot_price: root
            .scope("InstanceMarketOptions.SpotOptions")
            .text("MaxPrice"),
        spot_tags: tags_for("spot-instances-request"),
        stop_protected: root.flag("DisableApiStop")?.unwrap_or(false),
        credits: credits(&root.scope("CreditSpecification"))?,
        cpu: cpu(&root.scope("CpuOptions"))?,
        private_ip: address(&root, "PrivateIpAddress")?.or(nic.private_ip),
    };
    Ok(request)
}

/// Parses `MinCount` and `MaxCount`, both required and at least 1.
///
/// # Errors
///
/// `InvalidParameterValue` if the minimum is above the maximum, or the maximum above 1000.
fn counts(root: &Scope<'_>) -> Result<(u32, u32), Refusal> {
    let count = |name: &str| {
        let number: Option<u32> = root.number(name)?;
        let number = number.ok_or_else(|| Refusal::missing(name))?;
        if number == 0 {
            Err(root.invalid(name, "0", "Expected a positive integer."))
        } else {
            Ok(number)
        }
    };
    let (min, max) = (count("MinCount")?, count("MaxCount")?);
    if min > max {
        let message = format!(
            "Invalid value '{min}' for minCount. It must not be greater than maxCount, '{max}'."
        );
        return Err(Refusal::invalid(message));
    }
    if max > 1000 {
        return Err(root.invalid("MaxCount", &max.to_string(), "Expected at most 1000."));
    }
    Ok((min, max))
}

/// Returns the client token, and a digest of the other parameters to compare a replay with.
///
/// # Errors
///
/// `InvalidParameterValue` for more than 64 characters, or for characters that are not ASCII.
fn token(call: &Call<'_>) -> Result<Option<(String, uuid::Uuid)>, Refusal> {
    let root = call.root();
    let Some(token) = root.text("ClientToken").filter(|token| !token.is_empty()) else {
        return Ok(None);
    };
    if token.len() > 64 || !token.is_ascii() {
        return Err(root.invalid(
            "ClientToken",
            &token,
            "Expected at most 64 ASCII characters.",
        ));
    }
    Ok(Some((token, call.params.digest(&IGNORED_IN_DIGEST))))
}

/// Decodes user data. Empty user data is the same as none.
///
/// # Errors
///
/// `InvalidUserData.Malformed` for invalid base64, `InvalidParameterValue` for more than 16 KiB.
pub(super) fn user_data(encoded: Option<String>) -> Result<Option<Arc<[u8]>>, Refusal> {
    let Some(encoded) = encoded.filter(|encoded| !encoded.is_empty()) else {
        return Ok(None);
    };
    // Some clients wrap long base64 texts.
    let plain: String = encoded
        .chars()
        .filter(|c| !c.is_ascii_whitespace())
        .collect();
    let data = STANDARD.decode(plain).map_err(|_bad| {
        Refusal::client(
            "InvalidUserData.Malformed",
            "Invalid BASE64 encoding of user data.",
        )
    })?;
    if data.len() > MAX_USER_DATA_BYTES {
        return Err(Refusal::invalid(format!(
            "User data is limited to {MAX_USER_DATA_BYTES} bytes"
        )));
    }
    Ok(Some(data.into()))
}

/// Parses the behaviour at a shutdown of the guest: `stop` or `terminate`.
pub(super) fn shutdown(scope: &Scope<'_>, name: &str) -> Result<Option<ShutdownBehavior>, Refusal> {
    let choices = [
        ("stop", ShutdownBehavior::Stop),
        ("terminate", ShutdownBehavior::Terminate),
    ];
    scope.choice(name, &choices)
}

/// Returns the ids of security groups that are given by name.
///
/// # Errors
///
/// `InvalidGroup.NotFound`
fn groups_by_name(root: &Scope<'_>, engine: &Engine) -> Result<Vec<String>, Refusal> {
    let id_of = |name: String| {
        let mut groups = engine.network.groups.iter();
        let known = groups.find(|group| group.name == name);
        known
            .map(|group| group.id.clone())
            .ok_or_else(|| group_not_found(&name))
    };
    root.list("SecurityGroup").into_iter().map(id_of).collect()
}

/// Parses a volume type.
pub(super) fn volume_kind(scope: &Scope<'_>) -> Result<Option<String>, Refusal> {
    let kinds = ["gp2", "gp3", "io1", "io2", "sc1", "st1", "standard"].map(|kind| (kind, kind));
    Ok(scope.choice("VolumeType", &kinds)?.map(str::to_owned))
}

/// Parses the block device mappings. Sizes are 1 to 65536 GiB.
fn devices(root: &Scope<'_>) -> Result<Vec<DeviceRequest>, Refusal> {
    let device = |scope: &Scope<'_>| {
        let ebs = scope.scope("Ebs");
        let gib: Option<u32> = ebs.number("VolumeSize")?;
        if let Some(size) = gib.filter(|gib| !(1..=65_536).contains(gib)) {
            return Err(ebs.invalid("VolumeSize", &size.to_string(), "Expected 1 to 65536."));
        }
        Ok(DeviceRequest {
            name: scope.required("DeviceName")?,
            absent: scope.text("NoDevice").is_some(),
            gib,
            kind: volume_kind(&ebs)?,
            snapshot: ebs.text("SnapshotId"),
            iops: ebs.number("Iops")?,
            throughput: ebs.number("Throughput")?,
            encrypted: ebs.flag("Encrypted")?.unwrap_or(false),
            delete_on_termination: ebs.flag("DeleteOnTermination")?,
        })
    };
    root.groups("BlockDeviceMapping")
        .iter()
        .map(device)
        .collect()
}

/// The one network interface that a launch may describe.
#[derive(Debug, Default)]
struct NicRequest {
    /// Whether the launch describes one.
    given: bool,
    /// Whether it outlives the instance.
    keep: bool,
    /// Its subnet.
    subnet: Option<String>,
    /// Its security groups.
    groups: Vec<String>,
    /// Whether it gets a public address; `None` means as the subnet says.
    public: Option<bool>,
    /// Its description.
    description: String,
    /// Its private address.
    private_ip: Option<Ipv4Addr>,
}

/// Parses the network interface.
///
/// # Errors
///
/// `UnsupportedOperation` for a second interface, or for a device index other than 0.
fn nic(root: &Scope<'_>) -> Result<NicRequest, Refusal> {
    let scopes = root.groups("NetworkInterface");
    let Some(scope) = scopes.first() else {
        return Ok(NicRequest::default());
    };
    if scopes.len() > 1 || scope.number("DeviceIndex")?.unwrap_or(0_u32) != 0 {
        return Err(Refusal::unsupported(
            "Only one network interface, with device index 0, is emulated.",
        ));
    }
    Ok(NicRequest {
        given: true,
        keep: scope.flag("DeleteOnTermination")? == Some(false),
        subnet: scope.text("SubnetId"),
        groups: scope.list("SecurityGroupId"),
        public: scope.flag("AssociatePublicIpAddress")?,
        description: scope.text("Description").unwrap_or_default(),
        private_ip: address(scope, "PrivateIpAddress")?,
    })
}

/// Parses an address of version 4. An empty one is the same as none.
pub(super) fn address(scope: &Scope<'_>, name: &str) -> Result<Option<Ipv4Addr>, Refusal> {
    let Some(text) = scope.text(name).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let parsed = text.parse();
    parsed
        .map(Some)
        .map_err(|_| scope.invalid(name, &text, "Expected an IPv4 address."))
}

/// Parses how CPU credits are spent.
pub(super) fn credits(scope: &Scope<'_>) -> Result<Option<Credits>, Refusal> {
    let choices = [Credits::Standard, Credits::Unlimited].map(|credits| (credits.name(), credits));
    scope.choice("CpuCredits", &choices)
}

/// Parses the number of cores and of the threads of each, which belong together.
///
/// # Errors
///
/// `MissingParameter` for only one of them, `InvalidParameterValue` for zero.
fn cpu(scope: &Scope<'_>) -> Result<Option<(u32, u32)>, Refusal> {
    let (cores, threads) = (scope.number("CoreCount")?, scope.number("ThreadsPerCore")?);
    match (cores, threads) {
        (None, None) => Ok(None),
        (Some(_), None) => Err(Refusal::missing("CpuOptions.ThreadsPerCore")),
        (None, Some(_)) => Err(Refusal::missing("CpuOptions.CoreCount")),
        (Some(0), _) => Err(scope.invalid("CoreCount", "0", "Expected a positive integer.")),
        (_, Some(0)) => Err(scope.invalid("ThreadsPerCore", "0", "Expected 1 or 2.")),
        (Some(cores), Some(threads)) => Ok(Some((cores, threads))),
    }
}

/// Parses the market: on demand, unless `InstanceMarketOptions` says spot. The maximum price has
/// no effect.
///
/// # Errors
///
/// `MissingParameter` for market options without a market type.
fn market(root: &Scope<'_>) -> Result<(Market, SpotKind), Refusal> {
    let options = root.scope("InstanceMarketOptions");
    let market = options
        .choice("MarketType", &[("spot", Market::Spot)])?
        .unwrap_or(Market::OnDemand);
    let spot = options.scope("SpotOptions");
    let kinds = [
        ("one-time", SpotKind::OneTime),
        ("persistent", SpotKind::Persistent),
    ];
    let kind = spot.choice("SpotInstanceType", &kinds)?.unwrap_or_default();
    // Price and interruption behaviour make no difference here.
    let _price = spot.text("MaxPrice");
    spot.choice(
        "InstanceInterruptionBehavior",
        &[("terminate", ()), ("stop", ()), ("hibernate", ())],
    )?;
    if options.is_present() && market == Market::OnDemand {
        return Err(Refusal::missing("InstanceMarketOptions.MarketType"));
    }
    Ok((market, kind))
}

/// Parses the options of the metadata service, which are only stored. Those that are not given stay as in `default`.
///
/// # Errors
///
/// `InvalidParameterValue` for a hop limit outside 1 to 64.
pub(super) fn metadata(
    scope: &Scope<'_>,
    default: &MetadataOptions,
) -> Result<MetadataOptions, Refusal> {
    let on_off = [("enabled", true), ("disabled", false)];
    let hop_limit = scope
        .number("HttpPutResponseHopLimit")?
        .unwrap_or(default.hop_limit);
    if !(1..=64).contains(&hop_limit) {
        return Err(scope.invalid(
            "HttpPutResponseHopLimit",
            &hop_limit.to_string(),
            "Expected 1 to 64.",
        ));
    }
    Ok(MetadataOptions {
        tokens_required: scope
            .choice("HttpTokens", &[("required", true), ("optional", false)])?
            .unwrap_or(default.tokens_required),
        enabled: scope
            .choice("HttpEndpoint", &on_off)?
            .unwrap_or(default.enabled),
        tags: scope
            .choice("InstanceMetadataTags", &on_off)?
            .unwrap_or(default.tags),
        hop_limit,
    })
}
