//! The hidden server: what an owner's machine is asked to be, and what became of it.
//!
//! Owns the record, the service through which it is asked for and read, and the projection that others see. It never calls a
//! cloud: the [controller](crate::controller) makes true what is asked for, the [monitor](crate::monitor) writes what is
//! seen.

mod apply;
mod create;
mod dependencies;
mod error;
mod events;
mod id;
mod list;
mod machine;
mod record;
mod request;
mod schema;
mod service;
mod spec;
mod status;
#[cfg(test)]
mod tests;
mod user_data;

#[cfg(test)]
pub(crate) use create::new_record;
pub use dependencies::{
    DependencyChecker, DependencyError, NoDependencyCheck, ServerPlacement, TenantDependencies,
};
pub use error::ServerError;
pub use events::{Condition, ConditionKind, Event, EventKind, Writer};
pub use id::{Owner, ServerId};
pub use list::{ListServers, ServerPage};
pub use machine::{
    Booted, Drift, LastAction, Launch, Machine, MachineAction, Observed, Presence, Termination,
    TerminationReason, UnconfirmedChange,
};
pub use record::{EVENTS_KEPT, Intent, Power, Retry, Server};
pub use request::{Consent, DesiredState, MAX_SECURITY_GROUPS, MAX_USER_DATA_BYTES, NewServer};
pub(crate) use schema::add_to_schema;
pub use schema::{MACHINE_INDEX, OWNER_INDEX, PROJECT_INDEX, REGION_INDEX};
pub use service::Servers;
pub use spec::{ChangeMethod, Field, Plan, ServerSpec};
pub use status::{Health, Phase, ServerView};
