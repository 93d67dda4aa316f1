//! What Azure Resource Manager speaks: paths, queries, JSON documents, and headers that lead on.
//!
//! | file | purpose |
//! | --- | --- |
//! | `operation` | the operations, with their methods and paths |
//! | `id` | resource ids |
//! | `request` | a request that was understood, or refused before it counts |
//! | `body`, `vm_body` | the documents that requests carry |
//! | `answer` | what a call that succeeds is answered with |

pub(crate) mod body;
pub(crate) mod id;
pub(crate) mod operation;
pub(crate) mod request;
pub(crate) mod response;
pub(crate) mod vm_body;
