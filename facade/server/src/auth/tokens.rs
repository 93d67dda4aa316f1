//! The file of tokens. It has the hashes of long random tokens, never a token.
//!
//! SHA-256 without salt is enough: a token has 256 random bits, so no table of hashes can be made in advance, and there is nothing to guess.

use std::{fmt, path::Path};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::{DateTime, Utc};
use fleetwright_identity::{Actor, ActorName};
use fleetwright_region::file::{Problems, reader};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// What every token begins with, so that scanners of secrets find one that was published.
pub(super) const PREFIX: &str = "fleetwright_";

/// The tokens of a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tokens(Vec<Entry>);

#[derive(Clone)]
struct Entry {
    hash: [u8; 32],
    actor: Actor,
    expires: Option<DateTime<Utc>>,
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("actor", &self.actor)
            .finish_non_exhaustive()
    }
}

/// A new token. The text is shown once, to the person who asked for it.
pub(crate) struct NewToken {
    pub(crate) text: String,
    hash: [u8; 32],
}

impl NewToken {
    pub(crate) fn generate() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes)?;
        let text = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes));
        let hash = hash(&text);
        Ok(Self { text, hash })
    }

    /// The lines for the file.
    pub(crate) fn lines(&self, actor: &ActorName, expires: Option<DateTime<Utc>>) -> String {
        let mut lines = format!(
            "\n[[token]]\nactor = \"{actor}\"\nsha256 = \"{}\"\n",
            URL_SAFE_NO_PAD.encode(self.hash)
        );
        if let Some(expires) = expires {
            let expires = expires.to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
            lines.push_str(&format!("expires = \"{expires}\"\n"));
        }
        lines
    }
}

impl Tokens {
    /// Reads a file. Every problem is reported, with its line and column.
    pub(crate) fn parse(text: &str) -> Result<Self, Problems> {
        if text
            .lines()
            .all(|line| line.trim().is_empty() || line.trim().starts_with('#'))
        {
            return Ok(Self::default());
        }
        reader::read_document(text, |fields| {
            let mut entries = Vec::new();
            for mut table in fields.tables("token") {
                let actor = table.required("actor", |value| reader::text(value));
                let actor = actor.and_then(|name| match ActorName::new(name) {
                    Ok(name) => Some(name),
                    Err(error) => {
                        table.report_field("actor", error.to_string());
                        None
                    }
                });
                let hash = table.required("sha256", |value| {
                    let text = reader::text(value)?;
                    let bytes = URL_SAFE_NO_PAD.decode(text).ok();
                    let hash = bytes.and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
                    hash.ok_or_else(|| {
                        "expected a line of `fleetwright-server token new`".to_owned()
                    })
                });
                let expires = table.optional("expires", |value| {
                    reader::parse_text("a date in quotes, as \"2027-01-31T00:00:00Z\"", value)
                });
                table.finish();
                if let (Some(actor), Some(hash)) = (actor, hash) {
                    entries.push(Entry {
                        hash,
                        actor: Actor::User(actor),
                        expires,
                    });
                }
            }
            Self(entries)
        })
    }

    /// Adds a token that is in no file.
    pub(crate) fn with(mut self, token: &NewToken, actor: ActorName) -> Self {
        let actor = Actor::User(actor);
        self.0.push(Entry {
            hash: token.hash,
            actor,
            expires: None,
        });
        self
    }

    /// The actor of a token. Compares with every entry, each in constant time.
    pub(crate) fn actor(&self, token: &str, now: DateTime<Utc>) -> Option<Actor> {
        let hash = hash(token);
        let mut found = None;
        for entry in &self.0 {
            if bool::from(entry.hash.ct_eq(&hash)) {
                found = Some(entry);
            }
        }
        let valid = found.filter(|entry| entry.expires.is_none_or(|expires| now < expires))?;
        Some(valid.actor.clone())
    }
}

fn hash(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

/// Appends lines to the file, which only its owner can read if it is new.
pub(crate) fn append(path: &Path, lines: &str) -> std::io::Result<()> {
    use std::io::Write as _;
    let mut options = std::fs::OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(lines.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_known_by_its_line_until_it_expires() {
        let token = NewToken::generate().unwrap();
        let expires: DateTime<Utc> = "2027-01-31T00:00:00Z".parse().unwrap();
        let lines = token.lines(&ActorName::new("ada").unwrap(), Some(expires));
        assert!(!lines.contains(&token.text));
        let tokens = Tokens::parse(&lines).unwrap();
        let before = expires - chrono::Duration::seconds(1);
        assert_eq!(
            tokens.actor(&token.text, before).unwrap().to_string(),
            "user ada"
        );
        assert!(tokens.actor(&token.text, expires).is_none());
        assert!(tokens.actor("fleetwright_x", before).is_none());
        assert!(tokens.actor("", before).is_none());
    }

    #[test]
    fn every_problem_of_a_file_has_its_position() {
        let problems =
            Tokens::parse("[[token]]\nactor = \"ada\"\nsha256 = \"x\"\nexpire = \"y\"\n")
                .unwrap_err();
        let lines: Vec<_> = problems
            .iter()
            .map(|problem| (problem.line, problem.column))
            .collect();
        assert_eq!(lines, [(3, 10), (4, 1)]);
    }
}
