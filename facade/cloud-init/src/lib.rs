#![doc = include_str!("../README.md")]
//!
//! ## Where to start
//!
//! [`check`] checks a tenant's user data, [`assemble()`] adds what the region needs ([`ManagedConfig`]), and [`UserDataError`] says what is
//! wrong.

mod assemble;
mod error;
mod format;
mod gzip;
mod managed;
mod mime;
mod yaml;

pub use assemble::{MAX_ASSEMBLED_BYTES, assemble};
pub use error::UserDataError;
pub use format::{Format, Kind};
pub use gzip::MAX_INFLATED_BYTES;
pub use managed::{MAX_AUTHORITY_KEY_BYTES, ManagedConfig};

/// How many bytes of user data are accepted, compressed or not: 32 KiB.
pub const MAX_BYTES: usize = 32 * 1024;

/// Whether a [`ManagedConfig`] is added to the user data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Nothing is added: the user data is sent as it is.
    Alone,
    /// A public key, an SSH certificate authority, or both are added.
    Merged,
}

/// Returns the format of user data.
///
/// User data that is accepted in a mode is [assembled](assemble()) in that mode without an error, whatever is added. What is accepted in
/// [`Mode::Merged`] is accepted in [`Mode::Alone`].
///
/// ```
/// use fleetwright_cloud_init::{Format, Kind, Mode, check};
///
/// let format = check(b"#cloud-config\npackages: [jq]\n", Mode::Merged)?;
/// assert_eq!(format, Format::Plain(Kind::CloudConfig));
/// let error = check(b"hello", Mode::Alone).unwrap_err();
/// println!("{error}");
/// # Ok::<(), fleetwright_cloud_init::UserDataError>(())
/// ```
///
/// # Errors
///
/// The user data is too large, in no format of cloud-init, certainly broken, or cannot be merged in this mode. The
/// [message](UserDataError) says what is wrong and what would be accepted.
pub fn check(bytes: &[u8], mode: Mode) -> Result<Format, UserDataError> {
    let (format, content) = read(bytes, mode)?;
    match (format, mode) {
        (Format::Gzip(kind), Mode::Merged) => {
            // Only compressing the result shows how large it becomes.
            assemble::compressed_archive(kind, &content, &ManagedConfig::largest())?;
        }
        (Format::Empty | Format::Plain(_) | Format::Gzip(_), _) => {}
    }
    Ok(format)
}

/// Returns the format of user data, and its bytes, decompressed.
fn read(bytes: &[u8], mode: Mode) -> Result<(Format, Vec<u8>), UserDataError> {
    let (actual, limit) = (bytes.len(), MAX_BYTES);
    if actual > limit {
        return Err(UserDataError::TooLarge { actual, limit });
    }
    if bytes.is_empty() {
        return Ok((Format::Empty, Vec::new()));
    }
    if gzip::is_gzip(bytes) {
        let content = gzip::inflate(bytes)?;
        if gzip::is_gzip(&content) {
            return Err(UserDataError::GzipTwice);
        }
        return Ok((Format::Gzip(recognize(&content, mode)?), content));
    }
    Ok((Format::Plain(recognize(bytes, mode)?), bytes.to_vec()))
}

/// Returns the kind of user data that is not compressed, after checking that it has the shape of that kind.
fn recognize(bytes: &[u8], mode: Mode) -> Result<Kind, UserDataError> {
    let text = std::str::from_utf8(bytes).map_err(|_| UserDataError::NotText)?;
    if mime::is_message(text) {
        mime::check(text)?;
        return Ok(Kind::Mime);
    }
    let kind = Kind::of(text).ok_or(UserDataError::Unrecognized)?;
    if kind.needs_exact_first_line() && !text.starts_with(kind.first_line()) {
        return Err(UserDataError::NotAtStart(kind));
    }
    match kind {
        Kind::CloudConfig => yaml::check_config(text, mode)?,
        Kind::CloudConfigArchive => yaml::check_archive(text)?,
        Kind::CloudConfigJsonp => yaml::check_patch(text)?,
        // Whether these work is known only when they are run, fetched or rendered.
        Kind::Jinja
        | Kind::Script
        | Kind::Boothook
        | Kind::Include
        | Kind::IncludeOnce
        | Kind::PartHandler
        | Kind::Mime => {}
    }
    Ok(kind)
}

#[cfg(test)]
mod tests;
