//! Why user data are not taken.

use super::{MAX_ASSEMBLED_BYTES, MAX_INFLATED_BYTES, Sort};

/// Why user data are not taken, and what would be. It never shows them: they may hold secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadUserData {
    /// There is more of it than a server takes.
    #[error(
        "the user data have {actual} bytes: want at most {limit}, compressed by gzip or not; the rest can be included from an address"
    )]
    TooLarge {
        /// How many there are.
        actual: usize,
        /// How many there may be.
        limit: usize,
    },
    /// With what is added it is too much.
    #[error(
        "the user data would have {actual} bytes with what the region adds, compressed: want at most {MAX_ASSEMBLED_BYTES}; have them include the rest from an address"
    )]
    TooLargeMerged {
        /// How many they would have.
        actual: usize,
    },
    /// It is of no known format.
    #[error(
        "the user data are in no format of cloud-init: want them to begin with #cloud-config, #!, #include or another of its first lines, or to be a MIME archive, as they are or compressed by gzip"
    )]
    Unrecognised,
    /// It is neither compressed nor text.
    #[error(
        "the user data are not text in UTF-8, and cloud-init would not run them: want UTF-8, as it is or compressed by gzip"
    )]
    NotText,
    /// What comes first must come first.
    #[error("the first line of a {0} is not found where it has to be: want the user data to begin with {line:?} in this very case, with nothing before it", line = .0.first_line())]
    NotAtStart(Sort),
    /// It begins like compressed data.
    #[error(
        "the user data begin as if compressed by gzip and cannot be read: want all of a gzip file, and nothing after it"
    )]
    BadGzip,
    /// It is compressed, and what comes out is too much.
    #[error(
        "the compressed user data become more than {MAX_INFLATED_BYTES} bytes: want less, or have them include the rest from an address"
    )]
    Inflated,
    /// It is compressed twice.
    #[error(
        "the user data are compressed twice, and cloud-init undoes it once: want them compressed once"
    )]
    GzipTwice,
    /// An archive without the header that makes it one to cloud-init.
    #[error(
        "the archive has no MIME-Version header in its first 4096 bytes, and cloud-init would not open it: want \"MIME-Version: 1.0\" among its first headers"
    )]
    NoMimeVersion,
    /// It has headers, and is not of several parts.
    #[error(
        "the user data have MIME headers and are not multipart: want \"Content-Type: multipart/mixed\" with a boundary, or no headers at all"
    )]
    NotMultipart,
    /// An archive that does not say how its parts are told apart.
    #[error(
        "a multipart header of the archive has no boundary: want boundary=\"...\" in its Content-Type"
    )]
    NoBoundary,
    /// An archive with a boundary that never comes.
    #[error(
        "an archive holds no part: want at least one, after a line of two dashes and its boundary"
    )]
    NoPart,
    /// An archive that was cut off.
    #[error(
        "an archive has no end, and may have been cut off: want its last line to be two dashes, its boundary and two dashes"
    )]
    CutOff,
    /// An archive in an archive, and so on.
    #[error("archives are in archives too deep to follow: want at most {limit}")]
    TooDeep {
        /// How many may be in each other.
        limit: usize,
    },
    /// An archive with characters that cloud-init does not read.
    #[error(
        "the archive has characters beyond ASCII, which cloud-init would change: want its parts in base64 or quoted-printable"
    )]
    NotAscii,
    /// A text that is not the YAML it says it is.
    #[error(
        "the {sort} is no YAML from its line {line} on, and cloud-init would ignore all of it: mend that line, or the one before it"
    )]
    NotYaml {
        /// What it says it is.
        sort: Sort,
        /// Where it stops being it.
        line: usize,
    },
    /// Several documents in one.
    #[error(
        "the {0} is several YAML documents, and cloud-init would ignore all of them: want one, without \"---\" lines after its beginning"
    )]
    ManyDocuments(Sort),
    /// A cloud-config of another shape.
    #[error(
        "the cloud-config is not a YAML mapping, and cloud-init would ignore it: want lines of the form \"key: value\""
    )]
    NotMapping,
    /// An archive in YAML of another shape.
    #[error(
        "the cloud-config-archive is not a YAML list, and cloud-init would ignore it: want its entries to begin with \"- \""
    )]
    NotList,
    /// A list that is none, and cannot be added to.
    #[error(
        "{key} of the cloud-config is not a list, and cloud-init could not add to it what the server needs: want a list, or no {key} at all"
    )]
    NotAppendable {
        /// Which setting.
        key: &'static str,
    },
    /// A patch of another shape.
    #[error(
        "the cloud-config-jsonp is no JSON patch, and cloud-init would ignore it: want a JSON list of operations after its first line"
    )]
    NotPatch,
}
