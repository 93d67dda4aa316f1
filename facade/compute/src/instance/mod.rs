//! The instance: what a tenant asks for, and what the tenant is told of it.
//!
//! Owns the record and what is derived from it. Who writes it is the service and the controller, each its own fields.

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
