//! Reading the file.

use std::path::{Path, PathBuf};

use fleetwright_identity::ActorName;
use fleetwright_region::{
    catalog::ByteSize,
    file::{Problems, reader},
    mapping::Provider,
};

use super::{Config, Limits, RegionConfig, setting::Period};

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
        let tokens = fields.required("tokens", path);
        let keyring = fields.optional("keyring", path);
        let administrator = fields.required("administrator", |value| reader::text(value));
        let administrator = administrator.and_then(|name| {
            let parsed = ActorName::new(name);
            parsed
                .map_err(|error| fields.report_field("administrator", error.to_string()))
                .ok()
        });
        let limits = fields.table("limits").map(read_limits).unwrap_or_default();
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
            tokens: tokens?,
            keyring,
            administrator: administrator?,
            regions,
            limits,
        })
    });
    // A field that is missing was reported.
    read.map(|config| config.ok_or_else(|| Problems::single("the file is not complete")))?
}

fn read_region(mut table: reader::Fields<'_, '_>, folder: &Path) -> Option<RegionConfig> {
    let names = Provider::ALL.map(|provider| (provider.as_str(), provider));
    let provider = table.required("provider", |value| reader::one_of(&names, value));
    let mapping: Option<PathBuf> = table.required("mapping", |value| {
        reader::text(value).map(|path| folder.join(path))
    });
    if let Some(provider) = provider.filter(|provider| !is_built_in(*provider)) {
        let name = provider.as_str();
        let what = format!("this program was built without the provider {name}");
        table.report_field("provider", what);
    }
    table.finish();
    Some(RegionConfig {
        provider: provider?,
        mapping: mapping?,
    })
}

/// Whether the program was built with a provider.
fn is_built_in(provider: Provider) -> bool {
    match provider {
        Provider::Memory => cfg!(feature = "memory"),
        Provider::Ec2 | Provider::Gcp | Provider::Azure => false,
    }
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
