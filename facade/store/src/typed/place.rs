//! Parsing a value with the place at which it failed.
//!
//! Owns a deserializer that does what the one of `serde_json` does and notes where in the value it
//! is. It is used for values that failed to parse, which is rare.

use std::cell::{Cell, RefCell};

use serde::{
    Deserialize, Deserializer,
    de::{
        DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor, value::BorrowedStrDeserializer,
    },
    forward_to_deserialize_any,
};
use serde_json::{Error, Map, Value};

/// Where parsing failed.
#[derive(Debug)]
pub(super) struct Failure {
    /// The names and positions that lead to the value.
    pub(super) path: Vec<Step>,
    /// The variants that could have been there, if the value is an enum.
    pub(super) variants: &'static [&'static str],
    /// The reason.
    pub(super) error: Error,
}

/// A step on the way to a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A member of an object.
    Member(String),
    /// An item of an array.
    Item(usize),
}

/// Parses a value.
///
/// # Errors
///
/// The first place that does not match the type.
pub(super) fn parse<T: for<'de> Deserialize<'de>>(value: &Value) -> Result<T, Failure> {
    let place = Place::default();
    let located = Located {
        value,
        place: &place,
    };
    T::deserialize(located).map_err(|error| Failure {
        path: place.path.take(),
        variants: place.variants.get(),
        error,
    })
}

/// The place of the value that is being parsed. After a failure it stays where it is.
#[derive(Default)]
struct Place {
    path: RefCell<Vec<Step>>,
    variants: Cell<&'static [&'static str]>,
}

impl Place {
    fn within<T>(&self, step: Step, parse: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        self.path.borrow_mut().push(step);
        self.variants.set(&[]);
        let value = parse()?;
        self.path.borrow_mut().pop();
        self.variants.set(&[]);
        Ok(value)
    }
}

/// A value with its place.
#[derive(Clone, Copy)]
struct Located<'de, 'p> {
    value: &'de Value,
    place: &'p Place,
}

impl<'de, 'p> Located<'de, 'p> {
    fn at(self, value: &'de Value) -> Self {
        Self { value, ..self }
    }

    fn items<V: Visitor<'de>>(self, items: &'de [Value], visitor: V) -> Result<V::Value, Error> {
        visitor.visit_seq(Items {
            items: items.iter().enumerate(),
            of: self,
        })
    }

    fn members<V: Visitor<'de>>(
        self,
        members: &'de Map<String, Value>,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_map(Members {
            members: members.iter(),
            next: None,
            of: self,
        })
    }
}

impl<'de> Deserializer<'de> for Located<'de, '_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::Array(items) => self.items(items, visitor),
            Value::Object(members) => self.members(members, visitor),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                self.value.deserialize_any(visitor)
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.value.is_null() {
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.place.variants.set(variants);
        // A variant that is an object has one member. What is inside it has the place of the enum.
        self.value.deserialize_enum(name, variants, visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

/// The items of an array.
struct Items<'de, 'p> {
    items: std::iter::Enumerate<std::slice::Iter<'de, Value>>,
    of: Located<'de, 'p>,
}

impl<'de> SeqAccess<'de> for Items<'de, '_> {
    type Error = Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        let Some((at, item)) = self.items.next() else {
            return Ok(None);
        };
        let parse = || seed.deserialize(self.of.at(item));
        self.of.place.within(Step::Item(at), parse).map(Some)
    }
}

/// The members of an object.
struct Members<'de, 'p> {
    members: serde_json::map::Iter<'de>,
    next: Option<(&'de String, &'de Value)>,
    of: Located<'de, 'p>,
}

impl<'de> MapAccess<'de> for Members<'de, '_> {
    type Error = Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        self.next = self.members.next();
        let Some((name, _)) = self.next else {
            return Ok(None);
        };
        let step = Step::Member(name.clone());
        let parse = || seed.deserialize(BorrowedStrDeserializer::new(name));
        self.of.place.within(step, parse).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        let Some((name, value)) = self.next.take() else {
            return Err(Error::custom("a value was taken without its name"));
        };
        let parse = || seed.deserialize(self.of.at(value));
        self.of.place.within(Step::Member(name.clone()), parse)
    }
}
