#![doc = include_str!("../README.md")]

mod builtin;
mod id;
mod permission;
mod principal;
mod role;
mod scope;

pub use id::{Actor, ActorName, InvalidName, OrganizationId, ProjectId};
pub use permission::{NoSuchPermission, Permission, Resource, Verb};
pub use principal::{Grant, Judgement, Principal, Reach, Refused};
pub use role::{Binding, InvalidRole, Role, RoleName, Roles};
pub use scope::{Level, Scope};
