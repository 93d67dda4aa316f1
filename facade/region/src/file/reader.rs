//! The reader of checked files, for programs that have a file of their own.
//!
//! Each field is read once, by name and with a function that returns its value or what is wrong with it. Reading continues after a
//! mistake, so that all of them are reported, and fields that were not read are reported as unknown.
//!
//! ```
//! use fleetwright_region::file::reader::{boolean, read_document, text};
//!
//! let read = |file: &str| {
//!     read_document(file, |fields| {
//!         let name = fields.required("name", text);
//!         let quiet = fields.optional("quiet", boolean);
//!         (name, quiet)
//!     })
//! };
//! assert_eq!(read("name = 'web'")?, (Some("web".to_owned()), None));
//!
//! let problems = read("nam = 'web'\nquiet = 1").unwrap_err();
//! let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
//! assert_eq!(lines[0], "line 1, column 1: \"nam\" is unknown: expected name, quiet; did you mean name?");
//! assert_eq!(problems.count(), 3);
//! # Ok::<(), fleetwright_region::file::Problems>(())
//! ```

pub use super::{
    fields::{Fields, read_document},
    value::{Message, Value, array, boolean, integer, one_of, parse_text, text, wrong_type},
};
