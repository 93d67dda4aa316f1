//! One of several launches of a token.
//!
//! Owns which of them stays if handles launched with one token in different zones or offerings at the same moment. A call
//! terminates only what it has launched itself.
//!
//! The older launch stays, because its call may have returned before the younger one was sent. EC2's clock has seconds, so
//! launches of one second have no order in time. Of those, the ones with lower ids yield at once to the highest. The highest
//! stays if it sees that they have, and yields itself otherwise: then another one has returned without having seen it.
//!
//! So that not both end, the highest waits for longer than the others take. They decide within [`DECISION_TIME`] after the usual
//! lag, and a termination shows after at most as long again; one that decides later waits for longer than the highest.

use std::time::Duration;

use aws_sdk_ec2::types::Instance;
use fleetwright::{CloudInstanceState, InstanceId, InstanceInfo, Result};
use fleetwright_provider_support::{Change, ChangeInstances as _, read_until, read_within};
use futures_util::future::BoxFuture;
use tokio::time::Instant;

use crate::{
    Ec2Provisioner,
    by_token::Launch,
    launch::{Requested, created},
    read::infos as read_infos,
};

/// How long a launch that must yield may take to decide it, beside the usual lag of reads, and how long its termination may take.
const DECISION_TIME: Duration = Duration::from_secs(2);

/// How often a wait reads again because its last read took so long that it may show the past.
const LATE_READS: u32 = 2;

/// What the token's launches were, or why they could not be read, and when that read began.
type Observed = (Result<(Vec<Launch>, bool)>, Instant);

impl Ec2Provisioner {
    /// Returns the launch that this call made with a request at `sent`, unless the token has an older one that is alive.
    /// Then what this call launched is terminated, and the older launch is the result.
    ///
    /// A failed look-up changes nothing: the launch has succeeded.
    ///
    /// # Errors
    ///
    /// "Spent" if EC2 returned the ended instances of an earlier launch, a token conflict if the older
    /// launch has another config, and the error of a failed termination with the launch as survivors.
    pub(crate) async fn keep_one_launch(
        &self,
        requested: Requested<'_>,
        natives: Vec<Instance>,
        sent: Instant,
    ) -> Result<Vec<InstanceInfo>> {
        let call = requested.call;
        let infos = created(call, &natives)?;
        self.check_alive(requested, &infos)?;
        // EC2 returns an earlier launch for a replay that reads did not show. That one is not ours to end.
        let is_new = |info: &InstanceInfo| info.state == CloudInstanceState::Pending;
        let Some(ours) = Launch::new(natives).filter(|_| infos.iter().all(is_new)) else {
            return Ok(infos);
        };
        let Ok(Some(older)) = self.older_launch(requested, &ours, sent).await else {
            return Ok(infos);
        };
        let window = self.capabilities.consistency_window;
        self.recent_launches.record(&infos, window);
        let ids: Vec<InstanceId> = infos.iter().map(|info| info.id.clone()).collect();
        let ended = self.change_all(call.operation(), Change::Terminate, &ids);
        if let Some(error) = ended.await.into_iter().find_map(Result::err) {
            return Err(error.with_survivors(infos));
        }
        requested.check(&older)?;
        read_infos(call, &older.instances)
    }

    /// Returns another live launch of the token to which `ours` must yield; see the [module](self).
    ///
    /// Other handles may have chosen another zone, by their options or by their config, or another offering. So
    /// the token is read until `ours` shows, for the usual lag, because a read that shows it also shows what is older.
    async fn older_launch(
        &self,
        requested: Requested<'_>,
        ours: &Launch,
        sent: Instant,
    ) -> Result<Option<Launch>> {
        let read = || -> BoxFuture<'_, _> { Box::pin(self.find_launches(requested)) };
        let shows_ours = |found: &(Vec<Launch>, bool)| found.0.iter().any(|one| one.is_same(ours));
        let (launches, _) = read_until(&self.capabilities, read, shows_ours).await?;
        let (our_time, our_id) = ours.age();
        // The oldest first.
        let others = launches.into_iter().filter(|other| !other.is_same(ours));
        let mut others: Vec<_> = others.filter(Launch::is_alive).collect();
        let Some(oldest) = others.first().map(|other| other.age().0) else {
            return Ok(None);
        };
        // The last one is the one that stays of them.
        others.retain(|other| other.age().0 == oldest);
        let Some(highest) = others.last().filter(|_| oldest <= our_time) else {
            return Ok(None);
        };
        if oldest < our_time {
            return Ok(others.pop());
        }
        let decision_time = self.capabilities.usual_lag() + DECISION_TIME;
        let yield_time = 2 * decision_time;
        if our_id > highest.age().1 {
            return self.unless_yielded(requested, others, yield_time).await;
        }
        if sent.elapsed() < decision_time {
            return Ok(others.pop());
        }
        // The highest one may have decided by now.
        let others = others.pop().into_iter().collect();
        let longer = 2 * yield_time + Duration::from_secs(1);
        self.unless_yielded(requested, others, longer).await
    }

    /// Waits for `time` until all of these launches have ended. Returns one that has not; `None` if all have.
    ///
    /// # Errors
    ///
    /// The last read failed. The others may fail.
    async fn unless_yielded(
        &self,
        requested: Requested<'_>,
        others: Vec<Launch>,
        time: Duration,
    ) -> Result<Option<Launch>> {
        let read = || -> BoxFuture<'_, Result<Observed>> {
            Box::pin(async move {
                let began = Instant::now();
                Ok((self.find_launches(requested).await, began))
            })
        };
        // A read that does not show a launch is older than it, and proves nothing.
        let has_ended = |other: &Launch, (found, _): &Observed| {
            let shown = found.iter().flat_map(|(launches, _)| launches);
            let mut ended = shown.filter(|launch| !launch.is_alive());
            ended.any(|launch| launch.is_same(other)) || self.failed_launches.are_all_of(other)
        };
        let have_ended = |found: &Observed| others.iter().all(|other| has_ended(other, found));
        let mut found = read_within(&self.capabilities, time, read, have_ended).await?;
        for _ in 0..LATE_READS {
            // A process that was suspended, or a slow read: the others may have ended meanwhile.
            if have_ended(&found) || found.1.elapsed() < DECISION_TIME / 2 {
                break;
            }
            found = read().await?;
        }
        let remaining = others.iter().rfind(|other| !has_ended(other, &found));
        let remaining = remaining.cloned();
        found.0.map(|_| remaining)
    }
}
