//! Reading the table `jwt`.

use std::{path::Path, time::Duration};

use fleetwright_identity::{Binding, Level, OrganizationId, ProjectId, RoleName, Roles, Scope};
use fleetwright_region::file::reader::{self, Fields, Value};
use reqwest::Url;

use super::setting::Period;
use crate::auth::jwt::{ALGORITHMS, ClaimMapping, ClaimPath, JwtConfig, RoleRule};

/// What comes before the actor of a token, unless the file says something else.
const PREFIX: &str = "jwt:";
/// The largest difference of clocks that can be set.
const MAX_SKEW: Duration = Duration::from_secs(300);

/// Reads the table. Every mistake is reported.
pub(super) fn read(mut table: Fields<'_, '_>, folder: &Path) -> Option<JwtConfig> {
    let issuer = table.required("issuer", reader::text);
    let audiences = table.required("audience", |value| one_or_more("an audience", value));
    let algorithms = table.optional("algorithms", |value| {
        let read = reader::array(value)?.iter();
        let read = read.map(|value| reader::one_of(&ALGORITHMS, value.get_ref()));
        read.collect::<Result<Vec<_>, _>>()
    });
    if algorithms.as_ref().is_some_and(Vec::is_empty) {
        table.report_field("algorithms", "it is empty: expected one, as [\"RS256\"]");
    }
    let algorithms = algorithms.unwrap_or_else(|| vec![ALGORITHMS[0].1, ALGORITHMS[6].1]);
    let file = table.optional("keys-file", |value| {
        reader::text(value).map(|path| folder.join(path))
    });
    let url = table.optional("keys-url", url);
    if file.is_none() && url.is_none() {
        table.missing("keys-url", "an address or a keys-file");
    }
    let mut period = |name, default| {
        let read = table.optional(name, |value| {
            reader::parse_text::<Period>("a duration in quotes, as \"30 s\"", value)
        });
        read.map_or(default, |Period(duration)| duration)
    };
    let refresh = period("refresh", Duration::from_secs(300));
    let retry = period("retry", Duration::from_secs(10));
    let clock_skew = period("clock-skew", Duration::from_secs(30));
    if clock_skew > MAX_SKEW {
        table.report_field("clock-skew", "it is out of range: expected 1 ms to 5 min");
    }
    let actor = table.optional("actor-claim", claim_path);
    let actor = actor.unwrap_or_else(|| ClaimPath(vec!["sub".to_owned()]));
    let prefix = table.optional("actor-prefix", |value| match value.as_str() {
        Some("") => Ok(String::new()),
        _ => reader::text(value),
    });
    let rules = table.tables("role").into_iter().filter_map(read_rule);
    let rules = rules.collect();
    table.finish();
    Some(JwtConfig {
        issuer: issuer?,
        audiences: audiences?,
        algorithms,
        file,
        url,
        refresh,
        retry,
        clock_skew,
        mapping: ClaimMapping {
            actor,
            prefix: prefix.unwrap_or_else(|| PREFIX.to_owned()),
            rules,
        },
    })
}

fn read_rule(mut table: Fields<'_, '_>) -> Option<RoleRule> {
    let claim = table.required("claim", claim_path);
    let value = table.required("value", reader::text);
    let roles = Roles::built_in();
    let role = table.required("role", |value| {
        let names: Vec<_> = roles
            .iter()
            .map(|role| (role.name().as_str(), role))
            .collect();
        reader::one_of(&names, value).map(|role| (role.name().clone(), role.level()))
    });
    let organization: Option<OrganizationId> = table.optional("organization", |value| {
        reader::parse_text("the id of an organization", value)
    });
    let project: Option<ProjectId> = table.optional("project", |value| {
        reader::parse_text("the id of a project", value)
    });
    let binding = role.and_then(|(role, level)| {
        let scope = match (level, organization, project) {
            (Level::Global, None, None) => Some(Scope::Global),
            (Level::Organization, Some(organization), None) => {
                Some(Scope::Organization(organization))
            }
            (Level::Project, Some(organization), Some(project)) => {
                Some(Scope::Project(organization, project))
            }
            (Level::Global | Level::Organization | Level::Project, _, _) => None,
        };
        if scope.is_none() {
            table.report_field("role", wrong_scope(&role, level));
        }
        Some(Binding::new(role, scope?))
    });
    table.finish();
    Some(RoleRule {
        claim: claim?,
        value: value?,
        binding: binding?,
    })
}

fn wrong_scope(role: &RoleName, level: Level) -> String {
    match level {
        Level::Global => {
            format!("{role} is a role on the whole platform: leave out organization and project")
        }
        Level::Organization => {
            format!("{role} is a role in an organization: expected organization, without project")
        }
        Level::Project => {
            format!("{role} is a role in a project: expected organization and project")
        }
    }
}

/// A claim: its name, or an array of the names of the objects around it and its name.
fn claim_path(value: &Value<'_>) -> Result<ClaimPath, String> {
    one_or_more("a claim", value).map(ClaimPath)
}

/// A text, or an array of texts with at least one.
fn one_or_more(what: &str, value: &Value<'_>) -> Result<Vec<String>, String> {
    let Some(values) = value.as_array() else {
        let expected = format!("{what} in quotes, or an array");
        return match value.as_str() {
            Some(_) => reader::text(value).map(|text| vec![text]),
            None => Err(reader::wrong_type(value, &expected)),
        };
    };
    if values.is_empty() {
        return Err(format!("it is empty: expected {what}"));
    }
    let texts = values.iter().map(|value| reader::text(value.get_ref()));
    texts.collect()
}

/// An address that is trusted. Over plain HTTP anybody between could respond, so that must stay on this machine.
pub(crate) fn url(value: &Value<'_>) -> Result<Url, String> {
    let url: Url = reader::parse_text(
        "an address in quotes, as \"https://login.example.com/keys\"",
        value,
    )?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err("it has a user name or a password: leave them out".to_owned());
    }
    match (url.scheme(), url.host_str()) {
        ("https", Some(_)) => Ok(url),
        ("http", Some("localhost" | "127.0.0.1" | "[::1]")) => Ok(url),
        _ => Err("expected https, or http on 127.0.0.1, [::1] or localhost".to_owned()),
    }
}
