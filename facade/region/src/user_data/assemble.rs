//! Putting together what a machine boots with: the tenant's user data first, to the byte, then what the region adds.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use fleetwright::UserData;
use uuid::Uuid;

use super::{BadUserData, Format, Managed, Mode, Sort, gzip, read};

/// How many bytes are sent at most, whatever the tenant's user data: a record holds them beside those.
pub const MAX_ASSEMBLED_BYTES: usize = 56 * 1024;
/// How long a line of an encoded part is.
const LINE: usize = 76;

/// The user data of a launch. The same arguments give the same bytes.
///
/// - With nothing to add, the tenant's own as they are.
/// - Without any of the tenant's, a cloud-config of what is added.
/// - Otherwise a MIME archive of the tenant's, under the type that they are of, and that cloud-config. What the tenant compressed is
///   opened for it, since cloud-init spoils what is compressed in an archive, and the whole is compressed instead.
///
/// Never fails for what [`check`](super::check()) takes in the same [mode](Managed::mode). With nothing to add it looks at nothing.
pub fn assemble(
    own: Option<&UserData>,
    managed: &Managed,
) -> Result<Option<UserData>, BadUserData> {
    let mode = managed.mode();
    let own = own.map_or(&[][..], UserData::as_bytes);
    let whole = match mode {
        Mode::Alone => own.to_vec(),
        Mode::Merged => match read(own, mode)? {
            (Format::Empty, _) => managed.cloud_config().into_bytes(),
            (Format::Plain(sort), content) => archive(sort, &content, managed),
            (Format::Gzip(sort), content) => packed(sort, &content, managed)?,
        },
    };
    // Only nothing at all is refused.
    Ok(UserData::new(whole).ok())
}

/// A compressed archive, or that it is too large.
pub(super) fn packed(
    sort: Sort,
    content: &[u8],
    managed: &Managed,
) -> Result<Vec<u8>, BadUserData> {
    let whole = archive(sort, content, managed);
    // Writing to memory does not fail; if it ever did, what is not compressed is as good.
    let whole = gzip::deflate(&whole).unwrap_or(whole);
    let actual = whole.len();
    if actual > MAX_ASSEMBLED_BYTES {
        return Err(BadUserData::TooLargeMerged { actual });
    }
    Ok(whole)
}

fn archive(sort: Sort, content: &[u8], managed: &Managed) -> Vec<u8> {
    let boundary = Uuid::new_v5(managed.server(), content).simple();
    let begin = format!(
        "Content-Type: multipart/mixed; boundary=\"{boundary}\"\nMIME-Version: 1.0\n\n--{boundary}\n"
    );
    let mut whole = begin.into_bytes();
    whole.extend_from_slice(&part(sort, content));
    let (of, config) = (Sort::CloudConfig.content_type(), managed.cloud_config());
    let end = format!("\n--{boundary}\nContent-Type: {of}\n\n{config}\n--{boundary}--\n");
    whole.extend_from_slice(end.as_bytes());
    whole
}

/// The tenant's part: its headers, and the content so that a reader of mail takes it out to the byte.
fn part(sort: Sort, content: &[u8]) -> Vec<u8> {
    let of = sort.content_type();
    if sort == Sort::Mime {
        // It has its own headers, and is a part as it stands.
        return content.to_vec();
    }
    if content.iter().all(is_plain) {
        // As it is: clouds take little user data, and an encoding makes it longer by a third.
        let mut part = format!("Content-Type: {of}\n\n").into_bytes();
        part.extend_from_slice(content);
        return part;
    }
    let headers = format!("Content-Type: {of}\nContent-Transfer-Encoding: base64\n\n");
    let mut part = headers.into_bytes();
    for line in STANDARD.encode(content).as_bytes().chunks(LINE) {
        part.extend_from_slice(line);
        part.push(b'\n');
    }
    part
}

/// Whether a byte comes through a reader of mail as it is.
fn is_plain(byte: &u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\n' | b'\t')
}
