//! The region's mapping file, with the mistakes of the operator who edits it.

use std::{collections::BTreeSet, fmt::Write as _};

use crate::{constants, fixtures::Fixtures};

/// An entry of the mapping file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Entry {
    /// A flavor.
    Flavor(&'static str),
    /// An image.
    Image(&'static str),
    /// The security group of a network, by the network's index.
    Group(usize),
    /// A network, by its index.
    Network(usize),
}

impl Entry {
    /// Every entry.
    pub const ALL: [Self; 11] = [
        Self::Flavor("small"),
        Self::Flavor("large"),
        Self::Flavor("gpu"),
        Self::Image("debian"),
        Self::Image("rocky"),
        Self::Group(0),
        Self::Group(1),
        Self::Group(2),
        Self::Network(0),
        Self::Network(1),
        Self::Network(2),
    ];
}

/// The content of the mapping file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MappingFile {
    /// Entries that are missing.
    pub missing: BTreeSet<Entry>,
    /// Entries with another native name than before.
    pub renamed: BTreeSet<Entry>,
    /// Whether it is half written.
    pub broken: bool,
}

/// The end of a native name that an operator has changed.
const NEW_NAME: &str = "-v2";

/// Returns the name in the catalog of a native type or image, whichever mapping it comes from.
pub fn catalog_name(native: &str) -> &str {
    native.strip_suffix(NEW_NAME).unwrap_or(native)
}

impl MappingFile {
    /// Returns whether an entry is in the file.
    pub fn has(&self, entry: Entry) -> bool {
        !self.broken && !self.missing.contains(&entry)
    }

    /// Returns the text of the file. The second network is in the second zone.
    pub fn text(&self, fixtures: &Fixtures) -> String {
        let mut text = format!(
            "region = \"{}\"\nprovider = \"memory\"\n[flavors]\n",
            constants::region()
        );
        self.native_names(&mut text, |entry| match entry {
            Entry::Flavor(name) => Some(name),
            Entry::Image(_) | Entry::Group(_) | Entry::Network(_) => None,
        });
        text.push_str("[images]\n");
        self.native_names(&mut text, |entry| match entry {
            Entry::Image(name) => Some(name),
            Entry::Flavor(_) | Entry::Group(_) | Entry::Network(_) => None,
        });
        for (index, network) in fixtures.networks.iter().enumerate() {
            if self.missing.contains(&Entry::Network(index)) {
                continue;
            }
            let zone = if index == 1 { "mem-b" } else { "mem-a" };
            let end = self.end_of(Entry::Network(index));
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "[networks.\"{network}\"]\nsubnet = \"net-{index}{end}\"\nzone = \"{zone}\""
            );
        }
        text.push_str("[security-groups]\n");
        for (index, group) in fixtures.groups.iter().enumerate() {
            if !self.missing.contains(&Entry::Group(index)) {
                let end = self.end_of(Entry::Group(index));
                let _ = writeln!(text, "\"{group}\" = \"sg-{index}{end}\"");
            }
        }
        if self.broken {
            text.push_str("[images");
        }
        text
    }

    fn native_names(&self, text: &mut String, name_of: impl Fn(Entry) -> Option<&'static str>) {
        let all = Entry::ALL.into_iter();
        for entry in all.filter(|entry| !self.missing.contains(entry)) {
            if let Some(name) = name_of(entry) {
                let end = self.end_of(entry);
                let _ = writeln!(text, "{name} = \"{name}{end}\"");
            }
        }
    }

    fn end_of(&self, entry: Entry) -> &'static str {
        if self.renamed.contains(&entry) {
            NEW_NAME
        } else {
            ""
        }
    }
}
