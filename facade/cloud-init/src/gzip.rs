//! Compressed user data: decompressed for checking, with a limit on the decompressed size.

use std::io::{self, Read as _, Write as _};

use flate2::{Compression, GzBuilder, read::MultiGzDecoder};

use crate::UserDataError;

/// The first bytes of gzip data.
const MAGIC: &[u8] = &[0x1f, 0x8b];
/// How many bytes compressed user data may decompress to: 512 KiB. A few kilobytes can decompress to gigabytes, here and on the
/// machine.
pub const MAX_INFLATED_BYTES: usize = 512 * 1024;

pub(crate) fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// Decompresses, with at most the limit in memory.
pub(crate) fn inflate(bytes: &[u8]) -> Result<Vec<u8>, UserDataError> {
    let mut content = Vec::new();
    let one_more = u64::try_from(MAX_INFLATED_BYTES + 1).unwrap_or(u64::MAX);
    let mut reader = MultiGzDecoder::new(bytes).take(one_more);
    reader
        .read_to_end(&mut content)
        .map_err(|_| UserDataError::BadGzip)?;
    if content.len() > MAX_INFLATED_BYTES {
        return Err(UserDataError::Inflated);
    }
    Ok(content)
}

/// Compresses. The same input gives the same output.
pub(crate) fn deflate(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut writer = GzBuilder::new()
        .mtime(0)
        .write(Vec::new(), Compression::best());
    writer.write_all(bytes)?;
    writer.finish()
}
