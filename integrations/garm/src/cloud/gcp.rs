//! Compute Engine as the config file describes it.

use fleetwright::{InvalidValue, SecurityGroupId, Zone};
use fleetwright_gcp::{
    GcpLaunchConfig, GcpOptions, GcpProvisioner, ServiceAccount,
    google_cloud_auth::credentials::{Builder, Credentials, anonymous},
};

use crate::{
    config::{GcpCredentials, GcpSection, Limits},
    failure::Failure,
    settings::LaunchSettings,
    user_data::WindowsScript,
};

/// The metadata key whose script Google's images of Windows run once, before the first login ("Use startup scripts on Windows VMs").
const WINDOWS_SCRIPT: &str = "sysprep-specialize-script-ps1";

/// Opens the provisioner.
pub(super) async fn open(
    section: &GcpSection,
    settings: &LaunchSettings,
    limits: &Limits,
    script: Option<&WindowsScript>,
) -> Result<GcpProvisioner, Failure> {
    let mut options = GcpOptions::default();
    if let Some(window) = Limits::duration(limits.consistency_window_seconds) {
        options.consistency_window = window;
    }
    if let Some(interval) = Limits::duration(limits.poll_interval_seconds) {
        options.poll_interval = interval;
    }
    if let Some(timeout) = Limits::duration(limits.call_timeout_seconds) {
        options.call_timeout = timeout;
    }
    let launch = launch_config(section, settings, script);
    let launch = launch.map_err(|invalid| Failure::new(format!("gcp: {invalid}")))?;
    let endpoint = section.endpoint.as_deref();
    let opened = GcpProvisioner::new(credentials(section)?, endpoint, launch, options).await;
    opened.map_err(Failure::from)
}

fn credentials(section: &GcpSection) -> Result<Credentials, Failure> {
    match section.credentials {
        GcpCredentials::Anonymous => Ok(anonymous::Builder::new().build()),
        // The error can quote the file with the key.
        GcpCredentials::ApplicationDefault => Builder::default().build().map_err(|_| {
            Failure::new(
                "no credentials were found for Compute Engine: set GOOGLE_APPLICATION_CREDENTIALS and list it in environment_variables of \
                 the provider in GARM's config, or run GARM on a machine with a service account",
            )
        }),
    }
}

/// Returns the settings of launches.
pub(super) fn launch_config(
    section: &GcpSection,
    settings: &LaunchSettings,
    script: Option<&WindowsScript>,
) -> Result<GcpLaunchConfig, InvalidValue> {
    let zones = section.zones.iter().map(Zone::new);
    let zones: Vec<_> = zones.collect::<Result<_, _>>()?;
    let mut launch = GcpLaunchConfig::new(&section.project, zones);
    launch.network.clone_from(&section.network);
    launch.subnetwork.clone_from(&section.subnetwork);
    let tags = section.network_tags.iter().map(SecurityGroupId::new);
    launch.network_tags = tags.collect::<Result<_, _>>()?;
    let account = settings.service_account.as_ref();
    let account = account.or(section.service_account.as_ref());
    launch.service_account = account.map(ServiceAccount::new);
    launch.disk_type.clone_from(&section.disk_type);
    if let Some(address) = section.public_address {
        launch.public_address = address.into();
    }
    launch.labels.clone_from(&section.labels);
    if let Some(script) = script {
        let text = script.reveal().to_owned();
        launch.metadata.insert(WINDOWS_SCRIPT.to_owned(), text);
    }
    launch.check()?;
    Ok(launch)
}
