//! Checks the form of a signature (version 4), in a header or in the query.
//!
//! The signature itself is not computed: any secret is accepted, because a secret in a test proves
//! nothing. Service and date are checked; key id and region only if the knobs say so.

use hyper::{HeaderMap, header};

use super::params::Params;
use crate::ec2::{error::Refusal, knobs::Knobs};

/// The only signature algorithm that EC2 accepts.
const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// Checks that a request is signed for this service, and if the knobs say so, with a known key id and for this region.
///
/// # Errors
///
/// 403 `MissingAuthenticationToken` without a signature, `IncompleteSignature` for a malformed
/// one, 401 `AuthFailure` for another service or region, or for an unknown key id.
pub(crate) fn check(
    headers: &HeaderMap,
    params: &Params,
    service: &str,
    knobs: &Knobs,
) -> Result<(), Refusal> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if headers.contains_key(header::AUTHORIZATION) {
        let value =
            text("authorization").ok_or_else(|| incomplete("Authorization header is not text."))?;
        let signed = from_header(value)?;
        let date = text("x-amz-date").or_else(|| text("date"));
        return signed.check(date, headers, service, knobs);
    }
    if let Some(algorithm) = params.peek("X-Amz-Algorithm") {
        if algorithm != ALGORITHM {
            return Err(incomplete("Unsupported AWS 'algorithm'."));
        }
        let part = |name: &str| {
            params
                .peek(name)
                .ok_or_else(|| incomplete(&format!("Query requires '{name}' parameter.")))
        };
        let signed = Signed {
            credential: part("X-Amz-Credential")?,
            headers: part("X-Amz-SignedHeaders")?,
            signature: part("X-Amz-Signature")?,
        };
        return signed.check(Some(part("X-Amz-Date")?), headers, service, knobs);
    }
    let message = "Request is missing Authentication Token";
    Err(Refusal::new(403, "MissingAuthenticationToken", message))
}

/// The parts of a signature.
#[derive(Debug)]
struct Signed<'a> {
    /// The key id and the scope: `key/date/region/service/aws4_request`.
    credential: &'a str,
    /// The names of the signed headers, separated by semicolons.
    headers: &'a str,
    /// The signature in hexadecimal digits.
    signature: &'a str,
}

/// Parses the `Authorization` header.
///
/// # Errors
///
/// `IncompleteSignature` for another algorithm, or for a missing part.
fn from_header(value: &str) -> Result<Signed<'_>, Refusal> {
    let rest = value.strip_prefix(ALGORITHM).map(str::trim_start);
    let rest = rest.ok_or_else(|| incomplete("Unsupported AWS 'algorithm'."))?;
    let part = |name: &str| {
        let parts = rest.split(',').map(str::trim);
        let found = parts
            .filter_map(|part| part.strip_prefix(name)?.strip_prefix('='))
            .next();
        found.ok_or_else(|| {
            incomplete(&format!(
                "Authorization header requires '{name}' parameter."
            ))
        })
    };
    Ok(Signed {
        credential: part("Credential")?,
        headers: part("SignedHeaders")?,
        signature: part("Signature")?,
    })
}

impl Signed<'_> {
    /// Checks the parts against the request, its service and the knobs. `date` is the date of the request.
    fn check(
        &self,
        date: Option<&str>,
        headers: &HeaderMap,
        expected: &str,
        knobs: &Knobs,
    ) -> Result<(), Refusal> {
        let date =
            date.ok_or_else(|| incomplete("A request needs 'X-Amz-Date' or a 'Date' header."))?;
        let mut scope: Vec<&str> = self.credential.rsplitn(5, '/').collect();
        scope.reverse();
        let [key, day, region, service, end] = scope[..] else {
            return Err(incomplete(
                "Credential must have exactly 5 slash-delimited elements.",
            ));
        };
        if end != "aws4_request" || !is_day(day) {
            return Err(incomplete(
                "Credential is not of the form key/date/region/service/aws4_request.",
            ));
        }
        // The older `Date` header has another form; only `X-Amz-Date` has the day of the scope.
        if date.ends_with('Z') && !date.starts_with(day) {
            return Err(incomplete(
                "Date in Credential scope does not match the request's date.",
            ));
        }
        if self.signature.len() != 64 || !self.signature.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(incomplete("Signature is not 64 hexadecimal digits."));
        }
        let mut signed = self.headers.split(';');
        if !signed.clone().any(|name| name == "host") {
            return Err(incomplete("'Host' must be a signed header."));
        }
        if let Some(name) = signed.find(|name| !headers.contains_key(*name)) {
            return Err(incomplete(&format!(
                "The signed header '{name}' is not in the request."
            )));
        }
        if service != expected {
            return Err(denied(&format!(
                "Credential should be scoped to correct service: '{expected}', not '{service}'."
            )));
        }
        if knobs.check_region && region != knobs.region {
            return Err(denied(&format!(
                "Credential should be scoped to a valid region, not '{region}'."
            )));
        }
        if !knobs.access_keys.is_empty() && !knobs.access_keys.contains(key) {
            return Err(denied(
                "AWS was not able to validate the provided access credentials",
            ));
        }
        Ok(())
    }
}

