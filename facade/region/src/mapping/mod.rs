//! Mappings: from the spec of a server to the configuration that a provider launches.
//!
//! Operators write one mapping file for each region, with the provider's names of the catalog's flavors and images and of
//! the tenants' networks and security groups. Native names are passed on unchanged and never interpreted. Planning is pure:
//! nothing here calls a cloud.

mod file;
mod plan;
mod planner;

pub use file::{NetworkMapping, Provider, RegionMapping};
pub use plan::{LaunchPlanner, LaunchSpec, MappedEntry, PlanError};
pub use planner::{RegionPlanner, ReloadError};
