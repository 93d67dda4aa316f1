//! The shape of user data in YAML and JSON, as far as it can be seen for sure.
//!
//! Reads events and builds nothing, so that nothing grows with what is referred to. What cloud-init makes of the settings is its own.

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
    for (key, shape) in outline.settings {
        let list = LISTS.into_iter().find(|list| *list == key);
        match (list, shape, mode) {
            (Some(key), Shape::Nothing | Shape::Scalar | Shape::Mapping, Mode::Merged) => {
                return Err(BadUserData::NotAppendable { key });
            }
            (_, _, Mode::Alone) | (None, _, _) | (_, Shape::List | Shape::Unknown, _) => {}
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

/// A document from above: what it is, and the settings at its top.
struct Outline {
    root: Shape,
    settings: Vec<(String, Shape)>,
}

impl Outline {
    fn read(text: &str, sort: Sort) -> Result<Self, BadUserData> {
        let mut outline = Self {
            root: Shape::Nothing,
            settings: Vec::new(),
        };
        let (mut documents, mut depth) = (0_usize, 0_usize);
        // The key at the top whose value comes next; a key that is no word has no name.
        let mut key: Option<Option<String>> = None;
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
                    (Some(named), _) => {
                        let named = named.into_iter().map(|name| (name, shape));
                        outline.settings.extend(named);
                    }
                    (None, Event::Scalar(name, ..)) => key = Some(Some(name.into_owned())),
                    (None, _) => key = Some(None),
                },
                (_, _) => {}
            }
            depth += usize::from(shape.is_open());
        }
        // Of a key that is there twice, the last one counts.
        let all = std::mem::take(&mut outline.settings);
        for (name, shape) in all {
            outline.settings.retain(|(other, _)| *other != name);
            outline.settings.push((name, shape));
        }
        Ok(outline)
    }
}
