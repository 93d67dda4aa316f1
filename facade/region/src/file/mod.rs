//! Reading files that operators write, so that every problem of a file is reported at once with its position.
//!
//! Owns positions, messages and the types of values. It never interprets a value: that is left to the modules that own the
//! files, [`catalog`](crate::catalog) and [`mapping`](crate::mapping).

mod fields;
mod problem;
pub mod reader;
mod value;

pub use problem::{Problem, Problems};
pub(crate) use reader::{
    Fields, array, boolean, integer, one_of, parse_text, read_document, text, wrong_type,
};
