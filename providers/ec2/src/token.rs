//! The caller's launch token as EC2's client token. Pure.
//!
//! A client token begins with a digest of the launch token, so that one filter finds everything that the
//! token launched. It ends with a digest of zone, network and type. EC2 treats the same client token in
//! another zone as another launch, and refuses it for another type. With this digest, launches that differ
//! in zone, network or type have different client tokens, so EC2 never compares them.

use fleetwright::{InstanceConfig, LaunchToken};
use uuid::Uuid;

/// Returns the client token of a launch: 45 characters of the 64 that EC2 allows. The same launch
/// always has the same client token, also in another process.
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
    let target = format!("{zone}\n{network}\n{}", config.instance_type);
    let digest = Uuid::new_v5(&Uuid::NAMESPACE_OID, target.as_bytes())
        .simple()
        .to_string();
    format!("{}-{}", prefix(token), &digest[..8])
}

/// Returns the filter value that matches every client token of a launch token.
pub(crate) fn pattern(token: &LaunchToken) -> String {
    format!("{}-*", prefix(token))
}

/// Returns the part that all client tokens of a launch token share.
fn prefix(token: &LaunchToken) -> Uuid {
    token.derive("ec2-client-token")
}

#[cfg(test)]
mod tests {
    use super::*;
    use fleetwright::Zone;

    #[test]
    fn client_token_depends_on_launch_token_zone_and_type() {
        let token = LaunchToken::new("golden").unwrap();
        let plain = InstanceConfig::builder("ami-1", "m7i.large")
            .build()
            .unwrap();
        let mut zonal = plain.clone();
        zonal.placement.zone = Some(Zone::new("us-east-1b").unwrap());
        let mut small = plain.clone();
        small.instance_type = "t3.small".parse().unwrap();
        let tokens = [&plain, &zonal, &small].map(|config| client_token(&token, config));
        for client_token in &tokens {
            assert!(
                client_token.len() <= 64 && client_token.is_ascii(),
                "{client_token}"
            );
            assert!(
                client_token.starts_with(pattern(&token).trim_end_matches('*')),
                "{client_token}"
            );
        }
        assert!(
            tokens[0] != tokens[1] && tokens[1] != tokens[2] && tokens[0] != tokens[2],
            "{tokens:?}"
        );
        assert_eq!(client_token(&token, &plain), tokens[0]);
        let other = LaunchToken::new("Golden").unwrap();
        assert_ne!(pattern(&token), pattern(&other));
    }
}
