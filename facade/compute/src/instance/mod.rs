//! The instance: its desired state, its observed status, its conditions and its events.
//!
//! Owns the record and what is derived from it. It never reads or writes a store: the service and the controller do, each its own
//! fields.

mod id;
mod note;
mod record;
mod spec;
mod status;

pub use id::InstanceId;
pub use note::{Condition, ConditionKind, Event, EventKind};
pub use record::{DeletionCause, DeletionMark, EVENTS_KEPT, Instance, Modification};
pub use spec::{InstanceSpec, Networking};
pub use status::{PendingAction, Provisioning, ServerLink, Status};
