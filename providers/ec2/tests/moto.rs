//! The contract against moto, an independent emulator of EC2. `scripts/test moto` starts it; without it
//! every clause is reported as ignored. `moto-waivers.toml` lists where moto differs from EC2, for one
//! version of moto.

use std::{env, process::ExitCode, sync::Arc, time::Duration};

use fleetwright_contract_tests::{Harness, OnMissing, cost_guard::CostLimits, live, waiver::Peer};
use fleetwright_ec2::{
    Ec2LaunchConfig, Ec2Options, Ec2Provisioner,
    aws_config::{BehaviorVersion, Region, SdkConfig},
    fleetwright::{
        ImageId, InstanceConfig, InstanceId, InstanceProvisioner, InstanceType, Zone, async_trait,
    },
};
use fleetwright_provider_testkit::emulated::parse_name;

fn main() -> ExitCode {
    // Nothing is billed.
    let limits = CostLimits {
        max_live: 2_000,
        max_time: Duration::from_secs(3_600),
    };
    live::main_with_limits(moto, limits)
}

fn moto() -> Result<Moto, String> {
    let variable = |name: &str| {
        env::var(name)
            .map_err(|_| format!("{name} is not set; run scripts/test moto, which sets it"))
    };
    Ok(Moto {
        endpoint: variable("FLEETWRIGHT_MOTO_ENDPOINT")?,
        version: variable("FLEETWRIGHT_MOTO_VERSION")?,
    })
}

struct Moto {
    endpoint: String,
    version: String,
}

#[async_trait]
impl Harness for Moto {
    fn name(&self) -> String {
        "ec2-moto".to_owned()
    }

    #[expect(clippy::expect_used, reason = "an empty launch config is valid")]
    async fn open(&self) -> Arc<dyn InstanceProvisioner> {
        let keys = aws_credential_types::Credentials::new("test", "test", None, None, "moto");
        let keys = aws_credential_types::provider::SharedCredentialsProvider::new(keys);
        let config = SdkConfig::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new("us-east-1"))
            .endpoint_url(self.endpoint.as_str())
            .credentials_provider(keys)
            .build();
        let mut options = Ec2Options::default();
        options.consistency_window = Duration::ZERO;
        options.poll_interval = Duration::from_millis(20);
        let opened = Ec2Provisioner::new(&config, Ec2LaunchConfig::new(), options);
        Arc::new(opened.expect("a valid launch config"))
    }

    fn config(&self) -> InstanceConfig {
        InstanceConfig::new(parse_name("ami-12c6146b"), parse_name("t3.micro"))
    }

    fn unknown_id(&self) -> InstanceId {
        parse_name("i-0fffffffffffffff0")
    }

    fn budget(&self) -> Duration {
        Duration::from_secs(20)
    }

    fn unknown_image(&self) -> Option<ImageId> {
        Some(parse_name("ami-0fffffffffffffff0"))
    }

    fn other_type(&self) -> Option<InstanceType> {
        Some(parse_name("t3.small"))
    }

    fn zone(&self) -> Option<Zone> {
        Some(parse_name("us-east-1b"))
    }

    fn peer(&self) -> Option<Peer> {
        Some(Peer {
            name: "moto".to_owned(),
            version: self.version.clone(),
        })
    }

    fn waivers(&self) -> String {
        include_str!("moto-waivers.toml").to_owned()
    }

    fn on_missing(&self) -> OnMissing {
        OnMissing::ReportNotRun
    }
}
