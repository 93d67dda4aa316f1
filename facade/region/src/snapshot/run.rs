//! Who is woken when: by the store's watch with a key and no data, and by the clock.

use fleetwright_store::{Commit, IndexName, IndexValue, Interest, Scalar, StoreError, Watch};
use metrics::{counter, gauge};
use tokio::time::Instant;

use super::Snapshots;
use crate::{
    catalog::{ImageError, ImageState},
    ids::ImageId,
    queue::{self, Next, Queue},
    schema::BY_MAKING,
};

impl Snapshots {
    /// Works until it is dropped.
    pub async fn run(&self) {
        let woken = queue::wakes(
            "images that are being made",
            || self.unfinished(),
            |commit| self.concerned(commit),
        );
        let pass = |id: ImageId| async move { self.reconcile(&id).await };
        let ended = |queue: &mut Queue<_>, id, answer| self.ended(queue, &id, answer);
        let shown = |waiting| {
            gauge!("fleetwright_region_snapshots_waiting", "region" => self.label()).set(waiting);
        };
        queue::work(self.rules.concurrency, woken, pass, ended, shown).await;
    }

    /// One pass over every image of the region that is not at its end, each as far as it goes now. The others are done
    /// even if one fails; the first failure is answered.
    pub async fn pass(&self) -> Result<(), ImageError> {
        let (ids, _) = self.unfinished().await?;
        let mut failed = None;
        for id in ids {
            loop {
                match self.reconcile(&id).await {
                    Ok(Next::Again) => {}
                    Ok(Next::At(_) | Next::Idle) => break,
                    Err(error) => {
                        failed = failed.or(Some(error));
                        break;
                    }
                }
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// The images of the region that a commit is about.
    fn concerned(&self, commit: &Commit) -> Vec<ImageId> {
        let ids = commit.changes.iter().filter_map(|change| {
            let record = change.record();
            let region = record.value.pointer("/origin/made/region")?.as_str()?;
            let ours = region == self.region.as_str();
            ours.then(|| record.id.key.as_str().parse().ok())?
        });
        ids.collect()
    }

    fn ended(&self, queue: &mut Queue<ImageId>, id: &ImageId, answer: Result<Next, ImageError>) {
        let failures = queue.ended(id, answer.is_err());
        match answer {
            Ok(Next::Again) => queue.wake(id),
            Ok(Next::At(date)) => {
                queue.wake_at(id, queue::instant(self.clock.now(), date));
            }
            Ok(Next::Idle) => queue.rest(id),
            Err(error) => {
                counter!("fleetwright_region_store_failures_total", "region" => self.label())
                    .increment(1);
                tracing::warn!(image = %id, %error, "a pass over an image failed; it is made again");
                let delay = self.rules.backoff(id, failures);
                queue.wake_at(id, Instant::now() + delay);
            }
        }
    }

    /// The images of the region that are not at their end, and a watch from there. What is at its end costs nothing.
    async fn unfinished(&self) -> Result<(Vec<ImageId>, Watch), StoreError> {
        let index = IndexName::new(BY_MAKING)?;
        let mut ids = Vec::new();
        let mut from = None;
        for state in [ImageState::Pending, ImageState::Creating] {
            let parts = [self.region.as_str(), state.as_str()].map(Scalar::from);
            let query = self.images.by(&index, IndexValue(parts.into()));
            let page = self.images.list_all(&query).await?;
            for damaged in &page.damaged {
                counter!("fleetwright_region_unreadable_total", "region" => self.label())
                    .increment(1);
                tracing::warn!(record = %damaged.id, reason = %damaged.reason, "an image cannot be read");
            }
            // The first list's: what changes between the two is shown by the watch.
            from.get_or_insert(page.revision);
            ids.extend(page.items.into_iter().map(|found| found.value.id));
        }
        let interest = Interest::kinds([self.images.kind().clone()]);
        let watch = self.store.watch(from.unwrap_or_default(), interest);
        Ok((ids, watch.await?))
    }
}
