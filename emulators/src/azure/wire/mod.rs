//! The protocol of Azure Resource Manager: paths, queries, JSON documents, and headers.
//!
//! Owns the translation between HTTP and typed values. It must never read the state of the
//! engine: a request is parsed with the [`Knobs`](super::knobs::Knobs) alone, so a refusal from
//! here has no effect.
//!
//! | file | purpose |
//! | --- | --- |
//! | `operation` | the operations, with their methods and paths |
//! | `id` | resource ids |
//! | `request` | a parsed request |
//! | `body`, `vm_body` | the documents that requests carry |
//! | `response` | the response of a successful call |

pub(crate) mod body;
pub(crate) mod id;
pub(crate) mod operation;
pub(crate) mod request;
pub(crate) mod response;
pub(crate) mod vm_body;
