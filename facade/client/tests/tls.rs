//! Encrypted connections: which certificate authorities are trusted.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests may panic"
)]

use std::path::Path;

use fleetwright_client::{Client, Effect, Error};
use fleetwright_server::Server;

/// The sample's files in a folder, with a certificate that nobody has signed. Returns the certificate.
fn configure(folder: &Path) -> String {
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    write("tls.pem", &made.cert.pem());
    write("tls.key", &made.signing_key.serialize_pem());
    write("tokens.toml", "");
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../server/src/sample");
    for name in ["catalog.toml", "mapping.toml"] {
        std::fs::copy(sample.join(name), folder.join(name)).unwrap();
    }
    let config = "database = 'fleet.db'\ncatalog = 'catalog.toml'\ntokens = 'tokens.toml'\nadministrator = 'olga'\n\
        [[region]]\nprovider = 'memory'\nmapping = 'mapping.toml'\n[tls]\ncertificate = 'tls.pem'\nkey = 'tls.key'\n";
    write("server.toml", config);
    made.cert.pem()
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_given_authorities_are_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = configure(folder.path());
    let listen = "127.0.0.1:0".parse().unwrap();
    let config = folder.path().join("server.toml");
    let server = Server::from_file(&config, Some(listen)).await.unwrap();
    let url = format!("https://localhost:{}", server.address().port());

    let trusting = Client::builder(&url).certificate_authorities(certificate);
    trusting.build().unwrap().read_health().await.unwrap();

    // Neither the system nor another authority knows the certificate, and nothing is sent.
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let strangers = [
        Client::builder(&url),
        Client::builder(&url).certificate_authorities(other.cert.pem()),
    ];
    for stranger in strangers {
        let error = stranger.build().unwrap().read_health().await.unwrap_err();
        let Error::Connection { effect, source, .. } = &error else {
            panic!("{error:?}")
        };
        assert_eq!(*effect, Effect::None);
        assert!(source.to_string().contains("certificate"), "{source}");
    }
    server.shutdown().await;
}
