//! The launch tokens that one handle used lately.
//!
//! Owns the memory by which a handle refuses a token with another config although reads do not show
//! yet what it launched. Like [`FreshLaunches`](crate::FreshLaunches) it belongs to the process.

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
pub struct UsedTokens {
    noted: Mutex<Noted>,
}

#[derive(Debug, Default)]
struct Noted {
    by_token: HashMap<LaunchToken, (Instant, Fingerprint)>,
    /// The same, the oldest first.
    in_order: VecDeque<(Instant, LaunchToken)>,
}

impl UsedTokens {
    /// No token yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes a launch, and drops those of longer than `window` ago.
    pub fn note(&self, token: &LaunchToken, config: Fingerprint, window: Duration) {
        let now = Instant::now();
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some((at, _)) = noted
            .in_order
            .front()
            .filter(|(at, _)| at.elapsed() >= window)
        {
            let at = *at;
            if let Some((_, token)) = noted.in_order.pop_front() {
                // A replay may have noted it again since.
                if noted
                    .by_token
                    .get(&token)
                    .is_some_and(|(since, _)| *since == at)
                {
                    noted.by_token.remove(&token);
                }
            }
        }
        noted.in_order.push_back((now, token.clone()));
        noted.by_token.insert(token.clone(), (now, config));
    }

    /// The config that a token was used with so lately that a list may not tell.
    pub fn config_of(&self, token: &LaunchToken, window: Duration) -> Option<Fingerprint> {
        let noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, config) = noted.by_token.get(token)?;
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
        let (used, token) = (UsedTokens::new(), LaunchToken::new("one").unwrap());
        assert_eq!(used.config_of(&token, WINDOW), None);
        used.note(&token, config("a"), WINDOW);
        tokio::time::sleep(WINDOW / 2).await;
        assert_eq!(used.config_of(&token, WINDOW), Some(config("a")));
        used.note(&token, config("b"), WINDOW);
        tokio::time::sleep(WINDOW / 2).await;
        used.note(&LaunchToken::new("two").unwrap(), config("a"), WINDOW);
        assert_eq!(used.config_of(&token, WINDOW), Some(config("b")));
        tokio::time::sleep(WINDOW).await;
        assert_eq!(used.config_of(&token, WINDOW), None);
        used.note(&token, config("a"), WINDOW);
        let noted = used.noted.lock().unwrap();
        assert_eq!((noted.by_token.len(), noted.in_order.len()), (1, 1));
    }
}
