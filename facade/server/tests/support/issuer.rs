//! An identity provider: keys, tokens that are right or wrong in a chosen way, and an address with its keys.

#![allow(dead_code, unreachable_pub, reason = "each test program uses a part")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests may panic"
)]

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, EncodingKey, crypto, jwk::Jwk};
use serde_json::{Value, json};

/// The issuer of the tokens.
pub const ISSUER: &str = "https://login.example.com";
/// For whom the tokens are.
pub const AUDIENCE: &str = "fleetwright";

/// One key of the identity provider.
pub struct SigningKey {
    pub id: String,
    algorithm: Algorithm,
    private: EncodingKey,
    /// The public key as PEM.
    pub public: String,
}

impl SigningKey {
    pub fn ec(id: &str) -> Self {
        let pair = rcgen::KeyPair::generate().unwrap();
        let private = EncodingKey::from_ec_pem(pair.serialize_pem().as_bytes()).unwrap();
        Self {
            id: id.to_owned(),
            algorithm: Algorithm::ES256,
            private,
            public: pair.public_key_pem(),
        }
    }

    pub fn rsa(id: &str) -> Self {
        let size = rcgen::RsaKeySize::_2048;
        let pair = rcgen::KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, size).unwrap();
        let private = EncodingKey::from_rsa_pem(pair.serialize_pem().as_bytes()).unwrap();
        Self {
            id: id.to_owned(),
            algorithm: Algorithm::RS256,
            private,
            public: pair.public_key_pem(),
        }
    }

    /// The public key, as the identity provider publishes it.
    pub fn jwk(&self) -> Value {
        let mut jwk = Jwk::from_encoding_key(&self.private, self.algorithm).unwrap();
        jwk.common.key_id = Some(self.id.clone());
        serde_json::to_value(jwk).unwrap()
    }

    /// The header of its tokens.
    pub fn header(&self) -> Value {
        json!({"alg": format!("{:?}", self.algorithm), "typ": "JWT", "kid": self.id})
    }

    /// A token with these claims.
    pub fn token(&self, claims: &Value) -> String {
        self.sign(&self.header(), claims)
    }

    /// A token with this header, whatever it says, signed with this key.
    pub fn sign(&self, header: &Value, claims: &Value) -> String {
        let message = message(header, claims);
        let signature = crypto::sign(message.as_bytes(), &self.private, self.algorithm);
        format!("{message}.{}", signature.unwrap())
    }
}

/// The part of a token that is signed.
pub fn message(header: &Value, claims: &Value) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}", part(header), part(claims))
}

/// A token that is signed with a secret.
pub fn sign_with_secret(header: &Value, claims: &Value, secret: &[u8]) -> String {
    let message = message(header, claims);
    let key = EncodingKey::from_secret(secret);
    let signature = crypto::sign(message.as_bytes(), &key, Algorithm::HS256).unwrap();
    format!("{message}.{signature}")
}

/// The claims of a valid token.
pub fn claims(subject: &str, now: i64) -> Value {
    json!({
        "iss": ISSUER, "aud": AUDIENCE, "sub": subject, "iat": now - 10, "nbf": now - 10, "exp": now + 3600,
    })
}

/// The text of a set of keys.
pub fn key_set(keys: &[&SigningKey]) -> String {
    let keys: Vec<_> = keys.iter().map(|key| key.jwk()).collect();
    json!({ "keys": keys }).to_string()
}

/// An address with keys, which counts how often it is read.
pub struct KeyServer {
    pub address: SocketAddr,
    response: Arc<Mutex<Vec<u8>>>,
    reads: Arc<AtomicUsize>,
}

impl KeyServer {
    pub fn start(keys: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            response: Arc::new(Mutex::new(ok(keys))),
            reads: Arc::default(),
        };
        let (response, reads) = (Arc::clone(&server.response), Arc::clone(&server.reads));
        // It ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut request = Vec::new();
                let mut buffer = [0; 1024];
                while !request.windows(4).any(|end| end == b"\r\n\r\n") {
                    match stream.read(&mut buffer) {
                        Ok(0) | Err(_) => break,
                        Ok(read) => request.extend_from_slice(&buffer[..read]),
                    }
                }
                let response = response.lock().unwrap().clone();
                reads.fetch_add(1, Ordering::SeqCst);
                // A client that has enough closes.
                let _ = stream.write_all(&response);
            }
        });
        server
    }

    pub fn url(&self) -> String {
        format!("http://{}/keys", self.address)
    }

    pub fn reads(&self) -> usize {
        self.reads.load(Ordering::SeqCst)
    }

    pub fn set_keys(&self, keys: &str) {
        self.set_response(&ok(keys));
    }

    /// Sends these bytes to whoever reads.
    pub fn set_response(&self, response: &[u8]) {
        *self.response.lock().unwrap() = response.to_vec();
    }
}

fn ok(body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
        .into_bytes()
}
