//! The hidden server: what an owner's machine is asked to be, and what became of it.
//!
//! Owns the record, the service through which it is asked for and read, and the projection that others see. It never calls a
//! cloud: the [controller](crate::controller) makes true what is asked for, the [monitor](crate::monitor) writes what is
//! seen.

mod apply;
mod ask;
mod error;
mod foresee;
mod ground;
mod id;
mod list;
mod machine;
mod make;
mod note;
mod record;
mod schema;
mod service;
mod spec;
mod status;
#[cfg(test)]
mod tests;

pub use ask::{Consent, MAX_SECURITY_GROUPS, MAX_USER_DATA_BYTES, NewServer, Wish};
pub use error::ServerError;
pub use ground::{Anywhere, Ground, GroundError, Site, TenantGround};
pub use id::{Owner, ServerId};
pub use list::{ListServers, ServerPage};
pub use machine::{
    Act, Acted, Booted, CloudInstance, Doubt, Drift, Ending, Launch, Observed, Presence, Why,
};
#[cfg(test)]
pub(crate) use make::made;
pub use note::{Condition, ConditionKind, Event, EventKind, Writer};
pub use record::{EVENTS_KEPT, Intent, Power, Retry, Server};
pub(crate) use schema::add_to_schema;
pub use schema::{INSTANCE_INDEX, OWNER_INDEX, PROJECT_INDEX, REGION_INDEX};
pub use service::Servers;
pub use spec::{Field, Plan, ServerSpec, Way};
pub use status::{Health, Phase, ServerView};
