//! Between the types of the wire and those of the façade. Pure: no request is sent, and nothing is decided.

pub(crate) mod catalog;
pub(crate) mod instance;
pub(crate) mod network;
pub(crate) mod operator;
pub(crate) mod tenancy;

use std::{fmt::Display, str::FromStr};

use fleetwright_compute::prelude::Tags;
use fleetwright_identity::{Actor, ActorName};
use serde::Serialize;

use crate::failure::Failure;

/// Parses a field, a parameter or a part of a path.
pub(crate) fn parse<T: FromStr<Err: Display>>(field: &str, text: &str) -> Result<T, Failure> {
    text.parse().map_err(|error| Failure::invalid(field, error))
}

/// The name of a variant, in camelCase.
pub(crate) fn word(value: &impl Serialize) -> String {
    let name = match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => name,
        Ok(_) | Err(_) => return "unknown".to_owned(),
    };
    let mut words = name.split(['-', '_']);
    let mut joined = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        joined.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        joined.push_str(letters.as_str());
    }
    joined
}

/// An actor as `user:ada`.
pub(crate) fn actor(actor: &Actor) -> String {
    match actor {
        Actor::User(name) => format!("user:{name}"),
        Actor::Service(name) => format!("service:{name}"),
    }
}

pub(crate) fn parse_actor(field: &str, text: &str) -> Result<Actor, Failure> {
    let expected = "expected `user:` or `service:` and a name";
    let (kind, name) = text
        .split_once(':')
        .ok_or_else(|| Failure::invalid(field, expected))?;
    let name = ActorName::new(name).map_err(|error| Failure::invalid(field, error))?;
    match kind {
        "user" => Ok(Actor::User(name)),
        "service" => Ok(Actor::Service(name)),
        _ => Err(Failure::invalid(field, expected)),
    }
}

/// Tags of the wire are a list; a name that occurs twice is refused.
pub(crate) fn parse_tags(field: &str, list: &[fleetwright_api::Tag]) -> Result<Tags, Failure> {
    let mut tags = Tags::new();
    for fleetwright_api::Tag { name, value } in list {
        let before = tags.insert(name.clone(), value.clone());
        if before
            .map_err(|error| Failure::invalid(field, error))?
            .is_some()
        {
            return Err(Failure::impossible(
                field,
                format!("the name {name:?} occurs twice: use each once"),
            ));
        }
    }
    Ok(tags)
}

pub(crate) fn tags<'t>(
    tags: impl IntoIterator<Item = (&'t str, &'t str)>,
) -> Vec<fleetwright_api::Tag> {
    let tags = tags.into_iter().map(|(name, value)| fleetwright_api::Tag {
        name: name.to_owned(),
        value: value.to_owned(),
    });
    tags.collect()
}
