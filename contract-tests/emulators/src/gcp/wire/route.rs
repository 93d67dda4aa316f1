//! From a verb and a path to a method and what it names.
//!
//! Owns the table of paths and of the query parameters that each method has.

use std::fmt;

use form_urlencoded::parse;
use hyper::Method as Verb;

use super::method::Method;
use crate::gcp::error::Refusal;

/// The parameters of every list.
const LIST: &[&str] = &[
    "filter",
    "maxResults",
    "orderBy",
    "pageToken",
    "returnPartialSuccess",
];

/// The parameters of every list over all zones or regions.
const AGGREGATED: &[&str] = &[
    "filter",
    "includeAllScopes",
    "maxResults",
    "orderBy",
    "pageToken",
    "returnPartialSuccess",
    "serviceProjectNumber",
];

const REQUEST_ID: &[&str] = &["requestId"];

/// A method's verb, its path below the project, and its query parameters.
type Route = (Method, Verb, &'static str, &'static [&'static str]);

const ROUTES: [Route; 51] = [
    (
        Method::AddressesAggregatedList,
        Verb::GET,
        "aggregated/addresses",
        AGGREGATED,
    ),
    (
        Method::AddressesList,
        Verb::GET,
        "regions/{region}/addresses",
        LIST,
    ),
    (
        Method::DiskTypesGet,
        Verb::GET,
        "zones/{zone}/diskTypes/{diskType}",
        &[],
    ),
    (
        Method::DiskTypesList,
        Verb::GET,
        "zones/{zone}/diskTypes",
        LIST,
    ),
    (
        Method::DisksAggregatedList,
        Verb::GET,
        "aggregated/disks",
        AGGREGATED,
    ),
    (
        Method::DisksDelete,
        Verb::DELETE,
        "zones/{zone}/disks/{disk}",
        REQUEST_ID,
    ),
    (
        Method::DisksGet,
        Verb::GET,
        "zones/{zone}/disks/{disk}",
        &[],
    ),
    (Method::DisksList, Verb::GET, "zones/{zone}/disks", LIST),
    (
        Method::GlobalOperationsAggregatedList,
        Verb::GET,
        "aggregated/operations",
        AGGREGATED,
    ),
    (
        Method::GlobalOperationsGet,
        Verb::GET,
        "global/operations/{operation}",
        &[],
    ),
    (
        Method::GlobalOperationsList,
        Verb::GET,
        "global/operations",
        LIST,
    ),
    (
        Method::GlobalOperationsWait,
        Verb::POST,
        "global/operations/{operation}/wait",
        &[],
    ),
    (
        Method::ImagesDelete,
        Verb::DELETE,
        "global/images/{image}",
        REQUEST_ID,
    ),
    (Method::ImagesGet, Verb::GET, "global/images/{image}", &[]),
    (
        Method::ImagesGetFromFamily,
        Verb::GET,
        "global/images/family/{family}",
        &[],
    ),
    (
        Method::ImagesInsert,
        Verb::POST,
        "global/images",
        &["forceCreate", "requestId"],
    ),
    (Method::ImagesList, Verb::GET, "global/images", LIST),
    (
        Method::InstancesAggregatedList,
        Verb::GET,
        "aggregated/instances",
        AGGREGATED,
    ),
    (
        Method::InstancesBulkInsert,
        Verb::POST,
        "zones/{zone}/instances/bulkInsert",
        REQUEST_ID,
    ),
    (
        Method::InstancesDelete,
        Verb::DELETE,
        "zones/{zone}/instances/{instance}",
        &["noGracefulShutdown", "requestId"],
    ),
    (
        Method::InstancesGet,
        Verb::GET,
        "zones/{zone}/instances/{instance}",
        &[],
    ),
    (
        Method::InstancesGetSerialPortOutput,
        Verb::GET,
        "zones/{zone}/instances/{instance}/serialPort",
        &["port", "start"],
    ),
    (
        Method::InstancesInsert,
        Verb::POST,
        "zones/{zone}/instances",
        &["requestId", "sourceInstanceTemplate", "sourceMachineImage"],
    ),
    (
        Method::InstancesList,
        Verb::GET,
        "zones/{zone}/instances",
        LIST,
    ),
    (
        Method::InstancesReset,
        Verb::POST,
        "zones/{zone}/instances/{instance}/reset",
        REQUEST_ID,
    ),
    (
        Method::InstancesResume,
        Verb::POST,
        "zones/{zone}/instances/{instance}/resume",
        REQUEST_ID,
    ),
    (
        Method::InstancesSetLabels,
        Verb::POST,
        "zones/{zone}/instances/{instance}/setLabels",
        REQUEST_ID,
    ),
    (
        Method::InstancesSetMachineType,
        Verb::POST,
        "zones/{zone}/instances/{instance}/setMachineType",
        REQUEST_ID,
    ),
    (
        Method::InstancesSetMetadata,
        Verb::POST,
        "zones/{zone}/instances/{instance}/setMetadata",
        REQUEST_ID,
    ),
    (
        Method::InstancesStart,
        Verb::POST,
        "zones/{zone}/instances/{instance}/start",
        REQUEST_ID,
    ),
    (
        Method::InstancesStop,
        Verb::POST,
        "zones/{zone}/instances/{instance}/stop",
        &["discardLocalSsd", "noGracefulShutdown", "requestId"],
    ),
    (
        Method::InstancesSuspend,
        Verb::POST,
        "zones/{zone}/instances/{instance}/suspend",
        &["discardLocalSsd", "requestId"],
    ),
    (
        Method::MachineTypesAggregatedList,
        Verb::GET,
        "aggregated/machineTypes",
        AGGREGATED,
    ),
    (
        Method::MachineTypesGet,
        Verb::GET,
        "zones/{zone}/machineTypes/{machineType}",
        &[],
    ),
    (
        Method::MachineTypesList,
        Verb::GET,
        "zones/{zone}/machineTypes",
        LIST,
    ),
    (
        Method::NetworksGet,
        Verb::GET,
        "global/networks/{network}",
        &[],
    ),
    (Method::NetworksList, Verb::GET, "global/networks", LIST),
    (Method::ProjectsGet, Verb::GET, "", &[]),
    (
        Method::RegionOperationsGet,
        Verb::GET,
        "regions/{region}/operations/{operation}",
        &[],
    ),
    (
        Method::RegionOperationsList,
        Verb::GET,
        "regions/{region}/operations",
        LIST,
    ),
    (
        Method::RegionOperationsWait,
        Verb::POST,
        "regions/{region}/operations/{operation}/wait",
        &[],
    ),
    (Method::RegionsGet, Verb::GET, "regions/{region}", &[]),
    (Method::RegionsList, Verb::GET, "regions", LIST),
    (
        Method::SubnetworksAggregatedList,
        Verb::GET,
        "aggregated/subnetworks",
        AGGREGATED,
    ),
    (
        Method::SubnetworksGet,
        Verb::GET,
        "regions/{region}/subnetworks/{subnetwork}",
        &[],
    ),
    (
        Method::SubnetworksList,
        Verb::GET,
        "regions/{region}/subnetworks",
        LIST,
    ),
    (
        Method::ZoneOperationsGet,
        Verb::GET,
        "zones/{zone}/operations/{operation}",
        &[],
    ),
    (
        Method::ZoneOperationsList,
        Verb::GET,
        "zones/{zone}/operations",
        LIST,
    ),
    (
        Method::ZoneOperationsWait,
        Verb::POST,
        "zones/{zone}/operations/{operation}/wait",
        &[],
    ),
    (Method::ZonesGet, Verb::GET, "zones/{zone}", &[]),
    (Method::ZonesList, Verb::GET, "zones", LIST),
];

/// What a path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) project: String,
    pub(crate) scope: Scope,
    /// The last name in the path, if it is not of the scope.
    pub(crate) name: String,
}

/// Where a resource lives.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Scope {
    /// Everywhere.
    Global,
    /// In a region.
    Region(String),
    /// In a zone.
    Zone(String),
}

