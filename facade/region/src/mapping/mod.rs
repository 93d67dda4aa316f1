//! From what a server is in the region's words to what a provider launches.

mod plan;

pub use plan::{LaunchPlanner, LaunchSpec, Unplannable};
