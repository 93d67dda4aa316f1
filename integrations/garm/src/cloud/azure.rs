//! Azure as the config file describes it.

use fleetwright::{InvalidValue, NetworkId, SecurityGroupId, Zone};
use fleetwright_azure::{
    AzureCloud, AzureCredentials, AzureLaunchConfig, AzureOptions, AzureProvisioner,
};

use crate::{
    config::{AzureSection, Limits},
    failure::Failure,
    settings::LaunchSettings,
};

/// Opens the provisioner.
pub(super) fn open(
    section: &AzureSection,
    settings: &LaunchSettings,
    limits: &Limits,
) -> Result<AzureProvisioner, Failure> {
    let mut options = AzureOptions::for_cloud(cloud()?);
    if let Some(endpoint) = &section.endpoint {
        options.endpoint.clone_from(endpoint);
    }
    // The process ends after one call. What a failed creation leaves, the deletion of the instance removes.
    options.background_cleanup = false;
    if let Some(window) = Limits::duration(limits.consistency_window_seconds) {
        options.consistency_window = window;
    }
    if let Some(interval) = Limits::duration(limits.poll_interval_seconds) {
        options.poll_interval = interval;
    }
    if let Some(timeout) = Limits::duration(limits.call_timeout_seconds) {
        options.call_timeout = timeout;
    }
    let launch = launch_config(section, settings);
    let launch = launch.map_err(|invalid| Failure::new(format!("azure: {invalid}")))?;
    Ok(AzureProvisioner::new(
        credentials(section)?,
        launch,
        options,
    )?)
}

/// Returns the cloud of the authority that the environment names, as the provider's own `from_env` does.
fn cloud() -> Result<AzureCloud, Failure> {
    let authority = std::env::var("AZURE_AUTHORITY_HOST").unwrap_or_default();
    let host = authority
        .trim_start_matches("https://")
        .trim_end_matches('/');
    match host {
        "" | "login.microsoftonline.com" => Ok(AzureCloud::Public),
        "login.chinacloudapi.cn" => Ok(AzureCloud::China),
        "login.microsoftonline.us" => Ok(AzureCloud::UsGovernment),
        other => Err(Failure::new(format!(
            "AZURE_AUTHORITY_HOST is {other:?}: expected https://login.microsoftonline.com, https://login.chinacloudapi.cn or \
             https://login.microsoftonline.us"
        ))),
    }
}

fn credentials(section: &AzureSection) -> Result<AzureCredentials, Failure> {
    let Some(name) = &section.access_token_variable else {
        let found = AzureCredentials::from_env();
        return found.map_err(|failure| {
            Failure::new(format!(
                "{failure}; environment_variables of the provider in GARM's config must list the variables, as in [\"AZURE_\"]"
            ))
        });
    };
    match std::env::var(name) {
        Ok(token) if !token.is_empty() => Ok(AzureCredentials::token(token)),
        _ => Err(Failure::new(format!(
            "azure.access_token_variable names {name}, which is not set: list it in environment_variables of the provider in GARM's config"
        ))),
    }
}

/// Returns the settings of launches.
pub(super) fn launch_config(
    section: &AzureSection,
    settings: &LaunchSettings,
) -> Result<AzureLaunchConfig, InvalidValue> {
    let subnet = NetworkId::new(&section.subnet)?;
    let mut launch = AzureLaunchConfig::new(
        &section.subscription,
        &section.resource_group,
        &section.location,
        subnet,
        &section.ssh_public_key,
    );
    if let Some(user) = &section.admin_user {
        launch.admin_user.clone_from(user);
    }
    let group = section.network_security_group.as_deref();
    launch.network_security_group = group.map(SecurityGroupId::new).transpose()?;
    launch.zone = section.zone.as_deref().map(Zone::new).transpose()?;
    if let Some(address) = section.public_address {
        launch.public_address = address.into();
    }
    launch.os_disk_type.clone_from(&section.os_disk_type);
    let identities = settings.user_identities.as_ref();
    let identities = identities.unwrap_or(&section.user_identities);
    launch.user_identities = identities.iter().cloned().collect();
    launch.check()?;
    Ok(launch)
}
