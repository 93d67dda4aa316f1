//! From what a server is in the region's words to what a provider launches.
//!
//! People write a mapping for each region: what its provider calls the catalog's flavors and images, the tenants' networks
//! and security groups. Native names are taken as they are; nothing here looks inside them.

mod file;
mod plan;
mod planner;

pub use file::{NetworkMapping, Provider, RegionMapping};
pub use plan::{LaunchPlanner, LaunchSpec, PlanError};
pub use planner::RegionPlanner;
