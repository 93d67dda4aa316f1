//! EC2 as the table `ec2` of a region describes it.

use fleetwright::{NetworkId, SecurityGroupId, Zone};
use fleetwright_ec2::{
    Ec2LaunchConfig, Ec2Options, Ec2Provisioner,
    aws_config::{self, BehaviorVersion, Region},
};
use fleetwright_region::file::reader::{self, Fields};

use super::read::{Times, checked, endpoint, line, public_address, report};
use crate::error::ServerError;

/// The table. Without it everything is as the SDK and the account say.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    region: Option<String>,
    profile: Option<String>,
    endpoint: Option<String>,
    launch: Ec2LaunchConfig,
    options: Ec2Options,
}

/// Reads the table.
pub(super) fn read(mut table: Fields<'_, '_>) -> Option<Settings> {
    let mut settings = Settings {
        region: table.optional("region", reader::text),
        profile: table.optional("profile", reader::text),
        endpoint: table.optional("endpoint", endpoint),
        ..Settings::default()
    };
    let launch = &mut settings.launch;
    if let Some(subnets) = table.table("subnets") {
        let subnets = subnets.keyed(|zone, subnet| {
            let zone = Zone::new(zone).map_err(|invalid| invalid.to_string())?;
            Ok((zone, checked(NetworkId::new)(subnet)?))
        });
        launch.subnets = subnets.into_iter().collect();
    }
    launch.default_subnet = table.optional("default-subnet", checked(NetworkId::new));
    let groups = table.list("security-groups", checked(SecurityGroupId::new));
    launch.security_groups = groups.into_iter().collect();
    launch.key_pair = table.optional("key-pair", line);
    launch.instance_profile = table.optional("instance-profile", line);
    launch.public_address = table.optional("public-address", public_address);
    launch.root_device.volume_type = table.optional("root-volume-type", line);
    launch.root_device.encrypted = table.optional("root-encrypted", reader::boolean);
    let hops = table.optional("metadata-hop-limit", |value| {
        reader::integer(&(1..=64), value)
    });
    if let Some(hops) = hops.and_then(|hops| u8::try_from(hops).ok()) {
        launch.metadata.hop_limit = hops;
    }
    let options = &mut settings.options;
    let times = Times {
        consistency_window: &mut options.consistency_window,
        poll_interval: &mut options.poll_interval,
        call_timeout: &mut options.call_timeout,
    };
    times.read(&mut table);
    options.usual_lag = options.usual_lag.min(options.consistency_window);
    let report_account = table.optional("report-account", reader::boolean);
    options.report_account = report_account.unwrap_or(options.report_account);
    let checked = report(&table, settings.launch.check());
    table.finish();
    checked.map(|()| settings)
}

impl Settings {
    /// Opens the provider. Credentials are looked up when the first call needs them.
    pub(super) async fn open(&self) -> Result<Ec2Provisioner, ServerError> {
        let mut loader = aws_config::defaults(BehaviorVersion::latest());
        if let Some(region) = &self.region {
            loader = loader.region(Region::new(region.clone()));
        }
        if let Some(profile) = &self.profile {
            loader = loader.profile_name(profile);
        }
        if let Some(endpoint) = &self.endpoint {
            loader = loader.endpoint_url(endpoint);
        }
        let config = loader.load().await;
        let opened = Ec2Provisioner::new(&config, self.launch.clone(), self.options.clone());
        opened.map_err(ServerError::internal)
    }
}
