//! The protocol of Azure Resource Manager: paths, queries, JSON documents, and headers.
//!
//! Owns the translation between HTTP and typed values. It must never read the state of the
//! engine: a request is parsed with the [`Knobs`](super::knobs::Knobs) alone, so a refusal from
//! here has no effect.
//!
//! | file | purpose |
//! | --- | --- |
//! | `operation`, `route` | the operations; their methods and paths |
//! | `not_emulated` | the refusal of operations that the emulator does not have |
//! | `id` | resource ids |
//! | `request` | a parsed request |
//! | `body`, `vm_body` | the documents that requests carry |
//! | `schema`, `members`, `document_members` | the members that Azure's models have beyond those |
//! | `response` | the response of a successful call |

pub(crate) mod body;
pub(crate) mod document_members;
pub(crate) mod id;
pub(crate) mod members;
mod not_emulated;
pub(crate) mod operation;
pub(crate) mod request;
pub(crate) mod response;
pub(crate) mod route;
pub(crate) mod schema;
pub(crate) mod vm_body;
