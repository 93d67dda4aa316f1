//! The formats of cloud-init, recognized as cloud-init recognizes them.

use std::fmt;

/// How many characters at the beginning are compared: more than the longest first line has.
const PREFIX_CHARS: usize = 32;

/// The format of user data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// There is no user data.
    Empty,
    /// Not compressed.
    Plain(Kind),
    /// Compressed by gzip.
    Gzip(Kind),
}

/// What cloud-init does with user data, or with one part of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A MIME multipart archive.
    Mime,
    /// A jinja template that renders to another kind.
    Jinja,
    /// Settings in YAML: `#cloud-config`.
    CloudConfig,
    /// A YAML list of parts: `#cloud-config-archive`.
    CloudConfigArchive,
    /// A JSON patch of the settings: `#cloud-config-jsonp`.
    CloudConfigJsonp,
    /// A program that runs once, late in the first boot: `#!`.
    Script,
    /// A program that runs early in every boot: `#cloud-boothook`.
    Boothook,
    /// URLs of further user data: `#include`.
    Include,
    /// URLs that are fetched once: `#include-once`.
    IncludeOnce,
    /// Python code that handles parts: `#part-handler`.
    PartHandler,
}

impl Kind {
    /// The kinds with a first line. A first line that starts with another kind's comes before it.
    const BY_FIRST_LINE: [Self; 9] = [
        Self::CloudConfigArchive,
        Self::CloudConfigJsonp,
        Self::CloudConfig,
        Self::IncludeOnce,
        Self::Include,
        Self::Boothook,
        Self::PartHandler,
        Self::Jinja,
        Self::Script,
    ];

    /// Returns the kind of a text by its first line. Leading white space and case are ignored, as cloud-init does.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let start = text.trim_start_matches(is_python_whitespace);
        let start: String = start
            .chars()
            .take(PREFIX_CHARS)
            .flat_map(char::to_lowercase)
            .collect();
        Self::BY_FIRST_LINE
            .into_iter()
            .find(|kind| start.starts_with(kind.first_line()))
    }

    /// Returns the first line of this kind. A MIME archive starts with headers, of which this is one.
    pub(crate) fn first_line(self) -> &'static str {
        match self {
            Self::Mime => "MIME-Version:",
            Self::Jinja => "## template: jinja",
            Self::CloudConfig => "#cloud-config",
            Self::CloudConfigArchive => "#cloud-config-archive",
            Self::CloudConfigJsonp => "#cloud-config-jsonp",
            Self::Script => "#!",
            Self::Boothook => "#cloud-boothook",
            Self::Include => "#include",
            Self::IncludeOnce => "#include-once",
            Self::PartHandler => "#part-handler",
        }
    }

    /// Returns the MIME content type of a part of this kind, by which cloud-init selects the handler.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Mime => "multipart/mixed",
            Self::Jinja => "text/jinja2",
            Self::CloudConfig => "text/cloud-config",
            Self::CloudConfigArchive => "text/cloud-config-archive",
            Self::CloudConfigJsonp => "text/cloud-config-jsonp",
            Self::Script => "text/x-shellscript",
            Self::Boothook => "text/cloud-boothook",
            Self::Include => "text/x-include-url",
            Self::IncludeOnce => "text/x-include-once-url",
            Self::PartHandler => "text/part-handler",
        }
    }

    /// Returns whether the handler requires the first line exactly and at the start, although cloud-init recognizes it by less.
    pub(crate) fn needs_exact_first_line(self) -> bool {
        match self {
            Self::Jinja | Self::Script | Self::Boothook | Self::CloudConfigJsonp => true,
            Self::Mime
            | Self::CloudConfig
            | Self::CloudConfigArchive
            | Self::Include
            | Self::IncludeOnce
            | Self::PartHandler => false,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mime => "MIME archive",
            Self::Jinja => "jinja template",
            Self::CloudConfig => "cloud-config",
            Self::CloudConfigArchive => "cloud-config-archive",
            Self::CloudConfigJsonp => "cloud-config-jsonp",
            Self::Script => "script",
            Self::Boothook => "boothook",
            Self::Include => "include",
            Self::IncludeOnce => "include-once",
            Self::PartHandler => "part-handler",
        })
    }
}

/// Returns whether Python, in which cloud-init is written, treats a character as white space.
fn is_python_whitespace(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}
