//! Finds the method and the target of a verb and a path.
//!
//! Owns the parsing of paths; `path` has the table of them. A path may begin with `/compute/v1` or
//! without it.

use std::fmt;

use form_urlencoded::parse;
use hyper::Method as Verb;

use super::{method::Method, path::template};
use crate::gcp::error::Refusal;

/// What the path of a request names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// The project.
    pub(crate) project: String,
    /// The zone, the region or neither.
    pub(crate) scope: Scope,
    /// The last name in the path, if it is not that of the scope; else empty.
    pub(crate) name: String,
}

/// Where a resource lives.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Scope {
    /// In no zone and no region.
    Global,
    /// In a region.
    Region(String),
    /// In a zone.
    Zone(String),
}

impl fmt::Display for Scope {
    /// Writes the scope as in a path, for example `zones/us-central1-a`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Global => f.write_str("global"),
            Self::Region(region) => write!(f, "regions/{region}"),
            Self::Zone(zone) => write!(f, "zones/{zone}"),
        }
    }
}

impl Target {
    /// Returns the path of a resource of a collection, as errors name it.
    pub(crate) fn path(&self, collection: &str) -> String {
        let Self {
            project,
            scope,
            name,
        } = self;
        format!("projects/{project}/{scope}/{collection}/{name}")
    }
}

/// Finds the method and the target of a request.
///
/// # Errors
///
/// 404 `notFound` for an unknown path or verb, 400 `invalid` for a zone or region that is not a
/// name.
pub(crate) fn find(verb: &Verb, path: &str) -> Result<(Method, Target), Refusal> {
    let path = path.strip_prefix("/compute/v1").unwrap_or(path);
    let segments: Vec<String> = path.split('/').skip(1).map(decode).collect();
    let ["projects", project, rest @ ..] =
        &*segments.iter().map(String::as_str).collect::<Vec<_>>()
    else {
        return Err(Refusal::no_such_path());
    };
    let (method, (scope, name)) = Method::ALL
        .into_iter()
        .find_map(|method| {
            let template = template(method).strip_prefix(verb.as_str())?;
            Some((method, match_template(template.trim_start(), rest)?))
        })
        .ok_or_else(Refusal::no_such_path)?;
    let target = Target {
        project: (*project).to_owned(),
        scope,
        name,
    };
    check_scope_name(&target)?;
    Ok((method, target))
}

/// Returns the scope and the name in a path, or `None` if the path does not match the template.
fn match_template(template: &str, path: &[&str]) -> Option<(Scope, String)> {
    let template: Vec<&str> = template
        .split('/')
        .filter(|part| !part.is_empty())
        .collect();
    if template.len() != path.len() {
        return None;
    }
    let (mut scope, mut name) = (Scope::Global, String::new());
    for (expected, given) in template.iter().zip(path) {
        match *expected {
            _ if given.is_empty() => return None,
            "{zone}" => scope = Scope::Zone((*given).to_owned()),
            "{region}" => scope = Scope::Region((*given).to_owned()),
            expected if expected.starts_with('{') => (*given).clone_into(&mut name),
            expected if expected == *given => {}
            _ => return None,
        }
    }
    Some((scope, name))
}

/// Refuses a zone or region that is not a name, for example a URL.
fn check_scope_name(target: &Target) -> Result<(), Refusal> {
    let (field, name) = match &target.scope {
        Scope::Global => return Ok(()),
        Scope::Zone(zone) => ("zone", zone),
        Scope::Region(region) => ("region", region),
    };
    if is_name(name) {
        return Ok(());
    }
    Err(Refusal::mismatch(field, name))
}

/// Returns whether a text is a resource name as in RFC 1035: 1 to 63 lower-case letters, digits
/// and dashes, beginning with a letter and not ending in a dash.
pub(crate) fn is_name(text: &str) -> bool {
    let ok = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    text.len() <= 63
        && text.bytes().all(ok)
        && text.starts_with(|first: char| first.is_ascii_lowercase())
        && !text.ends_with('-')
}

/// Decodes the percent escapes of a path segment.
fn decode(segment: &str) -> String {
    // A plus in a path is a plus.
    let escaped = segment.replace('+', "%2B").replace(['&', '='], "%00");
    parse(escaped.as_bytes())
        .next()
        .map(|(text, _)| text.into_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_has_its_method() {
        for method in Method::ALL {
            let mut parts = template(method).split([' ', '/']);
            let verb = Verb::from_bytes(parts.next().unwrap().as_bytes()).unwrap();
            let mut path = "/compute/v1/projects/p".to_owned();
            for part in parts {
                path += "/";
                path += if part.starts_with('{') { "name" } else { part };
            }
            let found = find(&verb, &path).map(|(found, _)| found);
            assert_eq!(found, Ok(method), "{path}");
        }
    }

    #[test]
    fn paths_lead_to_methods() {
        let path = "/compute/v1/projects/p/zones/us-central1-a/instances/vm/stop";
        let (method, target) = find(&Verb::POST, path).unwrap();
        assert_eq!(method, Method::InstancesStop);
        assert_eq!(
            target.path("instances"),
            "projects/p/zones/us-central1-a/instances/vm"
        );
        let short = find(&Verb::GET, "/projects/p").unwrap();
        assert_eq!(short.0, Method::ProjectsGet);
        let family = "/compute/v1/projects/debian-cloud/global/images/family/debian-12";
        assert_eq!(
            find(&Verb::GET, family).unwrap().0,
            Method::ImagesGetFromFamily
        );
        let bulk = "/compute/v1/projects/p/zones/z-a/instances/bulkInsert";
        assert_eq!(
            find(&Verb::POST, bulk).unwrap().0,
            Method::InstancesBulkInsert
        );
    }

    #[test]
    fn unknown_path_is_refused() {
        for path in [
            "",
            "/",
            "/compute/v1/projects",
            "/compute/v1/projects/p/zones/a/instances/",
            "/compute/v1/projects/p/zones//instances",
            "/compute/v1/projects/p/zones/a/machines",
            "/compute/v2/projects/p",
        ] {
            assert_eq!(find(&Verb::GET, path).unwrap_err().status, 404, "{path}");
        }
        let zone = "/compute/v1/projects/p/zones/https%3A%2F%2Fx%2Fzones%2Fa/instances";
        let refusal = find(&Verb::GET, zone).unwrap_err();
        assert_eq!((refusal.status, &*refusal.reason), (400, "invalid"));
        assert_eq!(
            find(&Verb::PUT, "/compute/v1/projects/p")
                .unwrap_err()
                .status,
            404
        );
    }

    #[test]
    fn names_are_of_rfc_1035() {
        for (text, good) in [
            ("a", true),
            ("vm-1", true),
            ("", false),
            ("1vm", false),
            ("vm-", false),
            ("Vm", false),
            ("v_m", false),
        ] {
            assert_eq!(is_name(text), good, "{text}");
        }
        assert!(is_name(&"a".repeat(63)));
        assert!(!is_name(&"a".repeat(64)));
    }
}
