//! The launch tokens that one handle used lately.
//!
//! Owns the memory by which a handle refuses a token with another config although reads do not show
//! yet what it launched. Like [`RecentLaunches`](crate::RecentLaunches) it belongs to the process.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::{Fingerprint, LaunchToken};

/// The tokens that a handle used within the consistency window, in which a list may not show yet
/// what they launched.
#[derive(Debug, Default)]
pub struct RecentTokens {
    records: Mutex<Records>,
}

#[derive(Debug, Default)]
struct Records {
    by_token: HashMap<LaunchToken, (Instant, Fingerprint)>,
    /// The same, the oldest first.
    in_order: VecDeque<(Instant, LaunchToken)>,
}

impl RecentTokens {
    /// No token yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes a launch, and drops those of longer than `window` ago.
    pub fn record(&self, token: &LaunchToken, config: Fingerprint, window: Duration) {
        let now = Instant::now();
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some((at, _)) = records
            .in_order
            .front()
            .filter(|(at, _)| at.elapsed() >= window)
        {
            let at = *at;
            if let Some((_, token)) = records.in_order.pop_front() {
                // A replay may have recorded it again since.
                if records
                    .by_token
                    .get(&token)
                    .is_some_and(|(since, _)| *since == at)
                {
                    records.by_token.remove(&token);
                }
            }
        }
        records.in_order.push_back((now, token.clone()));
        records.by_token.insert(token.clone(), (now, config));
    }

    /// The config that a token was used with so lately that a list may not tell.
    pub fn fingerprint(&self, token: &LaunchToken, window: Duration) -> Option<Fingerprint> {
        let records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, config) = records.by_token.get(token)?;
        (at.elapsed() < window).then_some(*config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::InstanceConfig;
    use std::num::NonZeroU32;

    const WINDOW: Duration = Duration::from_secs(10);

    fn config(image: &str) -> Fingerprint {
        let config = InstanceConfig::builder(image, "small").build().unwrap();
        config.fingerprint(NonZeroU32::MIN)
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_is_known_for_the_window_and_then_dropped() {
        let (used, token) = (RecentTokens::new(), LaunchToken::new("one").unwrap());
        assert_eq!(used.fingerprint(&token, WINDOW), None);
        used.record(&token, config("a"), WINDOW);
        tokio::time::sleep(WINDOW / 2).await;
        assert_eq!(used.fingerprint(&token, WINDOW), Some(config("a")));
        used.record(&token, config("b"), WINDOW);
        tokio::time::sleep(WINDOW / 2).await;
        used.record(&LaunchToken::new("two").unwrap(), config("a"), WINDOW);
        assert_eq!(used.fingerprint(&token, WINDOW), Some(config("b")));
        tokio::time::sleep(WINDOW).await;
        assert_eq!(used.fingerprint(&token, WINDOW), None);
        used.record(&token, config("a"), WINDOW);
        let records = used.records.lock().unwrap();
        assert_eq!((records.by_token.len(), records.in_order.len()), (1, 1));
    }
}
