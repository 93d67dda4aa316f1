#![doc = include_str!("../README.md")]
//!
//! ## Where to start
//!
//! | task | start with |
//! | --- | --- |
//! | create organizations, projects and role bindings | [`Tenancy`], [`NewOrganization`], [`NewProject`], [`NewRoleBinding`] |
//! | return the principal of an authenticated user | [`Tenancy::principal`] |
//! | record and read who did what | [`AuditLog`], [`AuditEvent`], [`AuditQuery`], [`AuditRetention`] |
//! | create a principal from roles and bindings | [`Roles`], [`Role`], [`Binding`] |
//! | check a permission | [`Principal::authorize`], [`Principal::access`] |
//! | charge quota in a transaction | [`Ledger`], [`Allocation`], [`Amounts`] |
//! | define quota kinds and limits | [`QuotaKinds`], [`Defaults`], [`Limits`] |
//! | open a store | [`schema()`] |

mod account;
mod amount;
mod audit;
mod builtin;
mod id;
mod kind;
mod ledger;
mod name;
mod page;
mod permission;
mod principal;
mod role;
mod schema;
mod scope;
mod tenancy;

pub use account::Account;
pub use amount::{Amounts, Limits};
pub use audit::{
    AuditEntry, AuditError, AuditEvent, AuditLog, AuditOutcome, AuditQuery, AuditRetention,
    MIN_RETENTION,
};
pub use id::{Actor, OrganizationId, ProjectId};
pub use kind::{Defaults, QuotaKinds, UnknownKind};
pub use ledger::{
    Allocation, Audit, Difference, Exceeded, Ledger, LedgerError, Quota, QuotaLine, Recharge,
};
pub use name::{ActorName, InvalidName, QuotaKind, RoleName, TenantName};
pub use page::{ListPage, MAX_LIST_PAGE, PageRequest};
pub use permission::{NoSuchPermission, Permission, Resource, Verb};
pub use principal::{Access, Grant, GrantedScopes, Principal, Refused};
pub use role::{Binding, InvalidRole, Role, Roles};
pub use schema::schema;
pub use scope::{Level, Scope};
pub use tenancy::{
    Content, NewOrganization, NewProject, NewRoleBinding, Organization, Project, Remaining,
    ResolvedPrincipal, RoleBinding, RoleBindingId, ScopeClosed, Tenancy, TenancyError, TenantState,
};
