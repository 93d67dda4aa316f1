//! Whole numbers in requests. To JSON Schema `82.0` is a whole number, and some programs write it like that.

use serde::{Deserialize, Deserializer, de::Error};
use serde_json::Number;

/// The largest number that a floating point number holds exactly.
const LARGEST_EXACT: f64 = 9_007_199_254_740_992.0;

/// Reads a whole number.
pub(crate) fn whole<'de, D: Deserializer<'de>, N: TryFrom<u64>>(reader: D) -> Result<N, D::Error> {
    parse(&Number::deserialize(reader)?)
}

/// Reads a whole number that may be left out.
pub(crate) fn optional<'de, D: Deserializer<'de>, N: TryFrom<u64>>(
    reader: D,
) -> Result<Option<N>, D::Error> {
    let number: Option<Number> = Option::deserialize(reader)?;
    number.as_ref().map(parse).transpose()
}

fn parse<N: TryFrom<u64>, E: Error>(number: &Number) -> Result<N, E> {
    let whole = number.as_u64().or_else(|| {
        let number = number.as_f64()?;
        let is_whole = number.fract() == 0.0 && (0.0..=LARGEST_EXACT).contains(&number);
        // Checked: whole, not negative, and exact.
        is_whole.then_some(number as u64)
    });
    let found = whole.and_then(|whole| N::try_from(whole).ok());
    found.ok_or_else(|| {
        let bits = 8 * size_of::<N>();
        E::custom(format!(
            "invalid number {number}: expected a whole number from 0 on, of at most {bits} bits"
        ))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::{QuotaLimit, Rule};

    #[test]
    fn a_whole_number_may_be_written_as_a_floating_point_number() {
        let read = |limit: serde_json::Value| {
            let read: Result<QuotaLimit, _> =
                serde_json::from_value(json!({"kind": "servers", "limit": limit}));
            read.map(|read| read.limit)
        };
        assert_eq!(read(json!(8.0)).unwrap(), 8);
        assert_eq!(read(json!(u64::MAX)).unwrap(), u64::MAX);
        for wrong in [
            json!(8.5),
            json!(-1),
            json!(-1.0),
            json!(1e300),
            json!("8"),
            json!(null),
        ] {
            assert!(read(wrong.clone()).is_err(), "{wrong}");
        }
        let rule = |port: serde_json::Value| {
            let rule = json!({"direction": "ingress", "protocol": "tcp", "port": port});
            serde_json::from_value::<Rule>(rule).map(|rule| rule.port)
        };
        assert_eq!(rule(json!(443.0)).unwrap(), Some(443));
        assert_eq!(rule(json!(null)).unwrap(), None);
        let error = rule(json!(65536)).unwrap_err().to_string();
        assert!(error.contains("at most 16 bits"), "{error}");
    }
}
