//! Nothing but tests: the [region](https://docs.rs/fleetwright-region)'s end-to-end story, told over emulated clouds.
