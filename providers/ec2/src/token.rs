//! The caller's launch token as EC2's client token.
//!
//! A client token has the caller's token in front, so that one filter finds whatever it launched, and
//! the offering behind, because EC2 takes a token in another zone for another launch and compares
//! types itself: with both in the name, what EC2 remembers and what we look for are the same thing.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use fleetwright::{Fingerprint, InstanceConfig, LaunchToken};
use tokio::time::Instant;
use uuid::Uuid;

/// The client token of a launch: 45 characters of the 64 that EC2 takes.
pub(crate) fn client_token(token: &LaunchToken, config: &InstanceConfig) -> String {
    let zone = config
        .placement
        .zone
        .as_ref()
        .map_or("", |zone| zone.as_str());
    let network = config
        .placement
        .network
        .as_ref()
        .map_or("", |network| network.as_str());
    let offering = format!("{zone}\n{network}\n{}", config.instance_type);
    let offering = Uuid::new_v5(&Uuid::NAMESPACE_OID, offering.as_bytes())
        .simple()
        .to_string();
    format!("{}-{}", stem(token), &offering[..8])
}

/// What finds every launch of a token, as a filter's value.
pub(crate) fn pattern(token: &LaunchToken) -> String {
    format!("{}-*", stem(token))
}

fn stem(token: &LaunchToken) -> Uuid {
    token.derive("ec2-client-token")
}

/// The tokens that a handle used within the consistency window, in which a list may not show yet
/// what they launched.
#[derive(Debug, Default)]
pub(crate) struct UsedTokens {
    noted: Mutex<Noted>,
}

#[derive(Debug, Default)]
struct Noted {
    by_token: HashMap<LaunchToken, (Instant, Fingerprint)>,
    /// The same, the oldest first.
    in_order: VecDeque<(Instant, LaunchToken)>,
}

impl UsedTokens {
    /// Notes a launch, and drops those of longer than `window` ago.
    pub(crate) fn note(&self, token: &LaunchToken, config: Fingerprint, window: Duration) {
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
    pub(crate) fn config_of(&self, token: &LaunchToken, window: Duration) -> Option<Fingerprint> {
        let noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, config) = noted.by_token.get(token)?;
        (at.elapsed() < window).then_some(*config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fleetwright::Zone;

    #[test]
    fn a_client_token_has_the_token_in_front_and_the_offering_behind() {
        let token = LaunchToken::new("golden").unwrap();
        let plain = InstanceConfig::builder("ami-1", "m7i.large")
            .build()
            .unwrap();
        let mut zonal = plain.clone();
        zonal.placement.zone = Some(Zone::new("us-east-1b").unwrap());
        let mut small = plain.clone();
        small.instance_type = "t3.small".parse().unwrap();
        let all = [&plain, &zonal, &small].map(|config| client_token(&token, config));
        for one in &all {
            assert!(one.len() <= 64 && one.is_ascii(), "{one}");
            assert!(
                one.starts_with(pattern(&token).trim_end_matches('*')),
                "{one}"
            );
        }
        assert!(
            all[0] != all[1] && all[1] != all[2] && all[0] != all[2],
            "{all:?}"
        );
        assert_eq!(client_token(&token, &plain), all[0]);
        let other = LaunchToken::new("Golden").unwrap();
        assert_ne!(pattern(&token), pattern(&other));
    }
}
