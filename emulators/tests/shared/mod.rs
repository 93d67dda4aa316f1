//! What the tests of every cloud share: a minimal HTTP client, and the program.

pub(crate) mod http;
pub(crate) mod program;
