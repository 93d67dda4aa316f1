//! Azure as the table `azure` of a region describes it.

use fleetwright::{NetworkId, SecurityGroupId, Zone};
use fleetwright_azure::{
    AzureCloud, AzureCredentials, AzureLaunchConfig, AzureOptions, AzureProvisioner,
};
use fleetwright_region::file::reader::{self, Fields};

use super::read::{Times, checked, endpoint, line, public_address, report};
use crate::error::ServerError;

/// The table.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// The environment variable with an access token, instead of credentials.
    token_variable: Option<String>,
    launch: AzureLaunchConfig,
    options: AzureOptions,
}

/// Reads the table.
pub(super) fn read(mut table: Fields<'_, '_>) -> Option<Settings> {
    let subscription = table.required("subscription", line);
    let group = table.required("resource-group", line);
    let location = table.required("location", line);
    let subnet = table.required("subnet", checked(NetworkId::new));
    let key = table.required("ssh-public-key", line);
    let cloud = table.optional("cloud", |value| {
        let names = [
            ("public", AzureCloud::Public),
            ("china", AzureCloud::China),
            ("us-government", AzureCloud::UsGovernment),
        ];
        reader::one_of(&names, value)
    });
    let mut options = AzureOptions::for_cloud(cloud.unwrap_or(AzureCloud::Public));
    if let Some(endpoint) = table.optional("endpoint", endpoint) {
        options.endpoint = endpoint;
    }
    let token_variable = table.optional("access-token-variable", line);
    let admin = table.optional("admin-user", line);
    let security_group = table.optional("network-security-group", checked(SecurityGroupId::new));
    let zone = table.optional("zone", checked(Zone::new));
    let address = table.optional("public-address", public_address);
    let disk_type = table.optional("os-disk-type", line);
    let identities = table.list("user-identities", line);
    let times = Times {
        consistency_window: &mut options.consistency_window,
        poll_interval: &mut options.poll_interval,
        call_timeout: &mut options.call_timeout,
    };
    times.read(&mut table);
    let launch = match (subscription, group, location, subnet, key) {
        (Some(subscription), Some(group), Some(location), Some(subnet), Some(key)) => {
            let mut launch = AzureLaunchConfig::new(subscription, group, location, subnet, key);
            if let Some(admin) = admin {
                launch.admin_user = admin;
            }
            launch.network_security_group = security_group;
            launch.zone = zone;
            if let Some(address) = address {
                launch.public_address = address;
            }
            launch.os_disk_type = disk_type;
            launch.user_identities = identities.into_iter().collect();
            report(&table, launch.check()).map(|()| launch)
        }
        // What is missing was reported.
        _ => None,
    };
    table.finish();
    Some(Settings {
        token_variable,
        launch: launch?,
        options,
    })
}

impl Settings {
    /// Opens the provider.
    pub(super) fn open(&self) -> Result<AzureProvisioner, ServerError> {
        let (launch, options) = (self.launch.clone(), self.options.clone());
        let opened = AzureProvisioner::new(self.credentials()?, launch, options);
        opened.map_err(ServerError::internal)
    }

    fn credentials(&self) -> Result<AzureCredentials, ServerError> {
        let Some(name) = &self.token_variable else {
            let found = AzureCredentials::from_env();
            return found.map_err(|failure| ServerError::internal(failure.to_string()));
        };
        match std::env::var(name) {
            Ok(token) if !token.is_empty() => Ok(AzureCredentials::token(token)),
            _ => Err(ServerError::internal(format!(
                "access-token-variable names {name}, which is not set"
            ))),
        }
    }
}
