//! User data: what a machine runs at its first boot, in the formats of cloud-init.
//!
//! Owns two things, both pure. [`check`] recognises what a tenant sends, and refuses in words what cloud-init would ignore, or would spoil.
//! [`assemble()`] adds what the region puts onto a machine, so that all the tenant asked for still happens, and happens first. It never changes
//! what the tenant sent and never shows it: user data hold secrets.
//!
//! Nothing here is guessed: `scripts/check-cloud-init` has cloud-init's own code read what is assembled and judge what is refused.

mod assemble;
mod error;
mod format;
mod gzip;
mod managed;
mod mime;
mod yaml;

pub use assemble::{MAX_ASSEMBLED_BYTES, assemble};
pub use error::BadUserData;
pub use format::{Format, Sort};
pub use gzip::MAX_INFLATED_BYTES;
pub use managed::Managed;

use crate::server::MAX_USER_DATA_BYTES;

/// Whether something of the region comes onto the machine beside the tenant's user data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Nothing does: the user data are sent as they came.
    Alone,
    /// A key of the server's, an SSH certificate authority that it trusts, or both.
    Merged,
}

/// What user data are, or why they are not taken: too large, of no format of cloud-init's, broken in a way that can be seen for sure, or not to
/// be merged. What is taken in a mode is [assembled](assemble()) in it without an error.
pub fn check(bytes: &[u8], mode: Mode) -> Result<Format, BadUserData> {
    let (actual, limit) = (bytes.len(), MAX_USER_DATA_BYTES);
    if actual > limit {
        return Err(BadUserData::TooLarge { actual, limit });
    }
    let (format, content) = read(bytes, mode)?;
    match (format, mode) {
        (Format::Gzip(sort), Mode::Merged) => {
            // How far it can be compressed again is only known by doing it.
            assemble::packed(sort, &content, &Managed::largest())?;
        }
        (Format::Empty | Format::Plain(_) | Format::Gzip(_), _) => {}
    }
    Ok(format)
}

/// What user data are, and their bytes, inflated if they are compressed.
fn read(bytes: &[u8], mode: Mode) -> Result<(Format, Vec<u8>), BadUserData> {
    if bytes.is_empty() {
        return Ok((Format::Empty, Vec::new()));
    }
    if gzip::is_gzip(bytes) {
        let content = gzip::inflate(bytes)?;
        if gzip::is_gzip(&content) {
            return Err(BadUserData::GzipTwice);
        }
        return Ok((Format::Gzip(recognise(&content, mode)?), content));
    }
    Ok((Format::Plain(recognise(bytes, mode)?), bytes.to_vec()))
}

/// The sort of user data that are not compressed, once they are seen to be of it.
fn recognise(bytes: &[u8], mode: Mode) -> Result<Sort, BadUserData> {
    let text = std::str::from_utf8(bytes).map_err(|_| BadUserData::NotText)?;
    if mime::is_message(text) {
        mime::check(text)?;
        return Ok(Sort::Mime);
    }
    let sort = Sort::of(text).ok_or(BadUserData::Unrecognised)?;
    if sort.is_exact() && !text.starts_with(sort.first_line()) {
        return Err(BadUserData::NotAtStart(sort));
    }
    match sort {
        Sort::CloudConfig => yaml::check_config(text, mode)?,
        Sort::CloudConfigArchive => yaml::check_archive(text)?,
        Sort::CloudConfigJsonp => yaml::check_patch(text)?,
        // What these do is known when they are run, fetched or rendered.
        Sort::Jinja
        | Sort::Script
        | Sort::Boothook
        | Sort::Include
        | Sort::IncludeOnce
        | Sort::PartHandler
        | Sort::Mime => {}
    }
    Ok(sort)
}

#[cfg(test)]
mod tests;
