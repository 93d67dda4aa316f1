//! What every backend on a cloud needs and no caller does: error classification, consistent reads, recent launches, batches and launch tokens.

pub mod launch;
pub mod poll;
