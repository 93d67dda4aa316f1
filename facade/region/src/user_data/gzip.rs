//! Compressed user data, which are opened to look inside and never trusted about their size.

use std::io::{self, Read as _, Write as _};

use flate2::{Compression, GzBuilder, read::MultiGzDecoder};

use super::BadUserData;

/// What compressed data begin with.
const MAGIC: &[u8] = &[0x1f, 0x8b];
/// How many bytes compressed user data may become. A few kilobytes can become gigabytes, and are opened here and on the machine.
pub const MAX_INFLATED_BYTES: usize = 512 * 1024;

pub(super) fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// What was compressed. Never holds more than the limit.
pub(super) fn inflate(bytes: &[u8]) -> Result<Vec<u8>, BadUserData> {
    let mut content = Vec::new();
    let one_more = u64::try_from(MAX_INFLATED_BYTES + 1).unwrap_or(u64::MAX);
    let mut reader = MultiGzDecoder::new(bytes).take(one_more);
    reader
        .read_to_end(&mut content)
        .map_err(|_| BadUserData::BadGzip)?;
    if content.len() > MAX_INFLATED_BYTES {
        return Err(BadUserData::Inflated);
    }
    Ok(content)
}

/// Compresses, the same bytes to the same bytes.
pub(super) fn deflate(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut writer = GzBuilder::new()
        .mtime(0)
        .write(Vec::new(), Compression::best());
    writer.write_all(bytes)?;
    writer.finish()
}
