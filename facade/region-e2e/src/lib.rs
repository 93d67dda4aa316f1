//! Tests only: the lifecycle of a server of the [region](https://docs.rs/fleetwright-region) on the emulated clouds.
