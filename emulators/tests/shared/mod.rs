//! What the tests of every cloud need: a client in a few lines, and the program.

pub(crate) mod http;
pub(crate) mod program;
