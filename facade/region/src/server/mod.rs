//! Servers: the desired and the observed state of the machine behind an owner.
//!
//! Owns the record, the service that reads and changes it, and the summary that readers get. It never calls a cloud: the
//! [controller](crate::controller) applies the desired state, and the [monitor](crate::monitor) records the observed state.

mod apply;
mod audit;
mod create;
mod dependencies;
mod error;
mod events;
mod id;
mod launch_check;
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
    Booted, Drift, LastAction, Launch, Machine, MachineAction, Observed, Presence, RefusedChanges,
    RefusedValue, Termination, TerminationReason, TerminationResponse, UnconfirmedChange,
    UnconfirmedLaunch,
};
pub use record::{EVENTS_KEPT, Intent, Power, Retry, Server};
pub use request::{
    Consent, DesiredState, EnsuredServer, MAX_SECURITY_GROUPS, MAX_USER_DATA_BYTES, NewServer,
};
pub(crate) use schema::add_to_schema;
pub use schema::{MACHINE_INDEX, OWNER_INDEX, PROJECT_INDEX, REGION_INDEX};
pub use service::Servers;
pub use spec::{ChangeMethod, Field, Plan, ServerSpec};
pub use status::{Health, Phase, ServerView, is_from_the_future};
