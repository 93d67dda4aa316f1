//! Deleting images: at the cloud first, then the record with its quota.

use std::{fmt::Debug, sync::Arc};

use async_trait::async_trait;
use fleetwright::{OptionalVerb, ProvisionError};
use fleetwright_identity::Ledger;
use fleetwright_runtime::{Action, clock::later};
use fleetwright_store::{Key, Query, StoreError, Transaction, Versioned};
use metrics::counter;

use super::Snapshots;
use crate::{
    catalog::{Image, ImageError, Origin},
    ids::ImageId,
    references::{ReferenceTarget, References},
};

/// Deletes images at the cloud of a region whose provisioner does not declare
/// [`delete_image`](fleetwright::InstanceProvisioner::delete_image). Every provider of this project declares it, and then no deleter is needed.
#[async_trait]
pub trait ImageDeleter: Debug + Send + Sync {
    /// Deletes an image with its data. One that does not exist is no error, because a call whose response was lost is repeated.
    ///
    /// # Errors
    ///
    /// The image may still exist. The call is repeated with growing delays.
    async fn delete_image(&self, image: &fleetwright::ImageId) -> Result<(), ProvisionError>;
}

impl Snapshots {
    /// Sets what deletes images at the cloud. Default: the region's provisioner, if it declares
    /// [`DeleteImage`](OptionalVerb::DeleteImage). Otherwise a deleted image stays there, and its record stays *deleting* and charged.
    #[must_use]
    pub fn with_deleter(mut self, deleter: Arc<dyn ImageDeleter>) -> Self {
        self.deleter = Some(deleter);
        self
    }

    /// Sets the ledger to which images are charged: that of [`MachineAccess`](crate::machine::MachineAccess::with_ledger).
    #[must_use]
    pub fn with_ledger(mut self, ledger: Ledger) -> Self {
        self.ledger = Some(ledger);
        self
    }

    /// Sets the references by which images are in use. Default: those of servers.
    #[must_use]
    pub fn with_references(mut self, references: &References) -> Self {
        self.references = references.to(ReferenceTarget::Image).collect();
        self
    }

    /// Deletes an image that nothing uses: at the cloud, and then its record. An image in use is kept until it is not.
    pub(super) async fn delete(&self, read: Versioned<Image>) -> Result<Action, ImageError> {
        let image = &read.value;
        let again = later(self.clock.now(), self.policy.max_backoff);
        if self.is_used(&image.id).await? {
            return Ok(Action::RequeueAt(again));
        }
        let native = match &image.origin {
            Origin::File => None,
            Origin::Snapshot { native, .. } => native.as_ref(),
        };
        if let Some(native) = native {
            let deleted = match &self.deleter {
                Some(deleter) => deleter.delete_image(native).await,
                None if self
                    .cloud
                    .capabilities()
                    .supports(OptionalVerb::DeleteImage) =>
                {
                    self.cloud.delete_image(native).await
                }
                None => {
                    tracing::warn!(image = %image.id, %native, "a deleted image stays at the cloud, because nothing deletes images in this region");
                    return Ok(Action::AwaitChange);
                }
            };
            if let Err(error) = deleted {
                return self.deletion_failed(&image.id, &error).await;
            }
        }
        self.remove(&read).await
    }

    /// Returns whether a server or an instance has the image.
    async fn is_used(&self, id: &ImageId) -> Result<bool, ImageError> {
        for reference in &self.references {
            let (kind, index) = reference.names()?;
            let query = Query::by(kind, index, id.as_str()).limit(1);
            let page = self.store.list(&query).await?;
            if !page.records.is_empty() || !page.damaged.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Removes the record and releases its quota, in a transaction that checks that nothing uses the image.
    async fn remove(&self, read: &Versioned<Image>) -> Result<Action, ImageError> {
        let mut transaction = self.images.remove(Transaction::new(), read);
        for reference in &self.references {
            transaction = transaction.check(reference.absent(read.value.id.as_str())?);
        }
        let removed = match (&self.ledger, read.value.owner()) {
            (Some(ledger), Some(owner)) => {
                let charged = self.images.id(&read.key);
                let build = || async {
                    let transaction = transaction.clone();
                    Ok::<_, ImageError>(ledger.release(transaction, &charged).await?)
                };
                ledger.commit(owner.organization, build).await
            }
            _ => self
                .store
                .commit(&transaction)
                .await
                .map_err(ImageError::from),
        };
        match removed {
            Ok(_) => {}
            // Another writer came first: read it again.
            Err(ImageError::Store(error)) if error.conflict().is_some() => {
                return Ok(Action::Requeue);
            }
            Err(error) => return Err(error),
        }
        let labels = [("region", self.label()), ("outcome", "deleted".to_owned())];
        counter!("fleetwright_region_snapshots_total", &labels).increment(1);
        self.catalog.refresh().await?;
        Ok(Action::AwaitChange)
    }

    async fn deletion_failed(
        &self,
        id: &ImageId,
        error: &ProvisionError,
    ) -> Result<Action, ImageError> {
        tracing::warn!(image = %id, %error, "an image was not deleted at the cloud; it is retried");
        let Some(read) = self.images.get(&Key::new(id.as_str())?).await? else {
            return Ok(Action::AwaitChange);
        };
        let mut image = read.value.clone();
        let Some(snapshot) = &mut image.snapshot else {
            return Ok(Action::AwaitChange);
        };
        snapshot.failures = snapshot.failures.saturating_add(1);
        snapshot.last_error = Some(error.message().to_owned());
        let requested = error.retry().delay().unwrap_or_default();
        let delay = self.policy.backoff(id, snapshot.failures).max(requested);
        let not_before = later(self.clock.now(), delay);
        snapshot.not_before = Some(not_before);
        let written = self.images.replace(Transaction::new(), &read, &image)?;
        match self.store.commit(&written).await {
            Ok(_) => Ok(Action::RequeueAt(not_before)),
            Err(error) if StoreError::conflict(&error).is_some() => Ok(Action::Requeue),
            Err(error) => Err(error.into()),
        }
    }
}
