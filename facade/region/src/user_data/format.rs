//! The formats of cloud-init, told apart as it tells them apart.

use std::fmt;

/// How many characters of the beginning are looked at: more than any first line has.
const LOOKED_AT: usize = 32;

/// What user data are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Nothing.
    Empty,
    /// Something as it is.
    Plain(Sort),
    /// Something that is compressed by gzip.
    Gzip(Sort),
}

/// What cloud-init does with user data, or with a part of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sort {
    /// A MIME archive of parts.
    Mime,
    /// A template that makes one of the others.
    Jinja,
    /// Settings in YAML.
    CloudConfig,
    /// Parts in YAML.
    CloudConfigArchive,
    /// Changes of settings, in JSON.
    CloudConfigJsonp,
    /// A program that runs once, late.
    Script,
    /// A program that runs at each boot, early.
    Boothook,
    /// Addresses that others are fetched from.
    Include,
    /// The same, fetched once.
    IncludeOnce,
    /// A program in Python that handles parts.
    PartHandler,
}

impl Sort {
    /// Those that are told by their first line, those first that begin like another one.
    const TOLD: [Self; 9] = [
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

    /// What a text is by its beginning: blanks before it do not count, nor does case.
    pub(super) fn of(text: &str) -> Option<Self> {
        let begin = text.trim_start_matches(is_blank);
        let begin: String = begin
            .chars()
            .take(LOOKED_AT)
            .flat_map(char::to_lowercase)
            .collect();
        Self::TOLD
            .into_iter()
            .find(|sort| begin.starts_with(sort.first_line()))
    }

    /// What it begins with. An archive begins with its headers, of which this is one.
    pub(super) fn first_line(self) -> &'static str {
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

    /// The type of a part of this sort, which cloud-init handles it by.
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

    /// Whether whatever handles it takes its first line as it is written and nowhere else, though cloud-init recognises it by less.
    pub(super) fn is_exact(self) -> bool {
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

impl fmt::Display for Sort {
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

/// What cloud-init, which is written in Python, takes for a blank.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}