/// Returns whether a text is a date of eight digits.
fn is_day(text: &str) -> bool {
    text.len() == 8 && text.bytes().all(|b| b.is_ascii_digit())
}

/// Returns the refusal of a malformed signature.
fn incomplete(message: &str) -> Refusal {
    Refusal::client("IncompleteSignature", message)
}

/// Returns the refusal of a signature that is not accepted here.
fn denied(message: &str) -> Refusal {
    Refusal::new(401, "AuthFailure", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIGNATURE: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    /// Returns knobs that accept only the key id `test` and their own region.
    fn strict() -> Knobs {
        Knobs {
            access_keys: ["test".to_owned()].into(),
            check_region: true,
            ..Knobs::default()
        }
    }

    fn code(authorization: &str, date: &str) -> String {
        let mut headers = HeaderMap::new();
        headers.insert("host", "127.0.0.1".parse().unwrap());
        headers.insert("x-amz-date", date.parse().unwrap());
        headers.insert("authorization", authorization.parse().unwrap());
        let checked = check(&headers, &Params::default(), "ec2", &strict());
        checked.map_or_else(|refusal| refusal.code.into_owned(), |()| "ok".to_owned())
    }

    fn signed(credential: &str, names: &str, signature: &str) -> String {
        format!(
            "AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders={names}, Signature={signature}"
        )
    }

    #[test]
    fn signature_form_scope_and_key_are_checked() {
        let date = "20260102T030405Z";
        let good = "test/20260102/us-east-1/ec2/aws4_request";
        for (credential, names, signature, expected) in [
            (good, "host;x-amz-date", SIGNATURE, "ok"),
            (good, "x-amz-date", SIGNATURE, "IncompleteSignature"),
            (good, "host;x-missing", SIGNATURE, "IncompleteSignature"),
            (good, "host", "abc", "IncompleteSignature"),
            (
                "test/20260102/us-east-1/ec2",
                "host",
                SIGNATURE,
                "IncompleteSignature",
            ),
            (
                "test/20260103/us-east-1/ec2/aws4_request",
                "host",
                SIGNATURE,
                "IncompleteSignature",
            ),
            (
                "test/2026/us-east-1/ec2/aws4_request",
                "host",
                SIGNATURE,
                "IncompleteSignature",
            ),
            (
                "test/20260102/us-east-1/s3/aws4_request",
                "host",
                SIGNATURE,
                "AuthFailure",
            ),
            (
                "test/20260102/mars-1/ec2/aws4_request",
                "host",
                SIGNATURE,
                "AuthFailure",
            ),
            (
                "nobody/20260102/us-east-1/ec2/aws4_request",
                "host",
                SIGNATURE,
                "AuthFailure",
            ),
        ] {
            assert_eq!(
                code(&signed(credential, names, signature), date),
                expected,
                "{credential}"
            );
        }
        assert_eq!(code("AWS test:abc", date), "IncompleteSignature");
        assert_eq!(
            code("AWS4-HMAC-SHA256 Credential=x", date),
            "IncompleteSignature"
        );
    }

    #[test]
    fn any_key_and_region_are_accepted_by_default() {
        let mut headers = HeaderMap::new();
        headers.insert("host", "127.0.0.1".parse().unwrap());
        headers.insert("x-amz-date", "20260102T030405Z".parse().unwrap());
        let credential = "anybody/20260102/eu-west-1/ec2/aws4_request";
        let authorization = signed(credential, "host", SIGNATURE);
        headers.insert("authorization", authorization.parse().unwrap());
        let checked = |knobs: &Knobs| check(&headers, &Params::default(), "ec2", knobs);
        assert_eq!(checked(&Knobs::default()), Ok(()));
        assert!(checked(&strict()).is_err());
    }

    #[test]
    fn query_signature_is_accepted_and_none_is_refused() {
        let mut headers = HeaderMap::new();
        headers.insert("host", "127.0.0.1".parse().unwrap());
        let query = format!(
            "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=test/20260102/us-east-1/ec2/aws4_request\
             &X-Amz-Date=20260102T030405Z&X-Amz-SignedHeaders=host&X-Amz-Signature={SIGNATURE}"
        );
        let params = Params::parse(&query, b"").unwrap();
        assert_eq!(check(&headers, &params, "ec2", &Knobs::default()), Ok(()));
        let params = Params::parse("X-Amz-Algorithm=AWS4-HMAC-SHA256", b"").unwrap();
        assert_eq!(
            check(&headers, &params, "ec2", &Knobs::default())
                .unwrap_err()
                .code,
            "IncompleteSignature"
        );
        let refusal = check(&headers, &Params::default(), "ec2", &Knobs::default()).unwrap_err();
        assert_eq!(
            (refusal.status, &*refusal.code),
            (403, "MissingAuthenticationToken")
        );
    }
}
