//! The types of all kinds of records.
#![allow(dead_code, reason = "each test program uses a part of it")]

use fleetwright_compute::instance::Instance;
use fleetwright_facade_testkit::memory_store;
use fleetwright_identity::{Allocation, Organization, Project, RoleBinding};
use fleetwright_region::{
    account::RegionAccount,
    catalog::{Flavor, Image},
    monitor::RegionScan,
    network::{Network, SecurityGroup, SshAuthority},
    secret::ServerKey,
    server::Server,
};
use fleetwright_store::{Base, Damaged, Document, Record, RecordId, Revision, Table};
use serde_json::Value;

/// What the type of a kind does with a stored value.
pub(crate) struct Kind {
    /// Reads it and stores it as a new record: the form of this version.
    pub(crate) as_new: fn(&Value) -> Result<Value, Damaged>,
    /// Reads it and stores it again.
    pub(crate) again: fn(&Value) -> Result<Value, Damaged>,
}

impl Kind {
    fn of<T: Document>() -> Self {
        Self {
            as_new: |stored| {
                let read = read::<T>(stored)?;
                let base = Base::without_form(Revision(1));
                Ok(table::<T>()
                    .stored_form(&read.key, &base, &read.value)
                    .unwrap()
                    .into_value())
            },
            again: |stored| {
                let read = read::<T>(stored)?;
                Ok(table::<T>()
                    .stored_form(&read.key, &read.base(), &read.value)
                    .unwrap()
                    .into_value())
            },
        }
    }

    /// Returns the kind of this name, or `None` if its type is not public.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let kind = match name {
            "instance" => Self::of::<Instance>(),
            "server" => Self::of::<Server>(),
            "network" => Self::of::<Network>(),
            "security-group" => Self::of::<SecurityGroup>(),
            "ssh-authority" => Self::of::<SshAuthority>(),
            "server-key" => Self::of::<ServerKey>(),
            "flavor" => Self::of::<Flavor>(),
            "image" => Self::of::<Image>(),
            "region-account" => Self::of::<RegionAccount>(),
            "region-scan" => Self::of::<RegionScan>(),
            "allocation" => Self::of::<Allocation>(),
            "organization" => Self::of::<Organization>(),
            "project" => Self::of::<Project>(),
            "role-binding" => Self::of::<RoleBinding>(),
            "quota-account" | "audit-entry" | "audit-prune-date" => return None,
            other => panic!("there is no type of kind {other}"),
        };
        Some(kind)
    }
}

fn table<T: Document>() -> Table<T> {
    Table::new(memory_store()).unwrap()
}

fn read<T: Document>(stored: &Value) -> Result<fleetwright_store::Versioned<T>, Damaged> {
    Table::read(Record {
        id: RecordId::new(T::KIND, "a").unwrap(),
        revision: Revision(1),
        value: stored.clone().into(),
    })
}
