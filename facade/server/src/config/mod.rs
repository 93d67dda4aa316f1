//! What the operator sets: a file of TOML, checked as a whole. It opens nothing but the files that are checked.

mod check;
mod jwt;
mod read;
mod setting;

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use axum::http::HeaderValue;
use fleetwright_identity::ActorName;
use reqwest::Url;

use crate::{auth::jwt::JwtConfig, cloud::Cloud};

pub use check::{ConfigError, check};
pub(crate) use check::{load, load_text, load_tokens};
#[cfg(any(feature = "azure", feature = "ec2", feature = "gcp"))]
pub(crate) use jwt::url;
pub(crate) use read::read;
#[cfg(any(feature = "azure", feature = "ec2", feature = "gcp"))]
pub(crate) use setting::Period;

/// The limits of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// The largest body, in bytes.
    pub(crate) body: usize,
    /// How long a body may take to arrive.
    pub(crate) body_time: Duration,
    /// How long the headers may take to arrive.
    pub(crate) header_time: Duration,
    /// How long a reader may take no byte.
    pub(crate) write_time: Duration,
    /// How long a request may take.
    pub(crate) request_time: Duration,
    /// How many connections may be open.
    pub(crate) connections: usize,
    /// How many requests a caller may send in a second. Twice as many may come at once.
    pub(crate) rate: u32,
    /// How many requests of a caller may be under way.
    pub(crate) concurrency: usize,
    /// How many watches of a caller may be open.
    pub(crate) watches: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body: 1 << 20,
            body_time: Duration::from_secs(10),
            header_time: Duration::from_secs(5),
            write_time: Duration::from_secs(10),
            request_time: Duration::from_secs(30),
            connections: 4096,
            rate: 100,
            concurrency: 64,
            watches: 16,
        }
    }
}

/// One region.
#[derive(Clone, Debug)]
pub(crate) struct RegionConfig {
    pub(crate) cloud: Cloud,
    pub(crate) mapping: PathBuf,
}

/// The files of the certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TlsConfig {
    /// The certificate of the service, and those of its issuers, as PEM.
    pub(crate) certificate: PathBuf,
    /// Its private key, as PEM.
    pub(crate) key: PathBuf,
}

/// Where traces are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TracesConfig {
    /// The base address of a collector, which gets OTLP over HTTP.
    pub(crate) endpoint: Url,
    /// What the service is called in traces.
    pub(crate) service: String,
}

/// The whole configuration. Paths are relative to the folder of the file.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) listen: SocketAddr,
    pub(crate) database: PathBuf,
    pub(crate) catalog: PathBuf,
    pub(crate) tokens: Option<PathBuf>,
    pub(crate) jwt: Option<JwtConfig>,
    pub(crate) keyring: Option<PathBuf>,
    pub(crate) administrator: ActorName,
    pub(crate) regions: Vec<RegionConfig>,
    /// How often the regions are scanned.
    pub(crate) scan_interval: Duration,
    pub(crate) limits: Limits,
    pub(crate) tls: Option<TlsConfig>,
    pub(crate) traces: Option<TracesConfig>,
    /// The origins whose pages may call the service from a browser.
    pub(crate) origins: Vec<HeaderValue>,
}
