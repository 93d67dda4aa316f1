//! Serves the metrics for Prometheus, and scrapes them as Prometheus would.

use std::{
    error::Error,
    net::{SocketAddr, TcpListener},
};

use metrics_exporter_prometheus::PrometheusBuilder;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// Records metrics from now on and serves them at `address`; port 0 selects a free port. Returns the
/// address.
pub(crate) fn serve(address: SocketAddr) -> Result<SocketAddr, Box<dyn Error>> {
    let address = TcpListener::bind(address)
        .and_then(|listener| listener.local_addr())
        .map_err(|error| {
            format!("cannot listen at {address}: {error}; choose another --listen address")
        })?;
    PrometheusBuilder::new()
        .with_http_listener(address)
        .install()?;
    Ok(address)
}

/// Returns the served metrics as text.
pub(crate) async fn scrape(address: SocketAddr) -> Result<String, Box<dyn Error>> {
    let mut stream = TcpStream::connect(address).await?;
    let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await?;
    let mut response = String::new();
    stream.read_to_string(&mut response).await?;
    Ok(response)
}

/// Returns the sum of the values of the metric `name` whose labels contain all of `labels`.
pub(crate) fn sum(text: &str, name: &str, labels: &[&str]) -> f64 {
    let matching = text.lines().filter(|line| {
        let rest = line.strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with(['{', ' ']))
            && labels.iter().all(|label| line.contains(label))
    });
    matching
        .filter_map(|line| line.rsplit(' ').next()?.trim().parse::<f64>().ok())
        .sum()
}
