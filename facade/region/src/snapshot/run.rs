//! The loop of the image controller.

use std::{sync::Arc, time::Duration};

use fleetwright_runtime::{Action, Runner, watch_keys};
use fleetwright_store::{Commit, IndexName, IndexValue, Interest, Scalar, StoreError, Watch};
use metrics::{counter, gauge};

use super::Snapshots;
use crate::{
    catalog::{ImageError, ImageState},
    ids::ImageId,
    schema::BY_SNAPSHOT_STATE,
};

impl Snapshots {
    /// Creates the region's images until the future is dropped.
    pub async fn run(&self) {
        let keys = watch_keys(
            "unfinished images",
            || self.unfinished(),
            |commit| self.keys_of(commit),
        );
        let error_policy =
            |id: &ImageId, error: &ImageError, failures| self.error_delay(id, error, failures);
        Runner::new(keys, Arc::clone(&self.clock))
            .concurrency(self.policy.concurrency)
            .on_queue_length(|length| {
                gauge!("fleetwright_region_snapshots_queued", "region" => self.label())
                    .set(length as f64);
            })
            .run(
                |id: ImageId| async move { self.reconcile(&id).await },
                error_policy,
            )
            .await;
    }

    /// Reconciles every unfinished image of the region once, as far as possible now. A failure does not stop the others; the first error
    /// is returned.
    pub async fn pass(&self) -> Result<(), ImageError> {
        let (ids, _) = self.unfinished().await?;
        let mut failed = None;
        for id in ids {
            loop {
                match self.reconcile(&id).await {
                    Ok(Action::Requeue) => {}
                    Ok(Action::RequeueAt(_) | Action::AwaitChange) => break,
                    Err(error) => {
                        failed = failed.or(Some(error));
                        break;
                    }
                }
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// Returns the images of the region that a commit changed.
    fn keys_of(&self, commit: &Commit) -> Vec<ImageId> {
        let ids = commit.changes.iter().filter_map(|change| {
            let record = change.record();
            let region = record.value.pointer("/origin/snapshot/region")?.as_str()?;
            let ours = region == self.region.as_str();
            ours.then(|| record.id.key.as_str().parse().ok())?
        });
        ids.collect()
    }

    /// Returns the delay before an image whose reconcile failed is reconciled again.
    fn error_delay(&self, id: &ImageId, error: &ImageError, failures: u32) -> Duration {
        counter!("fleetwright_region_store_failures_total", "region" => self.label()).increment(1);
        tracing::warn!(image = %id, %error, failures, "the reconcile of an image failed; it is retried");
        self.policy.backoff(id, failures)
    }

    /// Lists the unfinished images of the region, and watches from there. Finished images cost nothing.
    async fn unfinished(&self) -> Result<(Vec<ImageId>, Watch), StoreError> {
        let index = IndexName::new(BY_SNAPSHOT_STATE)?;
        let mut ids = Vec::new();
        let mut from = None;
        for state in [
            ImageState::Pending,
            ImageState::Creating,
            ImageState::Deleting,
        ] {
            let parts = [self.region.as_str(), state.as_str()].map(Scalar::from);
            let query = self.images.by(&index, IndexValue(parts.into()));
            let page = self.images.list_all(&query).await?;
            for damaged in &page.damaged {
                counter!("fleetwright_region_unreadable_total", "region" => self.label())
                    .increment(1);
                tracing::warn!(record = %damaged.id, reason = %damaged.reason, "an image cannot be read");
            }
            // From the first list on: the watch shows changes between the two lists.
            from.get_or_insert(page.revision);
            ids.extend(page.items.into_iter().map(|found| found.value.id));
        }
        let interest = Interest::kinds([self.images.kind().clone()]);
        let watch = self.store.watch(from.unwrap_or_default(), interest);
        Ok((ids, watch.await?))
    }
}
