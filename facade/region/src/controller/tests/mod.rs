//! Tests of the decision: the diagram of the module's documentation, and the promises for every shape of a record.

pub(super) mod arbitrary;
mod diagram;
