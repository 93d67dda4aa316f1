#![doc = include_str!("../README.md")]
//!
//! ## Where to start
//!
//! | task | start with |
//! | --- | --- |
//! | create a principal from roles and bindings | [`Roles`], [`Role`], [`Binding`] |
//! | check a permission | [`Principal::authorize`], [`Principal::access`] |
//! | charge quota in a transaction | [`Ledger`], [`Allocation`], [`Amounts`] |
//! | define quota kinds and limits | [`QuotaKinds`], [`Defaults`], [`Limits`] |
//! | open a store | [`schema()`] |

mod account;
mod amount;
mod builtin;
mod id;
mod kind;
mod ledger;
mod name;
mod permission;
mod principal;
mod role;
mod schema;
mod scope;

pub use account::Account;
pub use amount::{Amounts, Limits};
pub use id::{Actor, OrganizationId, ProjectId};
pub use kind::{Defaults, QuotaKinds, UnknownKind};
pub use ledger::{
    Allocation, Audit, Difference, Exceeded, Ledger, LedgerError, Quota, QuotaLine, Recharge,
};
pub use name::{ActorName, InvalidName, QuotaKind, RoleName};
pub use permission::{NoSuchPermission, Permission, Resource, Verb};
pub use principal::{Access, Grant, GrantedScopes, Principal, Refused};
pub use role::{Binding, InvalidRole, Role, Roles};
pub use schema::schema;
pub use scope::{Level, Scope};
