//! The shape of user data in YAML and JSON, as far as it can be seen for sure.
//!
//! Reads events and builds nothing, so that nothing grows with what is referred to. What cloud-init makes of the settings is its own.

use std::collections::BTreeMap;

use saphyr_parser::{Event, Parser};
use serde_json::{Map, Value};

use super::{BadUserData, Mode, Sort, managed::LISTS};

/// That a cloud-config is settings, or nothing; and that lists can be added to, if they will be.
pub(super) fn check_config(text: &str, mode: Mode) -> Result<(), BadUserData> {
    let outline = Outline::read(text, Sort::CloudConfig)?;
    match outline.root {
        Shape::Nothing | Shape::Mapping => {}
        Shape::Scalar | Shape::List | Shape::Unknown => return Err(BadUserData::NotMapping),
    }
    for (key, shape) in outline.lists {
        match (shape, mode) {
            (Shape::Nothing | Shape::Scalar | Shape::Mapping, Mode::Merged) => {
                return Err(BadUserData::NotAppendable { key });
            }
            (Shape::List | Shape::Unknown, _) | (_, Mode::Alone) => {}
        }
    }
    Ok(())
}

/// That an archive in YAML is a list, or nothing.
pub(super) fn check_archive(text: &str) -> Result<(), BadUserData> {
    match Outline::read(text, Sort::CloudConfigArchive)?.root {
        Shape::Nothing | Shape::List => Ok(()),
        Shape::Scalar | Shape::Mapping | Shape::Unknown => Err(BadUserData::NotList),
    }
}

/// That a patch is a list of operations.
pub(super) fn check_patch(text: &str) -> Result<(), BadUserData> {
    let patch = text.strip_prefix(Sort::CloudConfigJsonp.first_line());
    let patch = patch.ok_or(BadUserData::NotPatch)?;
    let read: Result<Vec<Map<String, Value>>, _> = serde_json::from_str(patch);
    match read {
        Ok(operations) if operations.iter().all(is_operation) => Ok(()),
        Ok(_) | Err(_) => Err(BadUserData::NotPatch),
    }
}

fn is_operation(operation: &Map<String, Value>) -> bool {
    ["op", "path"]
        .into_iter()
        .all(|member| operation.get(member).is_some_and(Value::is_string))
}

/// What a node is, without what is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Nothing,
    Scalar,
    List,
    Mapping,
    /// Something that stands elsewhere.
    Unknown,
}

impl Shape {
    /// Of the node that an event begins, if it begins one.
    fn of(event: &Event<'_>) -> Option<Self> {
        match event {
            Event::Scalar(value, style, _, tag) => {
                let plain = *style == saphyr_parser::ScalarStyle::Plain && tag.is_none();
                let null = matches!(&**value, "" | "~" | "null" | "Null" | "NULL");
                Some(if plain && null {
                    Self::Nothing
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

    fn is_open(self) -> bool {
        match self {
            Self::List | Self::Mapping => true,
            Self::Nothing | Self::Scalar | Self::Unknown => false,
        }
    }
}

/// A document from above: what it is, and what is at its top under the names that are added to.
struct Outline {
    root: Shape,
    lists: BTreeMap<&'static str, Shape>,
}

impl Outline {
    fn read(text: &str, sort: Sort) -> Result<Self, BadUserData> {
        let mut outline = Self {
            root: Shape::Nothing,
            lists: BTreeMap::new(),
        };
        let (mut documents, mut depth) = (0_usize, 0_usize);
        // The key at the top whose value comes next, and which of the lists it names.
        let mut key: Option<Option<&'static str>> = None;
        for event in Parser::new_from_str(text) {
            let (event, _) = event.map_err(|error| BadUserData::NotYaml {
                sort,
                line: error.marker().line(),
            })?;
            if matches!(event, Event::SequenceEnd | Event::MappingEnd) {
                depth = depth.saturating_sub(1);
                continue;
            }
            documents += usize::from(matches!(event, Event::DocumentStart(_)));
            if documents > 1 {
                return Err(BadUserData::ManyDocuments(sort));
            }
            let Some(shape) = Shape::of(&event) else {
                continue;
            };
            match (depth, outline.root) {
                (0, _) => outline.root = shape,
                (1, Shape::Mapping) => match (key.take(), event) {
                    // Of a key that is there twice, the last one counts.
                    (Some(named), _) => outline.lists.extend(named.map(|name| (name, shape))),
                    (None, Event::Scalar(name, ..)) => {
                        key = Some(LISTS.into_iter().find(|list| *list == name));
                    }
                    (None, _) => key = Some(None),
                },
                (_, _) => {}
            }
            depth += usize::from(shape.is_open());
        }
        Ok(outline)
    }
}
