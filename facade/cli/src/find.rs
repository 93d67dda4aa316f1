//! Records by id or by name. A name is looked up in what the caller may list; ids need no look.

use fleetwright_api::{Network, Scope};
use fleetwright_client::{InstanceFilter, RecordFilter};
use futures_util::TryStreamExt as _;

use crate::{
    context::Context,
    failure::{Code, Failure},
};

/// A record that a name can mean.
struct Candidate<T> {
    id: String,
    name: String,
    value: T,
}

impl<T> Candidate<T> {
    fn new(id: &str, name: &str, value: T) -> Self {
        Self {
            id: id.to_owned(),
            name: name.to_owned(),
            value,
        }
    }
}

/// Whether a text is an id: a UUID.
fn is_id(text: &str) -> bool {
    let lengths = text.split('-').map(str::len);
    lengths.eq([8, 4, 4, 4, 12])
        && text
            .bytes()
            .all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

/// The only record with this name.
fn by_name<T>(kind: &str, name: &str, candidates: Vec<Candidate<T>>) -> Result<T, Failure> {
    let mut found: Vec<_> = candidates
        .into_iter()
        .filter(|candidate| candidate.name == name)
        .collect();
    match (found.pop(), found.is_empty()) {
        (Some(candidate), true) => Ok(candidate.value),
        (Some(last), false) => {
            let ids: Vec<_> = found
                .iter()
                .chain([&last])
                .map(|candidate| candidate.id.as_str())
                .collect();
            let message = format!(
                "several {} are called {name}: {}",
                plural(kind),
                ids.join(", ")
            );
            Err(Failure::usage(message).advice("use the id"))
        }
        (None, _) => {
            let advice = format!(
                "`fleetwright {} list` shows those that you may read",
                plural(kind)
            );
            Err(Failure::new(Code::NotFound, format!("there is no {kind} {name}")).advice(advice))
        }
    }
}

/// The only record there is.
fn only<T>(kind: &str, mut candidates: Vec<Candidate<T>>) -> Result<T, Failure> {
    match (candidates.pop(), candidates.is_empty()) {
        (Some(candidate), true) => Ok(candidate.value),
        (Some(last), false) => {
            let all = candidates.iter().chain([&last]);
            let mut names: Vec<_> = all.map(|candidate| candidate.name.as_str()).collect();
            names.sort_unstable();
            names.truncate(10);
            Err(Failure::usage(format!(
                "there are several {}: {}",
                plural(kind),
                names.join(", ")
            ))
            .advice(format!("name one with --{kind}")))
        }
        (None, _) => Err(
            Failure::new(Code::NotFound, format!("you may read no {kind}"))
                .advice("create one, or ask an administrator for a role"),
        ),
    }
}

fn plural(kind: &str) -> String {
    match kind.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => format!("{kind}s"),
    }
}

/// The id of an instance.
pub(crate) async fn instance(context: &Context, wanted: &str) -> Result<String, Failure> {
    if is_id(wanted) {
        return Ok(wanted.to_owned());
    }
    let mut filter = InstanceFilter::default();
    filter.page_size = Some(500);
    if context.defaults.project.is_some() {
        let (organization, project) = project(context, None, None).await?;
        filter.organizations.push(organization);
        filter.projects.push(project);
    }
    let all: Vec<_> = context.client.instances(&filter).try_collect().await?;
    let candidates = all.into_iter().map(|found| {
        let metadata = found.metadata;
        Candidate::new(&metadata.id, &metadata.name, metadata.id.clone())
    });
    by_name("instance", wanted, candidates.collect())
}

/// A network, or the only one.
pub(crate) async fn network(context: &Context, wanted: Option<&str>) -> Result<Network, Failure> {
    if let Some(id) = wanted.filter(|wanted| is_id(wanted)) {
        return Ok(context.client.read_network(id).await?);
    }
    let mut filter = RecordFilter::default();
    if context.defaults.project.is_some() {
        let (organization, project) = project(context, None, None).await?;
        (filter.organization, filter.project) = (Some(organization), Some(project));
    }
    let all: Vec<Network> = context.client.networks(&filter).try_collect().await?;
    let candidates = all
        .into_iter()
        .map(|network| Candidate::new(&network.id.clone(), &network.name.clone(), network));
    match wanted {
        Some(name) => by_name("network", name, candidates.collect()),
        None => only("network", candidates.collect()),
    }
}

/// The id of a security group, of a network if it is known.
pub(crate) async fn group(
    context: &Context,
    network: Option<&str>,
    wanted: &str,
) -> Result<String, Failure> {
    if is_id(wanted) {
        return Ok(wanted.to_owned());
    }
    let mut filter = RecordFilter::default();
    filter.network = network.map(str::to_owned);
    let all: Vec<_> = context
        .client
        .security_groups(&filter)
        .try_collect()
        .await?;
    let candidates = all
        .into_iter()
        .map(|group| Candidate::new(&group.id, &group.name, group.id.clone()));
    by_name("group", wanted, candidates.collect())
}

