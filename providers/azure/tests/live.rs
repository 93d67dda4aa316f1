//! The contract against a real subscription. Runs only if these environment variables are set:
//!
//! ```text
//! FLEETWRIGHT_AZURE_LIVE=my-subscription FLEETWRIGHT_AZURE_GROUP=fleet FLEETWRIGHT_AZURE_LOCATION=eastus \
//!   FLEETWRIGHT_AZURE_SUBNET=vnet/default FLEETWRIGHT_AZURE_SSH_KEY="$(cat ~/.ssh/id_ed25519.pub)" \
//!   cargo test -p fleetwright-azure --test live -- LAUNCH --max-live 4
//! ```

use std::{env, process::ExitCode, sync::Arc, time::Duration};

use fleetwright_azure::{
    AzureCredentials, AzureLaunchConfig, AzureProvisioner,
    fleetwright::{
        ImageId, InstanceConfig, InstanceId, InstanceProvisioner, InstanceType, NetworkId,
        async_trait,
    },
};
use fleetwright_contract_tests::{Harness, OnMissing, live};

/// A small image that every subscription can launch.
const IMAGE: &str = "Canonical:0001-com-ubuntu-server-jammy:22_04-lts-gen2:latest";

fn main() -> ExitCode {
    live::main(group)
}

/// The resource group that the environment names.
fn group() -> Result<Group, String> {
    let subscription = env::var("FLEETWRIGHT_AZURE_LIVE")
        .map_err(|_| "FLEETWRIGHT_AZURE_LIVE is not set: no subscription is touched".to_owned())?;
    let required = |name: &str, what: &str| {
        env::var(name).map_err(|_| format!("{name} must name the {what} to launch into"))
    };
    let subnet = NetworkId::new(required("FLEETWRIGHT_AZURE_SUBNET", "subnet")?);
    let key = env::var("FLEETWRIGHT_AZURE_SSH_KEY")
        .map_err(|_| "FLEETWRIGHT_AZURE_SSH_KEY must be a public key".to_owned())?;
    let launch = AzureLaunchConfig::new(
        subscription,
        required("FLEETWRIGHT_AZURE_GROUP", "resource group")?,
        required("FLEETWRIGHT_AZURE_LOCATION", "location")?,
        subnet.map_err(|error| error.to_string())?,
        key,
    );
    launch.check().map_err(|error| error.to_string())?;
    AzureCredentials::from_env().map_err(|failure| failure.to_string())?;
    let image = env::var("FLEETWRIGHT_AZURE_IMAGE").unwrap_or_else(|_| IMAGE.to_owned());
    let image = ImageId::new(image).map_err(|error| error.to_string())?;
    let name = env::var("FLEETWRIGHT_AZURE_TYPE").unwrap_or_else(|_| "Standard_B1s".to_owned());
    let instance_type = InstanceType::new(name).map_err(|error| error.to_string())?;
    Ok(Group {
        config: InstanceConfig::new(image, instance_type),
        launch,
    })
}

struct Group {
    config: InstanceConfig,
    launch: AzureLaunchConfig,
}

#[async_trait]
impl Harness for Group {
    fn name(&self) -> String {
        "azure-live".to_owned()
    }

    #[expect(clippy::expect_used, reason = "the launch config is a valid constant")]
    async fn open(&self) -> Arc<dyn InstanceProvisioner> {
        let provisioner = AzureProvisioner::from_env(self.launch.clone());
        Arc::new(provisioner.expect("a launch config without a mistake"))
    }

    fn config(&self) -> InstanceConfig {
        self.config.clone()
    }

    #[expect(clippy::expect_used, reason = "the id is a valid constant")]
    fn unknown_id(&self) -> InstanceId {
        let id = format!(
            "azure:///subscriptions/{}/resourceGroups/{}/providers/Microsoft.Compute/virtualMachines/\
             fw-never-launched#00000000-0000-0000-0000-000000000001.1790000000000.00000000",
            self.launch.subscription, self.launch.resource_group
        );
        InstanceId::new(id).expect("an id")
    }

    fn budget(&self) -> Duration {
        Duration::from_secs(900)
    }

    fn on_missing(&self) -> OnMissing {
        OnMissing::ReportNotRun
    }
}
