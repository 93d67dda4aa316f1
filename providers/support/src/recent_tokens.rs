//! The recent launch tokens of one handle.
//!
//! Owns the memory with which a handle refuses a token that it used with another config, although no read
//! shows yet what that launch created.

use std::time::Duration;

use fleetwright::{Fingerprint, InstanceId, InstanceInfo, LaunchToken};

use crate::recent::RecentMap;

/// The launch tokens that a handle used within the last consistency window.
///
/// ```
/// use std::{num::NonZeroU32, time::Duration};
///
/// use fleetwright::{InstanceConfig, LaunchToken};
/// use fleetwright_provider_support::RecentTokens;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let window = Duration::from_secs(20);
/// let token = LaunchToken::new("web-1")?;
/// let config = InstanceConfig::builder("debian-12", "small").build()?;
/// let fingerprint = config.fingerprint(NonZeroU32::MIN);
///
/// let tokens = RecentTokens::new();
/// assert_eq!(tokens.fingerprint(&token, window), None);
/// tokens.record(&token, fingerprint, window);
/// assert_eq!(tokens.fingerprint(&token, window), Some(fingerprint));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct RecentTokens {
    tokens: RecentMap<LaunchToken, Launch>,
}

/// A recent launch.
#[derive(Clone, Debug)]
struct Launch {
    config: Fingerprint,
    instances: Vec<InstanceId>,
}

impl RecentTokens {
    /// Creates an empty memory.
    pub fn new() -> Self {
        Self::default()
    }

    /// Records that a launch with this token succeeded just now, and forgets tokens that were used `window`
    /// ago or earlier.
    pub fn record(&self, token: &LaunchToken, config: Fingerprint, window: Duration) {
        self.record_launch(token, config, &[], window);
    }

    /// Like [`record`](Self::record), with the instances that were launched.
    pub fn record_launch(
        &self,
        token: &LaunchToken,
        config: Fingerprint,
        launched: &[InstanceInfo],
        window: Duration,
    ) {
        let instances = launched.iter().map(|info| info.id.clone()).collect();
        let launch = Launch { config, instances };
        self.tokens.record([(token.clone(), launch)], window);
    }

    /// Returns the instances of the token, if it was used with another config less than `window` ago.
    pub fn other_launch(
        &self,
        token: &LaunchToken,
        config: Fingerprint,
        window: Duration,
    ) -> Option<Vec<InstanceId>> {
        let launch = self.tokens.get(token, window)?;
        (launch.config != config).then_some(launch.instances)
    }

    /// Returns the fingerprint of the config that the token was used with, if that was less than `window`
    /// ago. Until then a list may not show what the token launched.
    pub fn fingerprint(&self, token: &LaunchToken, window: Duration) -> Option<Fingerprint> {
        Some(self.tokens.get(token, window)?.config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fleetwright::InstanceConfig;
    use std::num::NonZeroU32;

    const WINDOW: Duration = Duration::from_secs(10);

    fn config(image: &str) -> Fingerprint {
        let config = InstanceConfig::builder(image, "small").build().unwrap();
        config.fingerprint(NonZeroU32::MIN)
    }

    #[tokio::test(start_paused = true)]
    async fn recent_token_expires_after_window() {
        let (tokens, token) = (RecentTokens::new(), LaunchToken::new("one").unwrap());
        assert_eq!(tokens.fingerprint(&token, WINDOW), None);
        tokens.record(&token, config("a"), WINDOW);
        tokio::time::sleep(WINDOW / 2).await;
        assert_eq!(tokens.fingerprint(&token, WINDOW), Some(config("a")));
        tokens.record(&token, config("b"), WINDOW);
        tokio::time::sleep(WINDOW / 2).await;
        tokens.record(&LaunchToken::new("two").unwrap(), config("a"), WINDOW);
        assert_eq!(tokens.fingerprint(&token, WINDOW), Some(config("b")));
        tokio::time::sleep(WINDOW).await;
        assert_eq!(tokens.fingerprint(&token, WINDOW), None);
        tokens.record(&token, config("a"), WINDOW);
        assert_eq!(tokens.tokens.sizes(), (1, 1));
    }
}
