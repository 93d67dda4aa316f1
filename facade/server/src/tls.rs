//! Encrypted connections: the certificate that is shown, read again when its files change.
//!
//! Owns the files' text. It never stops the service because of a broken file: the certificate from before stays in use.

use std::{fs, io, path::Path, sync::Arc, sync::PoisonError, sync::RwLock, time::Duration};

use rustls::{
    ServerConfig,
    crypto::{CryptoProvider, aws_lc_rs},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use tokio_rustls::TlsAcceptor;

use crate::{
    config::{ConfigError, TlsConfig},
    error::ServerError,
    follow::Followed,
    meaning::chain,
};

/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// What is wrong with the files.
#[derive(Debug, thiserror::Error)]
enum CertificateError {
    #[error("it is no PEM file")]
    Pem(#[from] rustls_pki_types::pem::Error),
    #[error(
        "it has no certificate: expected the certificate of the service, then those of its issuers"
    )]
    Empty,
    #[error("certificate and key cannot be used together")]
    Pair(#[from] rustls::Error),
}

/// The certificate in use.
#[derive(Debug)]
struct Current(RwLock<Arc<CertifiedKey>>);

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(
            &self.0.read().unwrap_or_else(PoisonError::into_inner),
        ))
    }
}

/// The files of a certificate, and the one in use.
#[derive(Debug)]
pub(crate) struct Certificates {
    config: TlsConfig,
    current: Arc<Current>,
}

impl Certificates {
    /// Reads the files.
    pub(crate) fn open(config: TlsConfig) -> Result<Self, ServerError> {
        let key = load(&config)?;
        let current = Arc::new(Current(RwLock::new(key)));
        Ok(Self { config, current })
    }

    /// Accepts connections that show the certificate of the moment.
    pub(crate) fn acceptor(&self) -> Result<TlsAcceptor, ServerError> {
        let config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(ServerError::internal)?;
        let mut config = config
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&self.current) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }

    /// Reads the files again when they have changed.
    pub(crate) async fn follow(self) {
        let files = [self.config.certificate.clone(), self.config.key.clone()];
        let mut followed = Followed::new(files);
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            match followed.look(|| load(&self.config)) {
                None => {}
                Some(Ok(key)) => {
                    let mut current = self
                        .current
                        .0
                        .write()
                        .unwrap_or_else(PoisonError::into_inner);
                    *current = key;
                    tracing::info!("the certificate was read again");
                }
                Some(Err(error)) => {
                    let error = chain(&error);
                    tracing::warn!(
                        error,
                        "the certificate is not read again: the one from before stays in use"
                    );
                }
            }
        }
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

/// Reads certificate and key, and checks that they belong together.
pub(crate) fn load(config: &TlsConfig) -> Result<Arc<CertifiedKey>, ConfigError> {
    let text = |path: &Path| -> Result<Vec<u8>, ConfigError> {
        let read: io::Result<_> = fs::read(path);
        read.map_err(|source| ConfigError::Unreadable {
            path: path.to_owned(),
            source,
        })
    };
    let chain = text(&config.certificate)?;
    let chain = certificates(&chain);
    let chain = chain.map_err(|error| ConfigError::unusable(&config.certificate, error))?;
    let key = zeroize::Zeroizing::new(text(&config.key)?);
    let unusable = |error: CertificateError| ConfigError::unusable(&config.key, error);
    let key = PrivateKeyDer::from_pem_slice(&key).map_err(|error| unusable(error.into()))?;
    let pair = CertifiedKey::from_der(chain, key, &provider());
    pair.map(Arc::new).map_err(|error| unusable(error.into()))
}

fn certificates(text: &[u8]) -> Result<Vec<CertificateDer<'static>>, CertificateError> {
    let chain = CertificateDer::pem_slice_iter(text).collect::<Result<Vec<_>, _>>()?;
    if chain.is_empty() {
        return Err(CertificateError::Empty);
    }
    Ok(chain)
}
