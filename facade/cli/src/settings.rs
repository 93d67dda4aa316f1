//! Where the service is and who calls: arguments before the environment before the config file. A profile that an argument names is an
//! argument too. A token is never one.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

use fleetwright_client::{Client, Token};
use serde::Deserialize;

use crate::{arguments::Global, failure::Failure};

const URL: &str = "FLEETWRIGHT_URL";
const TOKEN: &str = "FLEETWRIGHT_TOKEN";
const TOKEN_FILE: &str = "FLEETWRIGHT_TOKEN_FILE";
const PROFILE: &str = "FLEETWRIGHT_PROFILE";

/// The config file.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct File {
    default_profile: Option<String>,
    #[serde(default)]
    profile: std::collections::BTreeMap<String, Profile>,
}

/// One service and one caller.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Profile {
    url: Option<String>,
    token: Option<String>,
    token_file: Option<PathBuf>,
    ca_file: Option<PathBuf>,
    organization: Option<String>,
    project: Option<String>,
}

impl std::fmt::Debug for Profile {
    /// Without the token.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Profile")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

/// What commands take if their arguments do not say it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Defaults {
    pub(crate) organization: Option<String>,
    pub(crate) project: Option<String>,
}

/// Builds the client that the settings describe.
pub(crate) fn connect(global: &Global) -> Result<(Client, Defaults), Failure> {
    let profile = read_profile(global)?;
    let of_environment = variable(URL);
    let (stronger, weaker) = match &global.profile {
        Some(_) => (&profile.url, &of_environment),
        None => (&of_environment, &profile.url),
    };
    let url = global
        .url
        .as_ref()
        .or(stronger.as_ref())
        .or(weaker.as_ref());
    let url = url.cloned().ok_or_else(|| {
        Failure::usage("the address of the service is not known").advice(
            "use --url, set FLEETWRIGHT_URL, or write `url` into a profile of the config file",
        )
    })?;
    // The token of a profile is for the service of the profile.
    let is_of_profile = profile.url.as_ref() == Some(&url);
    let mut builder = Client::builder(&url);
    match find_token(global, &profile, is_of_profile)? {
        Some(token) => builder = builder.token(token),
        None if !is_of_profile && (profile.token.is_some() || profile.token_file.is_some()) => {
            let message = format!(
                "the token of the profile is not sent to {url}, which is not the profile's service"
            );
            return Err(Failure::usage(message).advice(format!(
                "use --token-file, set {TOKEN_FILE}, or use a profile for that service"
            )));
        }
        None => {
            return Err(Failure::usage("there is no token")
                .advice(format!("set {TOKEN} or {TOKEN_FILE}, use --token-file, or write `token-file` into a profile of the config file")));
        }
    }
    if let Some(file) = global.ca_file.as_ref().or(profile.ca_file.as_ref()) {
        let pem = fs::read(file).map_err(|error| unreadable(file, &error))?;
        builder = builder.certificate_authorities(pem);
    }
    if global.allow_plain_http {
        builder = builder.allow_plain_http();
    }
    if let Some(deadline) = global.deadline {
        builder = builder.deadline(deadline);
    }
    let defaults = Defaults {
        organization: profile.organization,
        project: profile.project,
    };
    Ok((builder.build()?, defaults))
}

fn find_token(
    global: &Global,
    profile: &Profile,
    is_of_profile: bool,
) -> Result<Option<Token>, Failure> {
    if let Some(file) = &global.token_file {
        return token_of(file).map(Some);
    }
    // The token of the environment is for the service that the environment or --url names.
    if let Some(name) = global.profile.as_ref().filter(|_| is_of_profile) {
        if let Some(token) = token_of_profile(profile)? {
            return Ok(Some(token));
        }
        let message = format!(
            "profile {name} has no token, and that of the environment is not sent to its service"
        );
        return Err(Failure::usage(message)
            .advice("write `token-file` into the profile, or use --token-file"));
    }
    if let Some(text) = variable(TOKEN) {
        return Ok(Some(Token::new(&text)?));
    }
    if let Some(file) = variable(TOKEN_FILE) {
        return token_of(Path::new(&file)).map(Some);
    }
    if !is_of_profile {
        return Ok(None);
    }
    token_of_profile(profile)
}

fn token_of_profile(profile: &Profile) -> Result<Option<Token>, Failure> {
    if let Some(file) = &profile.token_file {
        return token_of(file).map(Some);
    }
    let token = profile.token.as_deref().map(Token::new);
    Ok(token.transpose()?)
}

