//! Why the program cannot start.

use fleetwright_compute::facade::FacadeError;
use fleetwright_store::StoreError;

use crate::config::ConfigError;

/// Why the service cannot start, or stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// A file cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The façade cannot be built.
    #[error(transparent)]
    Facade(#[from] FacadeError),
    /// The store cannot be opened.
    #[error("the store cannot be opened")]
    Store(#[from] StoreError),
    /// The address cannot be listened at.
    #[error("{address} cannot be listened at: {source}; choose another with --listen")]
    Listen {
        /// The address.
        address: std::net::SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The operating system failed.
    #[error("the operating system failed")]
    Io(#[from] std::io::Error),
    /// Something that was called at the start failed.
    #[error("the start failed")]
    Start(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl ServerError {
    pub(crate) fn internal(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Start(error.into())
    }
}
