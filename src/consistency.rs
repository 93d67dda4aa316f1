//! Reading past what a cloud still shows of before.

use futures_util::future::BoxFuture;
use tokio::time::{Instant, sleep};

use crate::{Call, Capabilities, CloudInstanceState, Effect, InstanceId, InstanceInfo, Result};

/// Reads until an answer is `enough`, or until the consistency window has passed since the first read,
/// and answers the last one. Until then a read may show what was before, so that nothing should be
/// refused because of it.
pub async fn read_until<'a, T>(
    capabilities: &Capabilities,
    read: impl Fn() -> BoxFuture<'a, Result<T>> + Send + Sync,
    enough: impl Fn(&T) -> bool + Send + Sync,
) -> Result<T> {
    let began = Instant::now();
    loop {
        let late = began.elapsed() >= capabilities.consistency_window;
        let answer = read().await?;
        if late || enough(&answer) {
            return Ok(answer);
        }
        sleep(capabilities.poll_interval).await;
    }
}

/// Reads an instance until it is in one of `states`, and refuses as wrong state one that is in another
/// although the reads cannot be of the past any more; `needed` says which state would do.
pub async fn read_until_state<'a>(
    capabilities: &Capabilities,
    call: &Call,
    id: &InstanceId,
    (states, needed): (&[CloudInstanceState], &str),
    read: impl Fn() -> BoxFuture<'a, Result<InstanceInfo>> + Send + Sync,
) -> Result<InstanceInfo> {
    // What is ending does not come back.
    let fit = |info: &InstanceInfo| states.contains(&info.state) || info.state.is_ending();
    let info = read_until(capabilities, read, fit).await;
    let info = info.map_err(|error| error.with_effect(Effect::None))?;
    if states.contains(&info.state) {
        return Ok(info);
    }
    Err(call.wrong_state(id, info.state, needed))
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicU32, Ordering},
        time::Duration,
    };

    use super::*;
    use crate::{ErrorKind, Operation, TagLimits};

    fn declared() -> Capabilities {
        let mut declared = Capabilities::new("test", TagLimits::new(1, 1, 1), 1);
        declared.consistency_window = Duration::from_secs(10);
        declared.poll_interval = Duration::from_secs(4);
        declared
    }

    async fn reads_until(wanted: u32) -> (u32, Duration) {
        let (reads, began) = (AtomicU32::new(0), Instant::now());
        let read = || -> BoxFuture<'_, Result<u32>> {
            Box::pin(async { Ok(reads.fetch_add(1, Ordering::Relaxed)) })
        };
        let last = read_until(&declared(), read, |seen| *seen == wanted).await;
        (last.unwrap(), began.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn reads_end_when_one_is_enough_or_the_window_is_over() {
        assert_eq!(reads_until(0).await, (0, Duration::ZERO));
        assert_eq!(reads_until(2).await, (2, Duration::from_secs(8)));
        // The last one was begun when the window was over.
        assert_eq!(reads_until(99).await, (3, Duration::from_secs(12)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_read_is_answered_at_once() {
        let call = Call::new("test", Operation::DescribeInstance);
        let read = || -> BoxFuture<'_, Result<u32>> {
            Box::pin(async { Err(call.timeout(Effect::None)) })
        };
        let began = Instant::now();
        assert!(read_until(&declared(), read, |_| false).await.is_err());
        assert_eq!(began.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_state_is_refused_only_when_it_cannot_be_of_the_past() {
        let (call, id) = (
            Call::new("test", Operation::RebootInstance),
            InstanceId::new("i-1").unwrap(),
        );
        let running = (&[CloudInstanceState::Running][..], "running");
        let shows = |states: &'static [CloudInstanceState]| {
            let (reads, id) = (AtomicU32::new(0), id.clone());
            move || -> BoxFuture<'static, Result<InstanceInfo>> {
                let at = reads.fetch_add(1, Ordering::Relaxed) as usize;
                let state = states[at.min(states.len() - 1)];
                let info = InstanceInfo::new(id.clone(), state);
                Box::pin(async move { Ok(info) })
            }
        };
        let late = shows(&[CloudInstanceState::Pending, CloudInstanceState::Running]);
        let info = read_until_state(&declared(), &call, &id, running, late).await;
        assert_eq!(info.unwrap().state, CloudInstanceState::Running);
        for (state, wait) in [
            (&[CloudInstanceState::Stopped], Duration::from_secs(12)),
            (&[CloudInstanceState::Terminating], Duration::ZERO),
        ] {
            let began = Instant::now();
            let refused = read_until_state(&declared(), &call, &id, running, shows(state)).await;
            let error = refused.unwrap_err();
            assert_eq!(
                (error.kind(), error.effect()),
                (ErrorKind::WrongState, Effect::None)
            );
            assert_eq!(began.elapsed(), wait);
        }
    }
}