fn token_of(file: &Path) -> Result<Token, Failure> {
    let text = if file == Path::new("-") {
        io::read_to_string(io::stdin()).map_err(|error| unreadable(file, &error))?
    } else {
        read_secret(file)?
    };
    Ok(Token::new(&text)?)
}

/// Reads a file that nobody else may read.
fn read_secret(file: &Path) -> Result<String, Failure> {
    check_permissions(file)?;
    fs::read_to_string(file).map_err(|error| unreadable(file, &error))
}

#[cfg(unix)]
fn check_permissions(file: &Path) -> Result<(), Failure> {
    use std::os::unix::fs::PermissionsExt as _;
    let metadata = fs::metadata(file).map_err(|error| unreadable(file, &error))?;
    // A pipe of the shell has no permissions of its own.
    if metadata.is_file() && metadata.permissions().mode() & 0o077 != 0 {
        let message = format!(
            "{}: others may read this file, and it has a token",
            file.display()
        );
        return Err(Failure::usage(message).advice(format!("chmod 600 {}", file.display())));
    }
    Ok(())
}

#[cfg(not(unix))]
fn check_permissions(_: &Path) -> Result<(), Failure> {
    Ok(())
}

/// The profile that is asked for, or the default one. Without a config file it is empty.
fn read_profile(global: &Global) -> Result<Profile, Failure> {
    let (path, is_required) = match &global.config {
        Some(path) => (Some(path.clone()), true),
        None => (default_path(), false),
    };
    let asked = global.profile.clone().or_else(|| variable(PROFILE));
    let Some(path) = path.filter(|path| is_required || path.exists()) else {
        return match asked {
            Some(name) => Err(Failure::usage(format!(
                "there is no config file, and so no profile {name}"
            ))),
            None => Ok(Profile::default()),
        };
    };
    let text = fs::read_to_string(&path).map_err(|error| unreadable(&path, &error))?;
    let file: File = toml::from_str(&text).map_err(|error| {
        // Neither the line nor a value is shown: it may be a token.
        let message = match error.message().split_once("invalid type: string") {
            Some((_, rest)) => rest
                .rsplit_once("expected")
                .map_or("not a text here", |(_, expected)| expected.trim()),
            None => error.message(),
        };
        let line = error
            .span()
            .map_or(1, |span| text[..span.start].matches('\n').count() + 1);
        Failure::usage(format!("{}: line {line}: {}", path.display(), message))
    })?;
    let Some(name) = asked.or(file.default_profile) else {
        return match <[_; 1]>::try_from(file.profile.into_iter().collect::<Vec<_>>()) {
            Ok([(_, profile)]) => resolve(&path, profile),
            Err(profiles) if profiles.is_empty() => Ok(Profile::default()),
            Err(profiles) => {
                let names: Vec<_> = profiles.into_iter().map(|(name, _)| name).collect();
                Err(Failure::usage(format!(
                    "{}: it has several profiles: {}",
                    path.display(),
                    names.join(", ")
                ))
                .advice("use --profile, or write `default-profile`"))
            }
        };
    };
    let known: Vec<_> = file.profile.keys().cloned().collect();
    let mut profiles = file.profile;
    let profile = profiles.remove(&name).ok_or_else(|| {
        Failure::usage(format!("{}: there is no profile {name}", path.display()))
            .advice(format!("use one of: {}", known.join(", ")))
    })?;
    resolve(&path, profile)
}

/// Paths are relative to the folder of the config file, and a file with a token is nobody else's.
fn resolve(config: &Path, mut profile: Profile) -> Result<Profile, Failure> {
    if profile.token.is_some() {
        check_permissions(config)?;
    }
    let folder = config.parent().unwrap_or(Path::new(""));
    for path in [&mut profile.token_file, &mut profile.ca_file]
        .into_iter()
        .flatten()
    {
        *path = folder.join(&path);
    }
    Ok(profile)
}

fn default_path() -> Option<PathBuf> {
    let folder = match variable("XDG_CONFIG_HOME") {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(variable("HOME")?).join(".config"),
    };
    Some(folder.join("fleetwright/config.toml"))
}

/// An environment variable that is set and not empty.
fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

fn unreadable(file: &Path, error: &io::Error) -> Failure {
    Failure::usage(format!("{}: it cannot be read: {error}", file.display()))
}
