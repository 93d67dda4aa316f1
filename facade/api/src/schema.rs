//! Schemas that need more than an attribute: addresses and ranges of them.

use utoipa::openapi::{
    ArrayBuilder, KnownFormat, ObjectBuilder, Schema, SchemaFormat, Type, schema::AnyOfBuilder,
};

/// An address of IPv4. A number has no leading zero.
const V4: &str = "(?:(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])[.]){3}(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])";
/// An address of IPv6, with or without one `::`.
const V6: &str = "(?:(?:H:){7}H|(?:H:){1,7}:|(?:H:){1,6}:H|(?:H:){1,5}(?::H){1,2}|(?:H:){1,4}(?::H){1,3}|(?:H:){1,3}(?::H){1,4}|(?:H:){1,2}(?::H){1,5}|H:(?::H){1,6}|:(?::H){1,7}|::)";
/// A group of an address of IPv6.
const GROUP: &str = "[0-9a-fA-F]{1,4}";
/// The largest number that every reader of JSON keeps exactly.
const LARGEST_NUMBER: i64 = (1 << 53) - 1;
/// The most name servers of a network.
const MAX_NAME_SERVERS: usize = 5;

/// The range of a network.
pub(crate) fn network_prefix() -> Schema {
    let description = "The addresses, as an IPv4 prefix of 8 to 28 bits: `10.0.0.0/16`.";
    described(text(&format!("^{V4}/(?:[89]|1[0-9]|2[0-8])$")), description)
}

/// A limit of a quota.
pub(crate) fn limit() -> Schema {
    let limit = ObjectBuilder::new()
        .schema_type(Type::Integer)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
        .minimum(Some(0_i64))
        .maximum(Some(LARGEST_NUMBER));
    described(limit, "How much may be used.")
}

/// A range of IPv4 or IPv6.
pub(crate) fn prefix() -> Schema {
    described(
        any_prefix(),
        "The addresses at the other end, as a prefix. Default: all.",
    )
}

/// A list of ranges.
pub(crate) fn prefixes() -> Schema {
    let description =
        "Further source addresses, as CIDR prefixes. No region supports any at present.";
    let list = ArrayBuilder::new().items(any_prefix());
    Schema::Array(list.description(Some(description)).build())
}

/// The addresses of name servers.
pub(crate) fn name_servers() -> Schema {
    let address = |format| {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(format)))
    };
    let either = AnyOfBuilder::new()
        .item(address(KnownFormat::Ipv4))
        .item(address(KnownFormat::Ipv6));
    let list = ArrayBuilder::new()
        .items(either)
        .max_items(Some(MAX_NAME_SERVERS));
    let description = "The addresses of name servers: at most 5, each once.";
    Schema::Array(list.description(Some(description)).build())
}

fn any_prefix() -> ObjectBuilder {
    let groups = V6.replace('H', GROUP);
    text(&format!(
        "^(?:{V4}/(?:3[0-2]|[12]?[0-9])|{groups}/(?:12[0-8]|1[01][0-9]|[1-9]?[0-9]))$"
    ))
}

fn text(pattern: &str) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .pattern(Some(pattern))
}

fn described(object: ObjectBuilder, description: &str) -> Schema {
    Schema::Object(object.description(Some(description)).build())
}
