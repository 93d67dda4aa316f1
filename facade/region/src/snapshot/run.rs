//! Who is woken when: by the store's watch with a key and no data, and by the clock.

use std::{convert::Infallible, time::Duration};

use fleetwright_store::{IndexName, IndexValue, Interest, Scalar, StoreError, Watch};
use futures_util::{StreamExt as _, stream::FuturesUnordered};
use metrics::{counter, gauge};
use tokio::time::{Instant, sleep, sleep_until};

use super::Snapshots;
use crate::{
    catalog::{ImageError, ImageState},
    clock::between,
    controller::{Next, queue::Queue},
    ids::ImageId,
    schema::BY_MAKING,
};

/// How long a store that failed is left alone.
const AGAIN: Duration = Duration::from_secs(2);
/// The least time that passes before an image is looked at again that is not due yet.
const TURN: Duration = Duration::from_millis(1);
/// The longest time without looking at an image that waits.
const FAR: Duration = Duration::from_secs(3600);

impl Snapshots {
    /// Works until it is dropped.
    pub async fn run(&self) {
        loop {
            let error = match self.work().await {
                Ok(never) => match never {},
                Err(error) => error,
            };
            counter!("fleetwright_region_store_failures_total", "region" => self.label())
                .increment(1);
            tracing::warn!(%error, "images that are being made cannot be followed; they are listed again");
            sleep(AGAIN).await;
        }
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

    /// Works until the store's watch fails.
    async fn work(&self) -> Result<Infallible, StoreError> {
        let mut queue = Queue::default();
        let (ids, mut watch) = self.unfinished().await?;
        ids.iter().for_each(|id| queue.wake(id));
        let mut working = FuturesUnordered::new();
        loop {
            while working.len() < self.rules.concurrency.get() {
                let Some(id) = queue.take(Instant::now()) else {
                    break;
                };
                working.push(async move {
                    let answer = self.reconcile(&id).await;
                    (id, answer)
                });
            }
            gauge!("fleetwright_region_snapshots_working", "region" => self.label())
                .set(f64::from(u32::try_from(working.len()).unwrap_or(u32::MAX)));
            let due = queue.next_due();
            let room = working.len() < self.rules.concurrency.get();
            tokio::select! {
                biased;
                commit = watch.next() => {
                    for change in commit?.changes {
                        let record = change.record();
                        let region = record.value.pointer("/origin/made/region");
                        let is_ours = region.and_then(|region| region.as_str()) == Some(self.region.as_str());
                        if let (true, Ok(id)) = (is_ours, record.id.key.as_str().parse()) {
                            queue.wake(&id);
                        }
                    }
                }
                Some((id, answer)) = working.next() => self.ended(&mut queue, &id, answer),
                () = until(due), if room => {}
            }
        }
    }

    fn ended(&self, queue: &mut Queue<ImageId>, id: &ImageId, answer: Result<Next, ImageError>) {
        let failures = queue.ended(id, answer.is_err());
        match answer {
            Ok(Next::Again) => queue.wake(id),
            Ok(Next::At(date)) => {
                let delay = between(self.clock.now(), date).clamp(TURN, FAR);
                queue.wake_at(id, Instant::now() + delay);
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

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}
