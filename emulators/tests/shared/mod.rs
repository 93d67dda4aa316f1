//! What the tests of every cloud share: a minimal HTTP client, faults, and the program.

pub(crate) mod faults;
pub(crate) mod http;
pub(crate) mod program;
