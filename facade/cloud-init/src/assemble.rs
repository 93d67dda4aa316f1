//! Assembling what a machine boots with: the user data first, to the byte, then the managed cloud-config.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use uuid::Uuid;

use crate::{Format, Kind, ManagedConfig, Mode, UserDataError, gzip, read};

/// How many bytes assembled user data has at most: 56 KiB.
pub const MAX_ASSEMBLED_BYTES: usize = 56 * 1024;
/// The length of a base64 line.
const LINE: usize = 76;

/// Adds a managed cloud-config to user data, and returns what the machine boots with. The same arguments give the same bytes.
///
/// - If the config is empty, the result is the user data, unchanged and unchecked.
/// - If there is no user data, the result is the config.
/// - Otherwise the result is a MIME archive of the user data and the config. Compressed user data is decompressed first, because
///   cloud-init damages compressed parts of an archive, and the archive is compressed instead.
///
/// An empty result means that the machine boots without user data.
///
/// ```
/// use fleetwright_cloud_init::{ManagedConfig, assemble};
/// use uuid::Uuid;
///
/// let config = ManagedConfig::new(Uuid::nil()).with_public_key("ssh-ed25519 AAAA operator");
/// let archive = assemble(b"#!/bin/sh\necho hello\n", &config)?;
/// let text = String::from_utf8(archive)?;
/// assert!(text.contains("Content-Type: text/x-shellscript"));
/// assert!(text.contains("ssh-ed25519 AAAA operator"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// The user data fails [`check`](crate::check()) in the [mode](ManagedConfig::mode) of the config.
pub fn assemble(user_data: &[u8], config: &ManagedConfig) -> Result<Vec<u8>, UserDataError> {
    match config.mode() {
        Mode::Alone => Ok(user_data.to_vec()),
        Mode::Merged => match read(user_data, Mode::Merged)? {
            (Format::Empty, _) => Ok(config.cloud_config().into_bytes()),
            (Format::Plain(kind), content) => Ok(archive(kind, &content, config)),
            (Format::Gzip(kind), content) => compressed_archive(kind, &content, config),
        },
    }
}

/// Returns a compressed archive, or an error if it is too large.
pub(crate) fn compressed_archive(
    kind: Kind,
    content: &[u8],
    config: &ManagedConfig,
) -> Result<Vec<u8>, UserDataError> {
    let archive = archive(kind, content, config);
    // Writing to memory does not fail; if it ever did, the archive would be sent without compression.
    let archive = gzip::deflate(&archive).unwrap_or(archive);
    let actual = archive.len();
    if actual > MAX_ASSEMBLED_BYTES {
        return Err(UserDataError::TooLargeMerged { actual });
    }
    Ok(archive)
}

/// Returns the MIME archive of the user data and the managed config. The boundary is derived from both, so that the result is reproducible
/// and the boundary cannot occur in the content by accident.
fn archive(kind: Kind, content: &[u8], config: &ManagedConfig) -> Vec<u8> {
    let boundary = Uuid::new_v5(config.seed(), content).simple();
    let start = format!(
        "Content-Type: multipart/mixed; boundary=\"{boundary}\"\nMIME-Version: 1.0\n\n--{boundary}\n"
    );
    let mut archive = start.into_bytes();
    archive.extend_from_slice(&part(kind, content));
    let (content_type, config) = (Kind::CloudConfig.content_type(), config.cloud_config());
    let end = format!("\n--{boundary}\nContent-Type: {content_type}\n\n{config}\n--{boundary}--\n");
    archive.extend_from_slice(end.as_bytes());
    archive
}

/// Returns the part with the user data: its headers, and the content in a form that a MIME parser returns to the byte.
fn part(kind: Kind, content: &[u8]) -> Vec<u8> {
    let content_type = kind.content_type();
    if kind == Kind::Mime {
        // It has its own headers and is a complete part.
        return content.to_vec();
    }
    if content.iter().all(is_plain) {
        // Clouds limit user data to a few kilobytes, and base64 would make it a third longer.
        let mut part = format!("Content-Type: {content_type}\n\n").into_bytes();
        part.extend_from_slice(content);
        return part;
    }
    let headers = format!("Content-Type: {content_type}\nContent-Transfer-Encoding: base64\n\n");
    let mut part = headers.into_bytes();
    for line in STANDARD.encode(content).as_bytes().chunks(LINE) {
        part.extend_from_slice(line);
        part.push(b'\n');
    }
    part
}

/// Returns whether a MIME parser returns this byte unchanged.
fn is_plain(byte: &u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\n' | b'\t')
}
