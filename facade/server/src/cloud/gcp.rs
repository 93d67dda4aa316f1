//! Compute Engine as the table `gcp` of a region describes it.

use fleetwright::{SecurityGroupId, Zone};
use fleetwright_gcp::{
    GcpLaunchConfig, GcpOptions, GcpProvisioner, ServiceAccount,
    google_cloud_auth::credentials::{Builder, Credentials, anonymous},
};
use fleetwright_region::file::reader::{self, Fields};

use super::read::{Times, checked, endpoint, line, public_address, report};
use crate::error::ServerError;

/// Where credentials come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CredentialSource {
    /// The application default credentials of Google's tools.
    ApplicationDefault,
    /// None, for an emulator.
    Anonymous,
}

/// The table.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    endpoint: Option<String>,
    credentials: CredentialSource,
    launch: GcpLaunchConfig,
    options: GcpOptions,
}

/// Reads the table.
pub(super) fn read(mut table: Fields<'_, '_>) -> Option<Settings> {
    let project = table.required("project", line);
    let zones = table.list("zones", checked(Zone::new));
    table.missing("zones", "an array of zones, as [\"europe-west1-b\"]");
    let endpoint = table.optional("endpoint", endpoint);
    let credentials = table.optional("credentials", |value| {
        let names = [
            ("application-default", CredentialSource::ApplicationDefault),
            ("anonymous", CredentialSource::Anonymous),
        ];
        reader::one_of(&names, value)
    });
    let credentials = credentials.unwrap_or(CredentialSource::ApplicationDefault);
    if credentials == CredentialSource::Anonymous && endpoint.is_none() {
        let what =
            "Compute Engine refuses calls without credentials: set endpoint to that of an emulator";
        table.report_field("credentials", what);
    }
    let mut launch = GcpLaunchConfig::new(project.clone().unwrap_or_default(), zones);
    launch.network = table.optional("network", line);
    launch.subnetwork = table.optional("subnetwork", line);
    let tags = table.list("network-tags", checked(SecurityGroupId::new));
    launch.network_tags = tags.into_iter().collect();
    let account = table.optional("service-account", line);
    launch.service_account = account.map(ServiceAccount::new);
    launch.disk_type = table.optional("disk-type", line);
    if let Some(address) = table.optional("public-address", public_address) {
        launch.public_address = address;
    }
    if let Some(labels) = table.table("labels") {
        let labels = labels.keyed(|key, value| Ok((key.to_owned(), line(value)?)));
        launch.labels = labels.into_iter().collect();
    }
    let mut options = GcpOptions::default();
    let times = Times {
        consistency_window: &mut options.consistency_window,
        poll_interval: &mut options.poll_interval,
        call_timeout: &mut options.call_timeout,
    };
    times.read(&mut table);
    // What is missing was reported.
    let checked = project.and_then(|_| report(&table, launch.check()));
    table.finish();
    checked.map(|()| Settings {
        endpoint,
        credentials,
        launch,
        options,
    })
}

impl Settings {
    /// Opens the provider.
    pub(super) async fn open(&self) -> Result<GcpProvisioner, ServerError> {
        let (endpoint, launch) = (self.endpoint.as_deref(), self.launch.clone());
        let opened =
            GcpProvisioner::new(self.credentials()?, endpoint, launch, self.options.clone()).await;
        opened.map_err(ServerError::internal)
    }

    fn credentials(&self) -> Result<Credentials, ServerError> {
        match self.credentials {
            CredentialSource::Anonymous => Ok(anonymous::Builder::new().build()),
            // The error can quote the file with the key.
            CredentialSource::ApplicationDefault => Builder::default().build().map_err(|_| {
                ServerError::internal(
                    "no credentials were found for Compute Engine: set GOOGLE_APPLICATION_CREDENTIALS, or run the service on a machine with a \
                     service account",
                )
            }),
        }
    }
}
