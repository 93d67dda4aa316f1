//! Which account the credentials belong to. The only file that uses the SDK's client of STS.
//!
//! EC2 has no call that names the caller's account if nothing exists in it. STS has: `GetCallerIdentity` needs no
//! permission and cannot be denied (AWS STS API reference, "GetCallerIdentity").

use std::time::Duration;

use aws_config::SdkConfig;
use aws_sdk_sts::{
    Client,
    config::{Builder, retry::RetryConfig, timeout::TimeoutConfig},
};
use fleetwright::AccountId;

use crate::{
    error::{Cause, Failure},
    send::{CompleteResponses, NoteSent, send},
};

/// STS in one region.
#[derive(Clone, Debug)]
pub(crate) struct AccountClient {
    sdk: Client,
    region: String,
}

impl AccountClient {
    /// Creates a client without the SDK's retries, with the timeouts of the client of EC2.
    pub(crate) fn new(config: &SdkConfig, timeouts: TimeoutConfig) -> Self {
        let sdk = Builder::from(config)
            .interceptor(NoteSent)
            .interceptor(CompleteResponses)
            .retry_config(RetryConfig::disabled())
            .timeout_config(timeouts)
            .build();
        Self {
            sdk: Client::from_conf(sdk),
            region: config.region().map(ToString::to_string).unwrap_or_default(),
        }
    }

    /// Returns partition, account and region: what a list of EC2 covers.
    pub(crate) async fn read(&self) -> Result<AccountId, Failure> {
        let caller = send(self.sdk.get_caller_identity().send()).await?;
        let partition = caller.arn().and_then(|arn| arn.split(':').nth(1));
        let (Some(partition), Some(account)) = (partition, caller.account()) else {
            let message = "the response of STS names no account";
            return Err(Failure::new(Cause::Unreadable, message));
        };
        let id = AccountId::new(format!("{partition}/{account}/{}", self.region));
        id.map_err(|_| {
            let message = "STS reported an account whose name is not valid";
            Failure::new(Cause::Unreadable, message)
        })
    }
}

/// Returns the timeouts of every client: `timeout` for a call, and 5 seconds at most to connect.
pub(crate) fn timeouts(timeout: Duration) -> TimeoutConfig {
    TimeoutConfig::builder()
        .connect_timeout(timeout.min(Duration::from_secs(5)))
        .operation_timeout(timeout)
        .build()
}
