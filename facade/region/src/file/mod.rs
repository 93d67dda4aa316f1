//! Files that people write, read so that everything wrong with one is told at once, each with its place.
//!
//! Owns positions, messages and the forms of values. What the values mean is the business of whoever reads them.

mod fields;
mod problem;
mod value;

pub(crate) use fields::{Fields, read_document};
pub use problem::{Problem, Problems};
pub(crate) use value::{among, flag, found_instead, parsed, pieces, text, whole};
