//! The contract against a real project. Runs only if the environment variables are set:
//!
//! ```text
//! FLEETWRIGHT_GCP_LIVE=my-project FLEETWRIGHT_GCP_ZONES=us-central1-a cargo test -p fleetwright-gcp --test live -- LAUNCH --max-live 4
//! ```

use std::{env, process::ExitCode, sync::Arc, time::Duration};

use fleetwright_contract_tests::{Harness, OnMissing, live};
use fleetwright_gcp::{
    GcpLaunchConfig, GcpProvisioner,
    fleetwright::{
        ImageId, InstanceConfig, InstanceId, InstanceProvisioner, InstanceType, Zone, async_trait,
    },
};

/// A small image that every project can launch.
const IMAGE: &str = "projects/debian-cloud/global/images/family/debian-12";

fn main() -> ExitCode {
    live::main(project)
}

/// The project that the environment names.
fn project() -> Result<Project, String> {
    let project = env::var("FLEETWRIGHT_GCP_LIVE")
        .map_err(|_| "FLEETWRIGHT_GCP_LIVE is not set: no project is touched".to_owned())?;
    let zones = env::var("FLEETWRIGHT_GCP_ZONES")
        .map_err(|_| "FLEETWRIGHT_GCP_ZONES must name the zones to launch into".to_owned())?;
    let zones: Result<Vec<_>, _> = zones.split(',').map(Zone::new).collect();
    let launch = GcpLaunchConfig::new(project, zones.map_err(|error| error.to_string())?);
    launch.check().map_err(|error| error.to_string())?;
    let image = env::var("FLEETWRIGHT_GCP_IMAGE").unwrap_or_else(|_| IMAGE.to_owned());
    let image = ImageId::new(image).map_err(|error| error.to_string())?;
    let name = env::var("FLEETWRIGHT_GCP_TYPE").unwrap_or_else(|_| "e2-micro".to_owned());
    let instance_type = InstanceType::new(name).map_err(|error| error.to_string())?;
    Ok(Project {
        config: InstanceConfig::new(image, instance_type),
        launch,
    })
}

struct Project {
    config: InstanceConfig,
    launch: GcpLaunchConfig,
}

#[async_trait]
impl Harness for Project {
    fn name(&self) -> String {
        "gcp-live".to_owned()
    }

    #[expect(
        clippy::expect_used,
        reason = "the test cannot run without credentials"
    )]
    async fn open(&self) -> Arc<dyn InstanceProvisioner> {
        let provisioner = GcpProvisioner::from_env(self.launch.clone()).await;
        Arc::new(provisioner.expect("application default credentials"))
    }

    fn config(&self) -> InstanceConfig {
        self.config.clone()
    }

    #[expect(clippy::expect_used, reason = "the id is a valid constant")]
    fn unknown_id(&self) -> InstanceId {
        let (project, zone) = (&self.launch.project, &self.launch.zones[0]);
        let id = format!("gce://{project}/{zone}/fw-never-launched/18446744073709551615");
        InstanceId::new(id).expect("an id")
    }

    fn budget(&self) -> Duration {
        Duration::from_secs(600)
    }

    fn on_missing(&self) -> OnMissing {
        OnMissing::ReportNotRun
    }
}
