//! Reads that are repeated while they may be stale.
//!
//! Owns for how long: for the usual lag of the cloud, or for the consistency window where a wrong conclusion
//! would launch or terminate something. It only reads.

use std::time::Duration;

use fleetwright::{
    Call, Capabilities, CloudInstanceState, Effect, InstanceId, InstanceInfo, ProvisionError,
    Result,
};
use futures_util::future::BoxFuture;
use tokio::time::{Instant, sleep};

/// Reads until `accept` returns `true`, or until the [usual lag](Capabilities::usual_lag()) of reads has passed
/// since the first one, and returns the last result. Pauses by the poll interval in between.
///
/// ```
/// # use std::{sync::atomic::{AtomicU32, Ordering}, time::Duration};
/// # use fleetwright::{Capabilities, TagLimits};
/// # use fleetwright_provider_support::read_until;
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> fleetwright::Result<()> {
/// let mut capabilities = Capabilities::new("acme", TagLimits::new(50, 128, 256), 16_384);
/// capabilities.consistency_window = Duration::from_secs(10);
///
/// let reads = AtomicU32::new(0); // a cloud whose third read shows the change
/// let read = || -> futures_util::future::BoxFuture<'_, _> {
///     Box::pin(async { Ok(reads.fetch_add(1, Ordering::Relaxed) == 2) })
/// };
/// assert!(read_until(&capabilities, read, |shows_change| *shows_change).await?);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// The first failed read ends the wait.
pub async fn read_until<'a, T>(
    capabilities: &Capabilities,
    read: impl Fn() -> BoxFuture<'a, Result<T>> + Send + Sync,
    accept: impl Fn(&T) -> bool + Send + Sync,
) -> Result<T> {
    read_within(capabilities, capabilities.usual_lag(), read, accept).await
}

/// Reads like [`read_until`], but for `time`. The last read begins after it, so for a time of at least the consistency window the
/// result cannot be stale. For what must be proved.
///
/// ```
/// # use std::time::Duration;
/// # use fleetwright::{Capabilities, TagLimits};
/// # use fleetwright_provider_support::read_within;
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> fleetwright::Result<()> {
/// let mut capabilities = Capabilities::new("acme", TagLimits::new(50, 128, 256), 16_384);
/// capabilities.consistency_window = Duration::from_secs(10);
///
/// // No read of these ten seconds shows an instance, so there is none.
/// let read = || -> futures_util::future::BoxFuture<'_, _> { Box::pin(async { Ok(None::<&str>) }) };
/// let window = capabilities.consistency_window;
/// assert_eq!(read_within(&capabilities, window, read, Option::is_some).await?, None);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// The first failed read ends the wait.
pub async fn read_within<'a, T>(
    capabilities: &Capabilities,
    time: Duration,
    read: impl Fn() -> BoxFuture<'a, Result<T>> + Send + Sync,
    accept: impl Fn(&T) -> bool + Send + Sync,
) -> Result<T> {
    let began = Instant::now();
    loop {
        // Computed before the read: only a read that begins after the time is not older than this call.
        let is_last = began.elapsed() >= time;
        let result = read().await?;
        if is_last || accept(&result) {
            return Ok(result);
        }
        sleep(capabilities.poll_interval).await;
    }
}

/// Reads something that may not exist, like [`read_until`], until it is found. `None` if no read finds it. `is_missing` says which
/// failure of a native call means that; no other one has an effect.
///
/// ```
/// # use fleetwright::{Call, Capabilities, Effect, Operation, TagLimits};
/// # use fleetwright_provider_support::read_if_exists;
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> fleetwright::Result<()> {
/// # let capabilities = Capabilities::new("acme", TagLimits::new(50, 128, 256), 16_384);
/// let call = Call::new("acme", Operation::DeleteImage);
/// let read = || -> futures_util::future::BoxFuture<'_, Result<&str, u16>> { Box::pin(async { Err(404) }) };
/// let to_error = |status: u16| call.unexpected(Effect::Unknown, &format!("status {status}"));
/// assert_eq!(read_if_exists(&capabilities, read, |status| *status == 404, to_error).await?, None);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// The first failure that `is_missing` does not accept ends the wait.
pub async fn read_if_exists<'a, T: Send, F: Send>(
    capabilities: &Capabilities,
    read: impl Fn() -> BoxFuture<'a, Result<T, F>> + Send + Sync,
    is_missing: impl Fn(&F) -> bool + Send + Sync,
    to_error: impl Fn(F) -> ProvisionError + Send + Sync,
) -> Result<Option<T>> {
    let began = Instant::now();
    let time = capabilities.usual_lag();
    loop {
        let is_last = began.elapsed() >= time;
        match read().await {
            Ok(found) => return Ok(Some(found)),
            Err(failure) if !is_missing(&failure) => {
                return Err(to_error(failure).with_effect(Effect::None));
            }
            Err(_) if is_last => return Ok(None),
            Err(_) => sleep(capabilities.poll_interval).await,
        }
    }
}

