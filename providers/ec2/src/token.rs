//! The caller's launch token as EC2's client tokens. Pure.
//!
//! A client token begins with a digest of the launch token, so that one filter finds everything that the
//! token launched. It ends with a digest of what may differ between two attempts of one launch: zone, network,
//! type and market. EC2 binds a client token to the parameters of its first request, also if it refused
//! that request for lack of capacity, so an attempt with another offering needs another client token.
//!
//! The options of a handle are not part of a client token. A handle with other options that replays a launch
//! sends the same client token, so EC2 itself refuses a second launch in the same zone.

use fleetwright::{InstanceConfig, LaunchToken, Market};
use uuid::Uuid;

/// Returns a client token of a launch: at most 47 characters of the 64 that EC2 allows. The same launch and
/// attempt always have the same client token, also in another process. Attempts are counted from 1; a
/// further one is for a launch whose client token EC2 has bound to other options.
pub(crate) fn client_token(token: &LaunchToken, config: &InstanceConfig, attempt: u32) -> String {
    let placement = &config.placement;
    let zone = placement.zone.as_ref().map_or("", |zone| zone.as_str());
    let network = placement.network.as_ref();
    let network = network.map_or("", |network| network.as_str());
    let market = match placement.market {
        Some(Market::Spot) => "\nspot",
        Some(Market::OnDemand) | None => "",
    };
    let offering = format!("{zone}\n{network}\n{}{market}", config.instance_type);
    let digest = Uuid::new_v5(&Uuid::NAMESPACE_OID, offering.as_bytes())
        .simple()
        .to_string();
    let first = format!("{}-{}", prefix(token), &digest[..8]);
    match attempt {
        0 | 1 => first,
        further => format!("{first}-{further}"),
    }
}

/// Returns the filter value that matches every client token of a launch token.
pub(crate) fn pattern(token: &LaunchToken) -> String {
    format!("{}-*", prefix(token))
}

/// Returns the part of a client token, or of a [`pattern`], that belongs to the launch token: a digest in its usual form. Everything of a
/// client token that another program has chosen may be returned.
pub(crate) fn prefix_of(client_token: &str) -> &str {
    const DIGEST: usize = 36;
    client_token.get(..DIGEST).unwrap_or(client_token)
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
    fn client_token_depends_on_launch_token_offering_and_attempt() {
        let token = LaunchToken::new("golden").unwrap();
        let plain = InstanceConfig::builder("ami-1", "m7i.large")
            .build()
            .unwrap();
        let mut zonal = plain.clone();
        zonal.placement.zone = Some(Zone::new("us-east-1b").unwrap());
        let mut small = plain.clone();
        small.instance_type = "t3.small".parse().unwrap();
        let mut subnet = plain.clone();
        subnet.placement.network = Some("subnet-1".parse().unwrap());
        let mut spot = plain.clone();
        spot.placement.market = Some(Market::Spot);
        let mut tokens: Vec<_> = [&plain, &zonal, &small, &subnet, &spot]
            .map(|config| client_token(&token, config, 1))
            .into();
        tokens.push(client_token(&token, &plain, 2));
        tokens.push(client_token(&token, &plain, 4));
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
        for client_token in &tokens {
            assert_eq!(prefix_of(client_token), prefix(&token).to_string());
        }
        assert_eq!(prefix_of(&pattern(&token)), prefix(&token).to_string());
        assert_eq!(prefix_of("of another program"), "of another program");
        let different: std::collections::BTreeSet<_> = tokens.iter().collect();
        assert_eq!(different.len(), tokens.len(), "{tokens:?}");
        let mut on_demand = plain.clone();
        on_demand.placement.market = Some(Market::OnDemand);
        assert_eq!(client_token(&token, &on_demand, 1), tokens[0]);
        let other = LaunchToken::new("Golden").unwrap();
        assert_ne!(pattern(&token), pattern(&other));
    }
}
