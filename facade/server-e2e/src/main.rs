//! The service with every cloud, for the tests of this package.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    fleetwright_server::run().await
}
