//! Fixtures that the tests of several modules share.

mod contended_store;

use std::{
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use fleetwright_identity::{
    Actor, ActorName, Binding, OrganizationId, Principal, ProjectId, RoleName, Roles, Scope,
};
use fleetwright_runtime::entropy::{Entropy, EntropyError};
use fleetwright_store::{MemoryStore, Schema, Store};
use uuid::Uuid;

pub(crate) use contended_store::ContendedStore;

use crate::{
    catalog::{Architecture, Flavor, Image, Os, Visibility},
    ids::{FlavorId, ImageId},
};

pub(crate) fn flavor(id: &str) -> Flavor {
    let size = |text: &str| text.parse().unwrap();
    Flavor::new(
        FlavorId::new(id).unwrap(),
        NonZeroU32::new(4).unwrap(),
        size("16 GiB"),
        size("100 GB"),
        Architecture::X86_64,
    )
}

pub(crate) fn image(id: &str) -> Image {
    let os = Os::new("debian".to_owned(), "ubuntu".to_owned(), "24.04".to_owned());
    let size = "20 GiB".parse().unwrap();
    Image::new(
        ImageId::new(id).unwrap(),
        Architecture::X86_64,
        size,
        os,
        Visibility::Global,
    )
}

pub(crate) fn organization(number: u128) -> OrganizationId {
    OrganizationId::new(Uuid::from_u128(number))
}

pub(crate) fn project(number: u128) -> ProjectId {
    ProjectId::new(Uuid::from_u128(number))
}

/// Returns the principal of a user with one role in one scope.
pub(crate) fn user_with_role(role: &str, scope: Scope) -> Principal {
    let actor = Actor::User(ActorName::new(format!("{role}@example.com")).unwrap());
    let binding = Binding::new(RoleName::new(role).unwrap(), scope);
    Roles::built_in().principal(actor, &[binding]).unwrap()
}

/// A store with the kinds of the crate.
pub(crate) fn store() -> Arc<dyn Store> {
    let schema = crate::schema::add_kinds(Schema::builder());
    Arc::new(MemoryStore::new(schema.build().unwrap()))
}

/// Entropy that never repeats and is the same in every run.
#[derive(Debug, Default)]
pub(crate) struct CountingEntropy(AtomicU64);

impl Entropy for CountingEntropy {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), EntropyError> {
        for chunk in bytes.chunks_mut(16) {
            let number = self.0.fetch_add(1, Ordering::Relaxed);
            let uuid = Uuid::new_v5(&Uuid::NAMESPACE_OID, &number.to_be_bytes());
            chunk.copy_from_slice(&uuid.as_bytes()[..chunk.len()]);
        }
        Ok(())
    }
}

/// Entropy that always fails.
#[derive(Debug)]
pub(crate) struct FailingEntropy;

impl Entropy for FailingEntropy {
    fn fill(&self, _: &mut [u8]) -> Result<(), EntropyError> {
        Err(EntropyError::new("the source is empty"))
    }
}
