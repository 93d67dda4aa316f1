//! The hardware address of a network interface.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{InvalidValue, Problem};

/// A 48-bit MAC address, written `0a:1b:2c:3d:4e:5f`.
///
/// Parses the colon form, Azure's hyphen form (`0A-1B-…`) and twelve digits without separators.
///
/// ```
/// use fleetwright::MacAddress;
///
/// let mac: MacAddress = "0A-1B-2C-3D-4E-5F".parse()?;
/// assert_eq!(mac.to_string(), "0a:1b:2c:3d:4e:5f");
/// # Ok::<(), fleetwright::InvalidValue>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MacAddress([u8; 6]);

impl MacAddress {
    /// Creates an address from six bytes, in the order in which they are written.
    pub const fn new(bytes: [u8; 6]) -> Self {
        Self(bytes)
    }

    /// Returns the six bytes.
    pub const fn bytes(self) -> [u8; 6] {
        self.0
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MacAddress({self})")
    }
}

impl FromStr for MacAddress {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        parse(text).map(Self).ok_or_else(|| {
            let expected =
                "a MAC address: six pairs of hexadecimal digits such as 0a:1b:2c:3d:4e:5f";
            InvalidValue::new("mac address", Problem::Malformed { expected })
        })
    }
}

/// Parses one of the three forms.
fn parse(text: &str) -> Option<[u8; 6]> {
    if !text.is_ascii() {
        return None;
    }
    let step = match text.len() {
        12 => 2,
        17 => 3,
        _ => return None,
    };
    let separator = if step == 3 { text.get(2..3)? } else { "" };
    if !matches!(separator, "" | ":" | "-") {
        return None;
    }
    let mut bytes = [0; 6];
    for (index, byte) in bytes.iter_mut().enumerate() {
        let at = index * step;
        let pair = text.get(at..at + 2)?;
        if !pair.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        *byte = u8::from_str_radix(pair, 16).ok()?;
        if index < 5 && text.get(at + 2..at + step)? != separator {
            return None;
        }
    }
    Some(bytes)
}

impl TryFrom<String> for MacAddress {
    type Error = InvalidValue;
    fn try_from(text: String) -> Result<Self, InvalidValue> {
        text.parse()
    }
}

impl From<MacAddress> for String {
    fn from(mac: MacAddress) -> Self {
        mac.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_the_three_forms_are_parsed() {
        let mac = MacAddress::new([0x0a, 0x1b, 0x2c, 0x3d, 0x4e, 0x5f]);
        for text in ["0a:1b:2c:3d:4e:5f", "0A-1B-2C-3D-4E-5F", "0a1B2c3D4e5F"] {
            assert_eq!(text.parse::<MacAddress>().unwrap(), mac, "{text}");
        }
        for text in [
            "",
            "0a:1b:2c:3d:4e",
            "0a:1b:2c:3d:4e:5g",
            "0a:1b-2c:3d:4e:5f",
            "0a.1b.2c.3d.4e.5f",
            "+a:1b:2c:3d:4e:5f",
            "0a1b2c3d4e5",
            "0a1b2c3d4e5f6",
            "ää:1b:2c:3d:4e",
            "0a:1b:2c:3d:4e:5f:",
        ] {
            let error = text.parse::<MacAddress>().unwrap_err().to_string();
            assert!(
                error.starts_with("mac address: is not a MAC address"),
                "{text}: {error}"
            );
        }
        assert_eq!(
            format!("{mac:?} {:?}", mac.bytes()[0]),
            "MacAddress(0a:1b:2c:3d:4e:5f) 10"
        );
    }

    proptest! {
        #[test]
        fn any_address_round_trips(bytes: [u8; 6]) {
            let mac = MacAddress::new(bytes);
            prop_assert_eq!(mac.to_string().parse::<MacAddress>().unwrap(), mac);
            let json = serde_json::to_string(&mac).unwrap();
            prop_assert_eq!(serde_json::from_str::<MacAddress>(&json).unwrap(), mac);
        }

        #[test]
        fn any_text_is_parsed_or_refused(text in ".{0,20}") {
            let _ = text.parse::<MacAddress>();
        }
    }
}
