//! Reading the file.

use std::path::{Path, PathBuf};

use axum::http::HeaderValue;
use fleetwright_identity::ActorName;
use fleetwright_region::{
    catalog::ByteSize,
    file::{Problems, reader},
    mapping::Provider,
};

use reqwest::Url;

use crate::cloud::Cloud;

use super::{Config, Limits, RegionConfig, TlsConfig, TracesConfig, jwt, setting::Period};

/// How often the regions are scanned, unless the file says something else.
const SCAN_INTERVAL: std::time::Duration = std::time::Duration::from_secs(15);

/// Reads the text of a file in `folder`. Every mistake is reported, with its line and column.
pub(crate) fn read(text: &str, folder: &Path) -> Result<Config, Problems> {
    let read = reader::read_document(text, |fields| {
        let path = |value: &reader::Value<'_>| reader::text(value).map(|path| folder.join(path));
        let listen = fields.optional("listen", |value| {
            reader::parse_text(
                "an address with a port in quotes, as \"127.0.0.1:8080\"",
                value,
            )
        });
        let database = fields.required("database", path);
        let catalog = fields.required("catalog", path);
        let tokens = fields.optional("tokens", path);
        let jwt = fields.table("jwt");
        if jwt.is_none() {
            fields.missing("tokens", "a file in quotes, or a table [jwt]");
        }
        let jwt = jwt.map(|table| jwt::read(table, folder));
        let keyring = fields.optional("keyring", path);
        let administrator = fields.required("administrator", |value| reader::text(value));
        let administrator = administrator.and_then(|name| {
            let parsed = ActorName::new(name);
            parsed
                .map_err(|error| fields.report_field("administrator", error.to_string()))
                .ok()
        });
        let limits = fields.table("limits").map(read_limits).unwrap_or_default();
        let scan_interval = fields.optional("scan-interval", |value| {
            reader::parse_text::<Period>("a duration in quotes, as \"15 s\"", value)
        });
        let tls = fields.table("tls").map(|table| read_tls(table, folder));
        let origins = fields.table("cors").map(read_cors).unwrap_or_default();
        let traces = fields.table("traces").map(read_traces);
        let tables = fields.tables("region");
        if tables.is_empty() {
            fields.missing("region", "at least one [[region]]");
        }
        let regions = tables
            .into_iter()
            .filter_map(|table| read_region(table, folder));
        let regions = regions.collect();
        Some(Config {
            listen: listen.unwrap_or_else(|| ([127, 0, 0, 1], 8080).into()),
            database: database?,
            catalog: catalog?,
            tokens,
            jwt: valid(jwt)?,
            keyring,
            administrator: administrator?,
            regions,
            scan_interval: scan_interval.map_or(SCAN_INTERVAL, |Period(interval)| interval),
            limits,
            tls: valid(tls)?,
            traces: valid(traces)?,
            origins,
        })
    });
    // A field that is missing was reported.
    read.map(|config| config.ok_or_else(|| Problems::single("the file is not complete")))?
}

/// The value of an optional table. `None` if there is a table that is not valid.
fn valid<T>(table: Option<Option<T>>) -> Option<Option<T>> {
    match table {
        Some(None) => None,
        Some(Some(value)) => Some(Some(value)),
        None => Some(None),
    }
}

fn read_region(mut table: reader::Fields<'_, '_>, folder: &Path) -> Option<RegionConfig> {
    let names = Provider::ALL.map(|provider| (provider.as_str(), provider));
    let provider = table.required("provider", |value| reader::one_of(&names, value));
    let mapping: Option<PathBuf> = table.required("mapping", |value| {
        reader::text(value).map(|path| folder.join(path))
    });
    let cloud = provider.map(|provider| Cloud::read(provider, &mut table));
    // Without a provider, it is not known which table it should have.
    if cloud.is_some() {
        table.finish();
    }
    Some(RegionConfig {
        cloud: cloud??,
        mapping: mapping?,
    })
}

fn read_tls(mut table: reader::Fields<'_, '_>, folder: &Path) -> Option<TlsConfig> {
    let path = |value: &reader::Value<'_>| reader::text(value).map(|path| folder.join(path));
    let certificate = table.required("certificate", path);
    let key = table.required("key", path);
    table.finish();
    Some(TlsConfig {
        certificate: certificate?,
        key: key?,
    })
}

fn read_traces(mut table: reader::Fields<'_, '_>) -> Option<TracesConfig> {
    let endpoint = table.required("endpoint", |value| {
        let url: Url =
            reader::parse_text("an address in quotes, as \"http://127.0.0.1:4318\"", value)?;
        let is_base = matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.username().is_empty()
            && url.password().is_none();
        is_base
            .then_some(url)
            .ok_or_else(|| "expected http or https, without user name and password".to_owned())
    });
    let service = table.optional("service", reader::text);
    if !cfg!(feature = "otel") {
        table.report("this program was built without traces: build it with `--features otel`");
    }
    table.finish();
    Some(TracesConfig {
        endpoint: endpoint?,
        service: service.unwrap_or_else(|| env!("CARGO_PKG_NAME").to_owned()),
    })
}

fn read_cors(mut table: reader::Fields<'_, '_>) -> Vec<HeaderValue> {
    let origins = table.list("origins", origin);
    table.missing("origins", "an array, as [\"https://console.example.com\"]");
    table.finish();
    origins
}

/// Reads an origin as browsers send it: scheme, host, and the port unless it is that of the scheme. Never `*`, and never `null`.
fn origin(value: &reader::Value<'_>) -> Result<HeaderValue, String> {
    let text = reader::text(value)?;
    let expected = || {
        format!(
            "{text:?} is no origin: expected scheme, host and port alone, as \"https://console.example.com\""
        )
    };
    let url = Url::parse(&text).map_err(|_| expected())?;
    if url.origin().ascii_serialization() != text {
        return Err(expected());
    }
    text.parse().map_err(|_| expected())
}

fn read_limits(mut table: reader::Fields<'_, '_>) -> Limits {
    let default = Limits::default();
    let count = |value: &reader::Value<'_>| reader::integer(&(1..=1_000_000), value);
    let mut period = |name| {
        let read = table.optional(name, |value| {
            reader::parse_text::<Period>("a duration in quotes, as \"30 s\"", value)
        });
        read.map(|Period(duration)| duration)
    };
    let body_time = period("body-time").unwrap_or(default.body_time);
    let header_time = period("header-time").unwrap_or(default.header_time);
    let write_time = period("write-time").unwrap_or(default.write_time);
    let request_time = period("request-time").unwrap_or(default.request_time);
    let body = table.optional("body", |value| {
        let size: ByteSize = reader::parse_text("a size in quotes, as \"1 MiB\"", value)?;
        let bytes = usize::try_from(size.bytes())
            .ok()
            .filter(|bytes| (1024..=64 << 20).contains(bytes));
        bytes.ok_or_else(|| format!("{size} is out of range: expected 1 KiB to 64 MiB"))
    });
    let mut number = |name, default: usize| {
        let read = table.optional(name, count);
        read.and_then(|number| usize::try_from(number).ok())
            .unwrap_or(default)
    };
    let connections = number("connections", default.connections);
    let concurrency = number("concurrency", default.concurrency);
    let watches = number("watches", default.watches);
    let rate = table.optional("rate", count).unwrap_or(default.rate);
    table.finish();
    Limits {
        body: body.unwrap_or(default.body),
        body_time,
        header_time,
        write_time,
        request_time,
        connections,
        rate,
        concurrency,
        watches,
    }
}