/// Reads an instance until it is in one of `states`.
///
/// ```
/// # use fleetwright::{Call, Capabilities, CloudInstanceState, ErrorKind, InstanceId, InstanceInfo, Operation, TagLimits};
/// # use fleetwright_provider_support::read_until_state;
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let capabilities = Capabilities::new("acme", TagLimits::new(50, 128, 256), 16_384);
/// let call = Call::new("acme", Operation::ResizeInstance);
/// let id = InstanceId::new("i-1")?;
/// let read = || -> futures_util::future::BoxFuture<'_, _> {
///     Box::pin(async { Ok(InstanceInfo::new(id.clone(), CloudInstanceState::Running)) })
/// };
/// let stopped = (&[CloudInstanceState::Stopped][..], "stopped");
/// let error = read_until_state(&capabilities, &call, &id, stopped, read).await.unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::WrongState);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`WrongState`](fleetwright::ErrorKind::WrongState), with `needed` as the state that is required, if the
/// instance is terminating or terminated, or is still in another state when the usual lag of reads has passed.
/// No error has an effect.
pub async fn read_until_state<'a>(
    capabilities: &Capabilities,
    call: &Call,
    id: &InstanceId,
    (states, needed): (&[CloudInstanceState], &str),
    read: impl Fn() -> BoxFuture<'a, Result<InstanceInfo>> + Send + Sync,
) -> Result<InstanceInfo> {
    // An ending instance never gets another state.
    let accept = |info: &InstanceInfo| states.contains(&info.state) || info.state.is_ending();
    let info = read_until(capabilities, read, accept).await;
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
    use fleetwright::{ErrorKind, Operation, TagLimits};

    fn capabilities() -> Capabilities {
        let mut capabilities = Capabilities::new("test", TagLimits::new(1, 1, 1), 1);
        capabilities.consistency_window = Duration::from_secs(10);
        capabilities.poll_interval = Duration::from_secs(4);
        capabilities
    }

    async fn reads_until(wanted: u32) -> (u32, Duration) {
        let (reads, began) = (AtomicU32::new(0), Instant::now());
        let read = || -> BoxFuture<'_, Result<u32>> {
            Box::pin(async { Ok(reads.fetch_add(1, Ordering::Relaxed)) })
        };
        let last = read_until(&capabilities(), read, |read| *read == wanted).await;
        (last.unwrap(), began.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn reads_end_when_accepted_or_after_the_window() {
        assert_eq!(reads_until(0).await, (0, Duration::ZERO));
        assert_eq!(reads_until(2).await, (2, Duration::from_secs(8)));
        // The last read began after the window.
        assert_eq!(reads_until(99).await, (3, Duration::from_secs(12)));
    }

    #[tokio::test(start_paused = true)]
    async fn usual_lag_ends_a_read_and_only_the_window_proves() {
        let mut capabilities = capabilities();
        capabilities.usual_lag = Some(Duration::from_secs(4));
        let read = || -> BoxFuture<'_, Result<u32>> { Box::pin(async { Ok(7) }) };
        let began = Instant::now();
        let usual = read_until(&capabilities, read, |_| false).await;
        assert_eq!(
            (usual.unwrap(), began.elapsed()),
            (7, Duration::from_secs(4))
        );
        let began = Instant::now();
        let window = capabilities.consistency_window;
        let proved = read_within(&capabilities, window, read, |_| false).await;
        assert_eq!(
            (proved.unwrap(), began.elapsed()),
            (7, Duration::from_secs(12))
        );
    }

    #[tokio::test(start_paused = true)]
    async fn failed_read_is_returned_at_once() {
        let call = Call::new("test", Operation::DescribeInstance);
        let read = || -> BoxFuture<'_, Result<u32>> {
            Box::pin(async { Err(call.timeout(Effect::None)) })
        };
        let began = Instant::now();
        assert!(read_until(&capabilities(), read, |_| false).await.is_err());
        assert_eq!(began.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn missing_resource_is_read_again_and_another_failure_is_returned_at_once() {
        let call = Call::new("test", Operation::DeleteImage);
        for (found_at, status, expected, wait) in [
            (1, 404, Ok(Some(1)), Duration::from_secs(4)),
            (99, 404, Ok(None), Duration::from_secs(12)),
            (99, 500, Err(Effect::None), Duration::ZERO),
        ] {
            let (reads, began) = (AtomicU32::new(0), Instant::now());
            let read = || -> BoxFuture<'_, Result<u32, u16>> {
                let at = reads.fetch_add(1, Ordering::Relaxed);
                Box::pin(async move { if at == found_at { Ok(at) } else { Err(status) } })
            };
            let to_error = |_| call.timeout(Effect::Unknown);
            let capabilities = capabilities();
            let found = read_if_exists(&capabilities, read, |status| *status == 404, to_error);
            let found = found.await.map_err(|error| error.effect());
            assert_eq!((found, began.elapsed()), (expected, wait));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn state_is_refused_only_when_the_read_cannot_be_stale() {
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
        let info = read_until_state(&capabilities(), &call, &id, running, late).await;
        assert_eq!(info.unwrap().state, CloudInstanceState::Running);
        for (state, wait) in [
            (&[CloudInstanceState::Stopped], Duration::from_secs(12)),
            (&[CloudInstanceState::Terminating], Duration::ZERO),
        ] {
            let began = Instant::now();
            let refused =
                read_until_state(&capabilities(), &call, &id, running, shows(state)).await;
            let error = refused.unwrap_err();
            assert_eq!(
                (error.kind(), error.effect()),
                (ErrorKind::WrongState, Effect::None)
            );
            assert_eq!(began.elapsed(), wait);
        }
    }
}
