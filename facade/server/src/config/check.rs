//! Checking a file together with the files that it names.

use std::{
    fs,
    path::{Path, PathBuf},
};

use fleetwright_region::{
    catalog::CatalogFile,
    file::Problems,
    secret::{Keyring, KeyringError},
};

use super::{Config, read};
use crate::auth::{jwt, tokens::Tokens};

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("{} cannot be read: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file has mistakes.
    #[error("{} has mistakes:\n{}", path.display(), lines(problems))]
    Mistakes {
        /// The file.
        path: PathBuf,
        /// Every mistake, with its line and column.
        problems: Problems,
    },
    /// A file has another form than it should have.
    #[error("{} cannot be used", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The keyring cannot be used.
    #[error(transparent)]
    Keyring(#[from] KeyringError),
}

impl ConfigError {
    pub(crate) fn unusable(
        path: &Path,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Unusable {
            path: path.to_owned(),
            source: source.into(),
        }
    }
}

fn lines(problems: &Problems) -> String {
    let lines: Vec<_> = problems
        .iter()
        .map(|problem| format!("  {problem}"))
        .collect();
    lines.join("\n")
}

/// Checks a configuration file, its catalog, tokens, keys, certificate and keyring, and that its mappings can be read. Returns every error that was found.
///
/// ```
/// use fleetwright_server::check;
///
/// let folder = tempfile::tempdir()?;
/// let file = folder.path().join("server.toml");
/// std::fs::write(&file, "databse = \"fleet.db\"\n")?;
/// let errors = check(&file).unwrap_err();
/// let text = errors[0].to_string();
/// assert!(text.contains("line 1, column 1: \"databse\" is unknown"), "{text}");
/// assert!(text.contains("did you mean database?"), "{text}");
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
///
/// Every file that cannot be read or has mistakes.
pub fn check(path: &Path) -> Result<(), Vec<ConfigError>> {
    let config = load(path).map_err(|error| vec![error])?;
    let mut errors = Vec::new();
    let catalog = load_text(&config.catalog);
    let catalog = catalog.and_then(|text| {
        CatalogFile::parse(&text).map_err(|problems| mistakes(&config.catalog, problems))
    });
    errors.extend(catalog.err());
    let tokens = config.tokens.iter();
    errors.extend(tokens.filter_map(|tokens| load_tokens(tokens).err()));
    let keys = config.jwt.iter().filter_map(|jwt| jwt.file.as_ref());
    errors.extend(keys.filter_map(|keys| jwt::load(keys).err()));
    let tls = config.tls.iter();
    errors.extend(tls.filter_map(|tls| crate::tls::load(tls).err()));
    if let Some(keyring) = &config.keyring {
        errors.extend(Keyring::from_file(keyring).err().map(ConfigError::from));
    }
    for region in &config.regions {
        errors.extend(load_text(&region.mapping).err());
    }
    if errors.is_empty() {
        Ok(())
    } else {
        Err(errors)
    }
}

/// Reads a configuration file.
pub(crate) fn load(path: &Path) -> Result<Config, ConfigError> {
    let text = load_text(path)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    read(&text, folder).map_err(|problems| mistakes(path, problems))
}

/// Reads a file of tokens.
pub(crate) fn load_tokens(path: &Path) -> Result<Tokens, ConfigError> {
    let text = load_text(path)?;
    Tokens::parse(&text).map_err(|problems| mistakes(path, problems))
}

pub(crate) fn load_text(path: &Path) -> Result<String, ConfigError> {
    fs::read_to_string(path).map_err(|source| ConfigError::Unreadable {
        path: path.to_owned(),
        source,
    })
}

fn mistakes(path: &Path, problems: Problems) -> ConfigError {
    ConfigError::Mistakes {
        path: path.to_owned(),
        problems,
    }
}
