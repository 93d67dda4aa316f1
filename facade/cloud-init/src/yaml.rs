//! Checks the shape of user data in YAML and JSON, as far as it is certain.
//!
//! Reads parser events and builds no tree, so that aliases cannot make it grow. The meaning of the settings is left to cloud-init.

use std::collections::BTreeMap;

use saphyr_parser::{Event, Parser};
use serde_json::{Map, Value};

use crate::{Kind, Mode, UserDataError, managed::LISTS};

/// Checks that a cloud-config is a mapping or empty, and that its lists can be appended to if something will be.
///
/// # Errors
///
/// The text is not YAML, has several documents, is not a mapping, or, in [`Mode::Merged`], has a value that is not a list for a setting
/// that is appended to: cloud-init would keep that value and drop ours.
pub(crate) fn check_config(text: &str, mode: Mode) -> Result<(), UserDataError> {
    let outline = Outline::read(text, Kind::CloudConfig)?;
    match outline.root {
        Shape::Empty | Shape::Mapping => {}
        Shape::Scalar | Shape::List | Shape::Unknown => return Err(UserDataError::NotMapping),
    }
    for (key, shape) in outline.lists {
        match (shape, mode) {
            (Shape::Empty | Shape::Scalar | Shape::Mapping, Mode::Merged) => {
                return Err(UserDataError::NotAppendable { key });
            }
            (Shape::List | Shape::Unknown, _) | (_, Mode::Alone) => {}
        }
    }
    Ok(())
}

/// Checks that an archive in YAML is a list or empty. cloud-init drops any other shape.
pub(crate) fn check_archive(text: &str) -> Result<(), UserDataError> {
    match Outline::read(text, Kind::CloudConfigArchive)?.root {
        Shape::Empty | Shape::List => Ok(()),
        Shape::Scalar | Shape::Mapping | Shape::Unknown => Err(UserDataError::NotList),
    }
}

/// Checks that a JSON patch is a list of operations.
///
/// The operations themselves are not applied: whether their paths exist depends on the other parts.
pub(crate) fn check_patch(text: &str) -> Result<(), UserDataError> {
    let patch = text.strip_prefix(Kind::CloudConfigJsonp.first_line());
    let patch = patch.ok_or(UserDataError::NotPatch)?;
    let read: Result<Vec<Map<String, Value>>, _> = serde_json::from_str(patch);
    match read {
        Ok(operations) if operations.iter().all(is_operation) => Ok(()),
        Ok(_) | Err(_) => Err(UserDataError::NotPatch),
    }
}

/// Returns whether an object has the members that every operation of RFC 6902 needs.
fn is_operation(operation: &Map<String, Value>) -> bool {
    ["op", "path"]
        .into_iter()
        .all(|member| operation.get(member).is_some_and(Value::is_string))
}

/// The shape of a node, without its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// Null or nothing.
    Empty,
    /// Any other scalar.
    Scalar,
    /// A sequence.
    List,
    /// A mapping.
    Mapping,
    /// An alias of another node.
    Unknown,
}

impl Shape {
    /// Returns the shape of the node that an event starts, if it starts one.
    fn of(event: &Event<'_>) -> Option<Self> {
        match event {
            Event::Scalar(value, style, _, tag) => {
                let plain = *style == saphyr_parser::ScalarStyle::Plain && tag.is_none();
                let null = matches!(&**value, "" | "~" | "null" | "Null" | "NULL");
                Some(if plain && null {
                    Self::Empty
                } else {
                    Self::Scalar
                })
            }
            Event::SequenceStart(..) => Some(Self::List),
            Event::MappingStart(..) => Some(Self::Mapping),
            Event::Alias(_) => Some(Self::Unknown),
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd
            | Event::SequenceEnd
            | Event::MappingEnd => None,
        }
    }

    /// Returns whether events of child nodes follow.
    fn is_open(self) -> bool {
        match self {
            Self::List | Self::Mapping => true,
            Self::Empty | Self::Scalar | Self::Unknown => false,
        }
    }
}

/// The outline of a document: the shape of its root, and of the values of the settings that are appended to.
struct Outline {
    /// The shape of the root node.
    root: Shape,
    /// The shapes of the values of those [settings](LISTS) that the document has.
    lists: BTreeMap<&'static str, Shape>,
}

impl Outline {
    /// Reads the outline of a text with at most one document.
    ///
    /// # Errors
    ///
    /// The text is not YAML, with the line of the first problem, or has several documents.
    fn read(text: &str, kind: Kind) -> Result<Self, UserDataError> {
        let mut outline = Self {
            root: Shape::Empty,
            lists: BTreeMap::new(),
        };
        let (mut documents, mut depth) = (0_usize, 0_usize);
        // The top-level key whose value comes next, and which of the lists it names.
        let mut key: Option<Option<&'static str>> = None;
        for event in Parser::new_from_str(text) {
            let (event, _) = event.map_err(|error| UserDataError::NotYaml {
                kind,
                line: error.marker().line(),
            })?;
            if matches!(event, Event::SequenceEnd | Event::MappingEnd) {
                depth = depth.saturating_sub(1);
                continue;
            }
            documents += usize::from(matches!(event, Event::DocumentStart(_)));
            if documents > 1 {
                return Err(UserDataError::ManyDocuments(kind));
            }
            let Some(shape) = Shape::of(&event) else {
                continue;
            };
            match depth {
                0 => outline.root = shape,
                1 => match (key.take(), event) {
                    // Of duplicate keys the last one counts.
                    (Some(named), _) => outline.lists.extend(named.map(|name| (name, shape))),
                    (None, Event::Scalar(name, ..)) => {
                        key = Some(LISTS.into_iter().find(|list| *list == name));
                    }
                    (None, _) => key = Some(None),
                },
                _ => {}
            }
            depth += usize::from(shape.is_open());
        }
        Ok(outline)
    }
}