impl fmt::Display for Scope {
    /// As in a path.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Global => f.write_str("global"),
            Self::Region(region) => write!(f, "regions/{region}"),
            Self::Zone(zone) => write!(f, "zones/{zone}"),
        }
    }
}

impl Target {
    /// The path of a resource of a collection, as errors name it.
    pub(crate) fn path(&self, collection: &str) -> String {
        let Self {
            project,
            scope,
            name,
        } = self;
        format!("projects/{project}/{scope}/{collection}/{name}")
    }
}

/// The query parameters that a method has.
pub(crate) fn parameters(method: Method) -> &'static [&'static str] {
    let route = ROUTES.iter().find(|(of, ..)| *of == method);
    route.map_or(&[], |(.., parameters)| parameters)
}

/// Finds the method that a request is for.
pub(crate) fn find(verb: &Verb, path: &str) -> Result<(Method, Target), Refusal> {
    let path = path.strip_prefix("/compute/v1").unwrap_or(path);
    let segments: Vec<String> = path.split('/').skip(1).map(decode).collect();
    let ["projects", project, rest @ ..] =
        &*segments.iter().map(String::as_str).collect::<Vec<_>>()
    else {
        return Err(Refusal::no_such_path());
    };
    let mut found = ROUTES.iter().filter(|(_, of, ..)| of == verb);
    let (method, (scope, name)) = found
        .find_map(|(method, _, template, _)| Some((*method, fit(template, rest)?)))
        .ok_or_else(Refusal::no_such_path)?;
    let target = Target {
        project: (*project).to_owned(),
        scope,
        name,
    };
    check(&target)?;
    Ok((method, target))
}

/// What a path names, if it is of this form.
fn fit(template: &str, path: &[&str]) -> Option<(Scope, String)> {
    let template: Vec<&str> = template
        .split('/')
        .filter(|part| !part.is_empty())
        .collect();
    if template.len() != path.len() {
        return None;
    }
    let (mut scope, mut name) = (Scope::Global, String::new());
    for (wanted, given) in template.iter().zip(path) {
        match *wanted {
            _ if given.is_empty() => return None,
            "{zone}" => scope = Scope::Zone((*given).to_owned()),
            "{region}" => scope = Scope::Region((*given).to_owned()),
            wanted if wanted.starts_with('{') => (*given).clone_into(&mut name),
            wanted if wanted == *given => {}
            _ => return None,
        }
    }
    Some((scope, name))
}

/// Refuses names that are none, such as a URL in place of a zone.
fn check(target: &Target) -> Result<(), Refusal> {
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

/// Whether a text is a name as RFC 1035 has it: small letters, digits and dashes, 63 at most.
pub(crate) fn is_name(text: &str) -> bool {
    let ok = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    text.len() <= 63
        && text.bytes().all(ok)
        && text.starts_with(|first: char| first.is_ascii_lowercase())
        && !text.ends_with('-')
}

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
    fn every_method_has_its_path() {
        for method in Method::ALL {
            let routes = ROUTES.iter().filter(|(of, ..)| *of == method);
            assert_eq!(routes.count(), 1, "{}", method.name());
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
    fn what_is_no_path_is_refused() {
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
