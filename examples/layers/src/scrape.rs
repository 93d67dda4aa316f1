//! Serves the metrics to Prometheus, and reads them as it would.

use std::{
    error::Error,
    net::{SocketAddr, TcpListener},
};

use metrics_exporter_prometheus::PrometheusBuilder;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// Serves what is counted from now on at `address`; port 0 takes one that is free.
pub(crate) fn serve(address: SocketAddr) -> Result<SocketAddr, Box<dyn Error>> {
    let address = TcpListener::bind(address)
        .and_then(|listener| listener.local_addr())
        .map_err(|error| {
            format!("{address} cannot be listened at: {error}; give another --listen")
        })?;
    PrometheusBuilder::new()
        .with_http_listener(address)
        .install()?;
    Ok(address)
}

/// What is served, as text.
pub(crate) async fn scrape(address: SocketAddr) -> Result<String, Box<dyn Error>> {
    let mut stream = TcpStream::connect(address).await?;
    let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

/// The sum of the values of the metric `name` whose labels contain all of `labels`.
pub(crate) fn sum(text: &str, name: &str, labels: &[&str]) -> f64 {
    let of_it = text.lines().filter(|line| {
        let rest = line.strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with(['{', ' ']))
            && labels.iter().all(|label| line.contains(label))
    });
    of_it
        .filter_map(|line| line.rsplit(' ').next()?.trim().parse::<f64>().ok())
        .sum()
}
