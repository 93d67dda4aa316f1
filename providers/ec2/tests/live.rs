//! The contract against a real account. It runs only if the environment enables it:
//!
//! ```text
//! FLEETWRIGHT_EC2_LIVE=1 FLEETWRIGHT_EC2_IMAGE=ami-… cargo test -p fleetwright-ec2 --test live -- LAUNCH --max-live 4
//! ```

use std::{env, process::ExitCode, sync::Arc, time::Duration};

use fleetwright_contract_tests::{Harness, OnMissing, live};
use fleetwright_ec2::{
    Ec2LaunchConfig, Ec2Provisioner,
    fleetwright::{
        ImageId, InstanceConfig, InstanceId, InstanceProvisioner, InstanceType, async_trait,
    },
};

fn main() -> ExitCode {
    live::main(account)
}

/// Returns the account that the environment describes.
fn account() -> Result<Account, String> {
    if env::var_os("FLEETWRIGHT_EC2_LIVE").is_none() {
        return Err(
            "FLEETWRIGHT_EC2_LIVE is not set; set it to run against a real account".to_owned(),
        );
    }
    let image = env::var("FLEETWRIGHT_EC2_IMAGE").map_err(|_| {
        "FLEETWRIGHT_EC2_IMAGE is not set; set it to a small image of the region".to_owned()
    })?;
    let image = ImageId::new(image).map_err(|error| error.to_string())?;
    let name = env::var("FLEETWRIGHT_EC2_TYPE").unwrap_or_else(|_| "t3.nano".to_owned());
    let instance_type = InstanceType::new(name).map_err(|error| error.to_string())?;
    Ok(Account {
        config: InstanceConfig::new(image, instance_type),
    })
}

struct Account {
    config: InstanceConfig,
}

#[async_trait]
impl Harness for Account {
    fn name(&self) -> String {
        "ec2-live".to_owned()
    }

    #[expect(clippy::expect_used, reason = "an empty launch config is valid")]
    async fn open(&self) -> Arc<dyn InstanceProvisioner> {
        let opened = Ec2Provisioner::from_env(Ec2LaunchConfig::new()).await;
        Arc::new(opened.expect("a valid launch config"))
    }

    fn config(&self) -> InstanceConfig {
        self.config.clone()
    }

    #[expect(clippy::expect_used, reason = "the id is a valid constant")]
    fn unknown_id(&self) -> InstanceId {
        InstanceId::new("i-0fffffffffffffff0").expect("an id")
    }

    fn budget(&self) -> Duration {
        Duration::from_secs(600)
    }

    fn on_missing(&self) -> OnMissing {
        OnMissing::ReportNotRun
    }
}