/// The id of a certificate authority.
pub(crate) async fn authority(context: &Context, wanted: &str) -> Result<String, Failure> {
    if is_id(wanted) {
        return Ok(wanted.to_owned());
    }
    let all: Vec<_> = context
        .client
        .ssh_authorities(&RecordFilter::default())
        .try_collect()
        .await?;
    let candidates = all
        .into_iter()
        .map(|authority| Candidate::new(&authority.id, &authority.name, authority.id.clone()));
    by_name("authority", wanted, candidates.collect())
}

/// The id of an organization: the one that is named, the profile's, or the only one.
pub(crate) async fn organization(
    context: &Context,
    wanted: Option<&str>,
) -> Result<String, Failure> {
    let wanted = wanted.or(context.defaults.organization.as_deref());
    if let Some(id) = wanted.filter(|wanted| is_id(wanted)) {
        return Ok(id.to_owned());
    }
    let all: Vec<_> = context.client.organizations().try_collect().await?;
    let candidates = all.into_iter().map(|organization| {
        Candidate::new(
            &organization.id,
            &organization.name,
            organization.id.clone(),
        )
    });
    match wanted {
        Some(name) => by_name("organization", name, candidates.collect()),
        None => only("organization", candidates.collect()),
    }
}

/// The ids of an organization and of a project of it.
pub(crate) async fn project(
    context: &Context,
    in_organization: Option<&str>,
    wanted: Option<&str>,
) -> Result<(String, String), Failure> {
    let organization = organization(context, in_organization).await?;
    let wanted = wanted.or(context.defaults.project.as_deref());
    if let Some(id) = wanted.filter(|wanted| is_id(wanted)) {
        return Ok((organization, id.to_owned()));
    }
    let all: Vec<_> = context.client.projects(&organization).try_collect().await?;
    let candidates = all
        .into_iter()
        .map(|project| Candidate::new(&project.id, &project.name, project.id.clone()));
    let project = match wanted {
        Some(name) => by_name("project", name, candidates.collect())?,
        None => only("project", candidates.collect())?,
    };
    Ok((organization, project))
}

/// The scope that arguments name. Without any it is the whole platform.
pub(crate) async fn scope(
    context: &Context,
    in_organization: Option<&str>,
    in_project: Option<&str>,
) -> Result<Scope, Failure> {
    match (in_organization, in_project) {
        (None, None) => Ok(Scope::default()),
        (Some(_), None) => Ok(Scope {
            organization_id: Some(organization(context, in_organization).await?),
            project_id: None,
        }),
        (_, Some(_)) => {
            let (organization, project) = project(context, in_organization, in_project).await?;
            Ok(Scope {
                organization_id: Some(organization),
                project_id: Some(project),
            })
        }
    }
}

/// Who: a name is that of a user. It may have a colon, as `jwt:ada` has.
pub(crate) fn actor(text: &str) -> String {
    if text.starts_with("user:") || text.starts_with("service:") {
        return text.to_owned();
    }
    format!("user:{text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_told_from_names() {
        assert!(is_id("0198c0de-0000-7000-8000-00000000000A"));
        for name in [
            "",
            "web-1",
            "0198c0de-0000-7000-8000-00000000000",
            "0198c0de-0000-7000-8000-00000000000g",
            "01-98c0de-0000-7000-8000-00000000",
        ] {
            assert!(!is_id(name), "{name}");
        }
    }

    #[test]
    fn a_name_is_that_of_a_user_unless_it_says_otherwise() {
        for (text, expected) in [
            ("ada", "user:ada"),
            ("user:ada", "user:ada"),
            ("service:controller", "service:controller"),
            ("jwt:ada", "user:jwt:ada"),
            ("user:jwt:ada", "user:jwt:ada"),
            ("users:x", "user:users:x"),
        ] {
            assert_eq!(actor(text), expected);
        }
    }

    #[test]
    fn a_name_must_mean_one_record() {
        let candidates = || {
            ["a", "b", "b"]
                .into_iter()
                .enumerate()
                .map(|(number, name)| Candidate::new(&format!("id-{number}"), name, number))
                .collect()
        };
        let failed =
            |result: Result<usize, Failure>| result.map_err(|failure| failure.message().to_owned());
        assert_eq!(failed(by_name("instance", "a", candidates())), Ok(0));
        assert_eq!(
            failed(by_name("instance", "b", candidates())),
            Err("several instances are called b: id-1, id-2".to_owned())
        );
        assert_eq!(
            failed(by_name("instance", "c", candidates())),
            Err("there is no instance c".to_owned())
        );
        assert_eq!(
            failed(only("network", candidates())),
            Err("there are several networks: a, b, b".to_owned())
        );
    }
}
