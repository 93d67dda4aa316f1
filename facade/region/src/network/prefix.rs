//! Ranges of IP addresses.

use std::{fmt, net::IpAddr, str::FromStr};

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// A range of IPv4 or IPv6 addresses. The bits after the length are zero, so that equal ranges are equal values.
///
/// Addresses are parsed here and nowhere else, so that every part of the system has the same view of a range.
///
/// ```
/// use fleetwright_region::network::Prefix;
///
/// let prefix: Prefix = "10.1.2.3/8".parse()?;
/// assert_eq!(prefix.to_string(), "10.0.0.0/8");
/// assert!("010.0.0.0/8".parse::<Prefix>().is_err(), "a leading zero may mean octal");
/// # Ok::<(), fleetwright_region::network::InvalidPrefix>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Prefix(IpNet);

/// A text that is not a range of addresses. The message shows at most 60 characters of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a range of addresses: expected an address and a length, as in 10.0.0.0/16 or 2001:db8::/48"
)]
pub struct InvalidPrefix {
    text: String,
}

impl Prefix {
    /// Creates a prefix, with the bits after the length set to zero.
    pub fn new(net: IpNet) -> Self {
        Self(net.trunc())
    }

    /// Returns the range.
    pub fn net(self) -> IpNet {
        self.0
    }

    /// Returns whether an address is in the range.
    pub fn contains(self, address: IpAddr) -> bool {
        self.0.contains(&address)
    }
}

impl FromStr for Prefix {
    type Err = InvalidPrefix;

    fn from_str(text: &str) -> Result<Self, InvalidPrefix> {
        read(text).map(Self::new).ok_or_else(|| InvalidPrefix {
            text: text.chars().take(60).collect(),
        })
    }
}

/// Parses with the standard library, which refuses leading zeros in addresses: some programs read them as octal.
fn read(text: &str) -> Option<IpNet> {
    let (address, length) = text.split_once('/')?;
    let digits = length.bytes().all(|byte| byte.is_ascii_digit());
    let plain = digits && (length == "0" || !length.starts_with('0'));
    let length = plain.then(|| length.parse().ok())??;
    IpNet::new(address.parse().ok()?, length).ok()
}

impl TryFrom<String> for Prefix {
    type Error = InvalidPrefix;
    fn try_from(text: String) -> Result<Self, InvalidPrefix> {
        text.parse()
    }
}

impl From<Prefix> for String {
    fn from(prefix: Prefix) -> Self {
        prefix.to_string()
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Prefix({self})")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn prefix_has_one_form() {
        let read = |text: &str| text.parse::<Prefix>().map(|prefix| prefix.to_string());
        assert_eq!(read("10.1.2.3/8").unwrap(), "10.0.0.0/8");
        assert_eq!(read("2001:DB8::1/32").unwrap(), "2001:db8::/32");
        assert_eq!(read("0.0.0.0/0").unwrap(), "0.0.0.0/0");
        for bad in [
            "",
            "10.0.0.0",
            "10.0.0.0/33",
            "10.0.0/8",
            "::/129",
            "a/8",
            "10.0.0.0/-1",
            "010.0.0.0/8",
            "10.0.0.0/08",
            "10.0.0.0/+8",
            "10.0.0.0/",
        ] {
            let error = read(bad).unwrap_err().to_string();
            assert!(
                error.contains("is not a range of addresses: expected"),
                "{error}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_ipv4_prefix_round_trips_and_contains_its_address(bits in any::<u32>(), length in 0_u8..=32) {
            let address = IpAddr::from(bits.to_be_bytes());
            let prefix: Prefix = format!("{address}/{length}").parse().unwrap();
            prop_assert!(prefix.contains(address));
            prop_assert_eq!(prefix.to_string().parse::<Prefix>().unwrap(), prefix);
            let json = serde_json::to_string(&prefix).unwrap();
            prop_assert_eq!(serde_json::from_str::<Prefix>(&json).unwrap(), prefix);
            prop_assert_eq!(Prefix::new(prefix.net()), prefix);
        }

        #[test]
        fn any_ipv6_prefix_round_trips_and_contains_its_address(bits in any::<u128>(), length in 0_u8..=128) {
            let address = IpAddr::from(bits.to_be_bytes());
            let prefix: Prefix = format!("{address}/{length}").parse().unwrap();
            prop_assert!(prefix.contains(address));
            prop_assert_eq!(prefix.to_string().parse::<Prefix>().unwrap(), prefix);
        }

        #[test]
        fn arbitrary_text_does_not_panic(text in ".{0,50}") {
            if let Ok(prefix) = text.parse::<Prefix>() {
                prop_assert_eq!(prefix.to_string().parse::<Prefix>().unwrap(), prefix);
            }
        }
    }
}
