//! The caller's launch token as EC2's client token.
//!
//! A client token has the caller's token in front, so that one filter finds whatever it launched, and
//! the offering behind, because EC2 takes a token in another zone for another launch and compares
//! types itself: with both in the name, what EC2 remembers and what we look for are the same thing.

use fleetwright::{InstanceConfig, LaunchToken};
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
