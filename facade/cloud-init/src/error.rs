//! Why user data is refused.

use crate::{Kind, MAX_ASSEMBLED_BYTES, MAX_INFLATED_BYTES};

/// Why user data is refused, and what would be accepted. It never shows user data, which may contain secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UserDataError {
    /// The user data is too large.
    #[error(
        "the user data has {actual} bytes: expected at most {limit}, compressed or not; include the rest from a URL"
    )]
    TooLarge {
        /// Its size in bytes.
        actual: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The user data is too large together with the cloud-config that is added.
    #[error(
        "the user data would have {actual} bytes with the added cloud-config, compressed: expected at most {MAX_ASSEMBLED_BYTES}; include the rest from a URL"
    )]
    TooLargeMerged {
        /// Its size in bytes, assembled and compressed.
        actual: usize,
    },
    /// The format is unknown.
    #[error(
        "the user data is in no format that cloud-init knows: expected a first line such as #cloud-config, #! or #include, or a MIME archive, plain or compressed by gzip"
    )]
    Unrecognized,
    /// The user data is neither compressed nor UTF-8 text.
    #[error(
        "the user data is not UTF-8 text, and cloud-init would not run it: expected UTF-8, plain or compressed by gzip"
    )]
    NotText,
    /// The first line of this kind is not at the start of the user data.
    #[error("the first line of a {0} is not at the start: expected the user data to start with {line:?} in lower case, with nothing before it", line = .0.first_line())]
    NotAtStart(Kind),
    /// It starts like gzip data and cannot be decompressed.
    #[error(
        "the user data starts like gzip data and cannot be decompressed: expected a complete gzip file with nothing after it"
    )]
    BadGzip,
    /// It decompresses to too many bytes.
    #[error(
        "the user data decompresses to too many bytes: expected at most {MAX_INFLATED_BYTES}; include the rest from a URL"
    )]
    Inflated,
    /// It is compressed twice.
    #[error(
        "the user data is compressed twice, and cloud-init decompresses it once: compress it once"
    )]
    GzipTwice,
    /// The archive lacks the header by which cloud-init recognizes it.
    #[error(
        "the archive has no MIME-Version header in its first 4096 bytes, and cloud-init would not open it: expected \"MIME-Version: 1.0\" among its first headers"
    )]
    NoMimeVersion,
    /// It has MIME headers and is not multipart.
    #[error(
        "the user data has MIME headers and is not multipart: expected \"Content-Type: multipart/mixed\" with a boundary, or no headers at all"
    )]
    NotMultipart,
    /// The archive has no boundary.
    #[error(
        "a multipart header of the archive has no boundary: expected boundary=\"...\" in its Content-Type"
    )]
    NoBoundary,
    /// The archive contains no part.
    #[error(
        "an archive has no part: expected at least one, after a line of two dashes and its boundary"
    )]
    NoPart,
    /// The archive has no last line.
    #[error(
        "an archive has no end and may be cut off: expected its last line to be two dashes, its boundary and two dashes"
    )]
    CutOff,
    /// Archives are nested too deep.
    #[error("archives are nested too deep: expected at most {limit} levels")]
    TooDeep {
        /// The deepest nesting that is allowed.
        limit: usize,
    },
    /// The archive has characters that cloud-init would change.
    #[error(
        "the archive has characters beyond ASCII, which cloud-init would change: expected its parts in base64 or quoted-printable"
    )]
    NotAscii,
    /// It is not valid YAML.
    #[error(
        "the {kind} is not valid YAML at line {line}, and cloud-init would ignore all of it: fix that line, or the one before it"
    )]
    NotYaml {
        /// The kind, which its first line says.
        kind: Kind,
        /// The line of the error, counted from 1.
        line: usize,
    },
    /// It has several YAML documents.
    #[error(
        "the {0} has several YAML documents, and cloud-init would ignore all of them: expected one, without \"---\" lines after its beginning"
    )]
    ManyDocuments(Kind),
    /// The cloud-config is not a mapping.
    #[error(
        "the cloud-config is not a YAML mapping, and cloud-init would ignore it: expected lines of the form \"key: value\""
    )]
    NotMapping,
    /// The cloud-config-archive is not a list.
    #[error(
        "the cloud-config-archive is not a YAML list, and cloud-init would ignore it: expected its entries to begin with \"- \""
    )]
    NotList,
    /// A setting is not a list, and what the server needs cannot be appended to it.
    #[error(
        "{key} of the cloud-config is not a list, and cloud-init could not append the added entries to it: expected a list, or no {key} at all"
    )]
    NotAppendable {
        /// The setting.
        key: &'static str,
    },
    /// The cloud-config-jsonp is not a JSON patch.
    #[error(
        "the cloud-config-jsonp is not a JSON patch, and cloud-init would ignore it: expected a JSON list of operations after its first line"
    )]
    NotPatch,
}
