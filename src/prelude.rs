//! The names that most callers of a provisioner need, for `use fleetwright::prelude::*`.
//!
//! Contains the traits, the config, the filter, the states, the errors and the wait policy. It leaves
//! out [`Result`](crate::Result), which would hide the one of the standard library, and everything
//! that only authors of backends and layers need.
//!
//! ```
//! use std::time::Duration;
//! use fleetwright::prelude::*;
//!
//! async fn replace(
//!     provisioner: &dyn InstanceProvisioner,
//!     id: &InstanceId,
//!     config: &InstanceConfig,
//! ) -> Result<InstanceInfo, ProvisionError> {
//!     let policy = WaitPolicy::within(Duration::from_secs(300));
//!     provisioner.terminate_and_wait(id, &policy).await?;
//!     provisioner.launch_and_wait(config, &policy).await
//! }
//! ```

pub use crate::{
    Capabilities, CloudInstanceState, Effect, ErrorKind, ImageId, InstanceConfig, InstanceFilter,
    InstanceId, InstanceInfo, InstanceProvisioner, InstanceProvisionerExt, InstanceStatus,
    InstanceType, InvalidValue, LaunchAttempt, LaunchRecord, LaunchToken, ListItem, Market,
    Placement, ProvisionError, PublicAddress, RetryAdvice, Scope, Tags, UserData, Zone,
    layer::Stack,
    wait::{WaitError, WaitPolicy},
};
