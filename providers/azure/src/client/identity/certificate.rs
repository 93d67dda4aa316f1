//! Assertions signed with a client certificate. Pure.
//!
//! Owns the format of an assertion: "Microsoft identity platform application authentication
//! certificate credentials". `azure_identity` signs with OpenSSL. This module signs with `ring`, so
//! that building the provider needs no C library of the system.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::{DateTime, TimeDelta, Utc};
use ring::{
    digest,
    rand::SystemRandom,
    signature::{RSA_PSS_SHA256, RsaKeyPair},
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};
use serde_json::json;
use uuid::Uuid;

/// How long an assertion is valid.
const LIFETIME: TimeDelta = TimeDelta::minutes(10);

/// Signs an assertion for `audience` with the certificate and the key of a PEM file.
///
/// # Errors
///
/// What is wrong with the file. Contains nothing of it.
pub(super) fn sign(
    pem: &[u8],
    audience: &str,
    client: &str,
    now: DateTime<Utc>,
    id: Uuid,
) -> Result<String, &'static str> {
    let certificate =
        CertificateDer::from_pem_slice(pem).map_err(|_| "contains no certificate in PEM format")?;
    let key = key(pem)?;
    let thumbprint = digest::digest(&digest::SHA256, &certificate);
    let header = json!({
        "alg": "PS256",
        "typ": "JWT",
        "x5t#S256": URL_SAFE_NO_PAD.encode(thumbprint),
    });
    let claims = json!({
        "aud": audience,
        "iss": client,
        "sub": client,
        "jti": id.to_string(),
        "nbf": now.timestamp(),
        "iat": now.timestamp(),
        "exp": (now + LIFETIME).timestamp(),
    });
    let part = |value: serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let text = format!("{}.{}", part(header), part(claims));
    let mut signature = vec![0; key.public().modulus_len()];
    key.sign(
        &RSA_PSS_SHA256,
        &SystemRandom::new(),
        text.as_bytes(),
        &mut signature,
    )
    .map_err(|_| "contains a key that cannot sign")?;
    Ok(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

/// Reads the RSA key.
fn key(pem: &[u8]) -> Result<RsaKeyPair, &'static str> {
    const NO_RSA: &str = "must contain an RSA key of 2048 to 4096 bits";
    let key = PrivateKeyDer::from_pem_slice(pem)
        .map_err(|_| "contains no key in PEM format without a password")?;
    let key = if let PrivateKeyDer::Pkcs8(der) = &key {
        RsaKeyPair::from_pkcs8(der.secret_pkcs8_der())
    } else if let PrivateKeyDer::Pkcs1(der) = &key {
        RsaKeyPair::from_der(der.secret_pkcs1_der())
    } else {
        return Err(NO_RSA);
    };
    key.map_err(|_| NO_RSA)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::signature::{RSA_PSS_2048_8192_SHA256, UnparsedPublicKey};

    const PKCS8: &[u8] = include_bytes!("../../../tests/identity/certificate.pem");
    const PKCS1: &[u8] = include_bytes!("../../../tests/identity/certificate-pkcs1.pem");
    const ELLIPTIC: &[u8] = include_bytes!("../../../tests/identity/certificate-elliptic.pem");

    #[test]
    fn assertion_is_signed_and_names_certificate_audience_and_client() {
        let now = DateTime::from_timestamp(1_790_000_000, 0).unwrap();
        for pem in [PKCS8, PKCS1] {
            let audience = "https://login.microsoftonline.com/t-1/oauth2/v2.0/token";
            let signed = sign(pem, audience, "c-1", now, Uuid::nil()).unwrap();
            let (text, signature) = signed.rsplit_once('.').unwrap();
            let public = key(pem).unwrap().public().as_ref().to_vec();
            let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
            UnparsedPublicKey::new(&RSA_PSS_2048_8192_SHA256, public)
                .verify(text.as_bytes(), &signature)
                .unwrap();
            let (header, claims) = text.split_once('.').unwrap();
            let read = |part| -> serde_json::Value {
                serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
            };
            assert_eq!(
                read(header),
                json!({
                    "alg": "PS256",
                    "typ": "JWT",
                    // By `openssl x509 -outform DER | openssl dgst -sha256`.
                    "x5t#S256": "T7UaxfdU0JPsSLbHDgsDKAUE9NNc4XLF1L__1Twqf9Q",
                })
            );
            assert_eq!(
                read(claims),
                json!({
                    "aud": audience,
                    "iss": "c-1",
                    "sub": "c-1",
                    "jti": Uuid::nil().to_string(),
                    "nbf": 1_790_000_000,
                    "iat": 1_790_000_000,
                    "exp": 1_790_000_600,
                })
            );
        }
    }

    #[test]
    fn unusable_file_is_refused_with_the_reason() {
        let text = String::from_utf8(PKCS8.to_vec()).unwrap();
        let (key, certificate) = text.split_at(text.find("-----BEGIN CERT").unwrap());
        let encrypted = text.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY");
        for (pem, word) in [
            (ELLIPTIC, "RSA"),
            (key.as_bytes(), "no certificate"),
            (certificate.as_bytes(), "no key"),
            (encrypted.as_bytes(), "password"),
            (b"".as_slice(), "no certificate"),
            (b"\x30\x82\x00\x00PKCS12".as_slice(), "PEM"),
        ] {
            let problem = sign(pem, "a", "c", DateTime::UNIX_EPOCH, Uuid::nil()).unwrap_err();
            assert!(problem.contains(word), "{problem}");
        }
    }
}
