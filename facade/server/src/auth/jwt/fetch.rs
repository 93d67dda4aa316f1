//! Reading keys from their file and address, in the background. A failure keeps the keys that are known.

use std::{path::Path, sync::Arc, time::Duration};

use reqwest::{Client, Url, redirect::Policy};
use tokio::time::{Instant, sleep_until, timeout};

use super::{JwtConfig, KeySet, KeySetError, Verifier};
use crate::{config::ConfigError, follow::Followed, meaning::chain};

/// How long reading from the address may take.
const WITHIN: Duration = Duration::from_secs(10);
/// The longest response, in bytes.
const MAX_RESPONSE: usize = 512 * 1024;
/// How often the file is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Why keys cannot be read from an address.
#[derive(Debug, thiserror::Error)]
enum FetchError {
    #[error("the request failed")]
    Request(#[from] reqwest::Error),
    #[error("it did not arrive within {} seconds", WITHIN.as_secs())]
    TooSlow,
    #[error("the response has the status {0}")]
    Status(u16),
    #[error("the response is larger than {MAX_RESPONSE} bytes")]
    TooLarge,
    #[error(transparent)]
    Keys(#[from] KeySetError),
}

/// Where keys come from, and what was read last.
#[derive(Debug)]
pub(crate) struct Source {
    verifier: Arc<Verifier>,
    /// The address, with the client that reads it.
    address: Option<(Client, Url)>,
    from_file: Option<Vec<u8>>,
    from_url: Option<Vec<u8>>,
}

impl Source {
    /// Reads the file, which must be good, and tries the address once.
    ///
    /// # Errors
    ///
    /// The file cannot be read or has no keys. An address that does not answer is logged and tried again: tokens of the file of tokens work
    /// without it.
    pub(crate) async fn open(config: JwtConfig) -> Result<Self, crate::ServerError> {
        let address = match config.url.clone() {
            Some(url) => Some((client()?, url)),
            None => None,
        };
        let mut source = Self {
            verifier: Arc::new(Verifier::new(config)),
            address,
            from_file: None,
            from_url: None,
        };
        if let Some(file) = source.verifier.config.file.clone() {
            source.from_file = Some(load(&file)?);
        }
        source.publish();
        source.fetch().await;
        Ok(source)
    }

    pub(crate) fn verifier(&self) -> Arc<Verifier> {
        Arc::clone(&self.verifier)
    }

    /// Reads the address. Returns whether that worked.
    async fn fetch(&mut self) -> bool {
        let Some((client, url)) = &self.address else {
            return true;
        };
        let read = timeout(WITHIN, read(client, url.clone())).await;
        match read.unwrap_or(Err(FetchError::TooSlow)) {
            Ok(text) => {
                self.from_url = Some(text);
                self.publish();
                true
            }
            Err(error) => {
                let error = chain(&error);
                tracing::warn!(%url, error, "the keys of JWTs cannot be read: those from before stay valid, and it is tried again");
                false
            }
        }
    }

    /// Uses the keys that were read last. Keys of the file come first.
    fn publish(&self) {
        let parse = |text: &Option<Vec<u8>>| {
            let set = text.as_ref().and_then(|text| KeySet::parse(text).ok());
            set.unwrap_or_default()
        };
        let keys = parse(&self.from_file).merge(parse(&self.from_url));
        tracing::debug!(keys = keys.len(), "the keys of JWTs were read");
        self.verifier.set_keys(keys);
    }
}

/// Reads the keys again: the address after each interval and when a token names an unknown key, the file when it has changed.
pub(crate) async fn follow(mut source: Source) {
    let verifier = source.verifier();
    let config = &verifier.config;
    let file = config.file.clone();
    let mut file = file.map(|file| Followed::new([file]));
    let mut fetched = Instant::now();
    let mut worked = source.from_url.is_some() || config.url.is_none();
    loop {
        let next = fetched + if worked { config.refresh } else { config.retry };
        let look = Instant::now() + LOOK_EVERY;
        tokio::select! {
            () = sleep_until(next), if config.url.is_some() => {}
            () = unknown_key(&verifier, fetched + config.retry), if config.url.is_some() => {}
            () = sleep_until(look), if file.is_some() => {
                if let Some(file) = &mut file {
                    read_file_again(&mut source, file);
                }
                continue;
            }
            else => return,
        }
        worked = source.fetch().await;
        fetched = Instant::now();
    }
}

/// Returns when a token has named an unknown key, but not before a time.
async fn unknown_key(verifier: &Verifier, not_before: Instant) {
    sleep_until(not_before).await;
    verifier.unknown_key.notified().await;
}

fn read_file_again(source: &mut Source, followed: &mut Followed<1>) {
    let Some(file) = source.verifier.config.file.clone() else {
        return;
    };
    match followed.look(|| load(&file)) {
        None => {}
        Some(Ok(text)) => {
            source.from_file = Some(text);
            source.publish();
            tracing::info!(file = %file.display(), "the keys of JWTs were read again");
        }
        Some(Err(error)) => {
            let error = chain(&error);
            tracing::warn!(
                error,
                "the keys of JWTs are not read again: those from before stay valid"
            );
        }
    }
}

/// Reads a file with keys.
pub(crate) fn load(file: &Path) -> Result<Vec<u8>, ConfigError> {
    let text = std::fs::read(file).map_err(|source| ConfigError::Unreadable {
        path: file.to_owned(),
        source,
    })?;
    KeySet::parse(&text).map_err(|error| ConfigError::unusable(file, error))?;
    Ok(text)
}

/// A client that goes nowhere else than it is told.
fn client() -> Result<Client, crate::ServerError> {
    let builder = Client::builder().redirect(Policy::none()).timeout(WITHIN);
    builder.build().map_err(crate::ServerError::internal)
}

async fn read(client: &Client, url: Url) -> Result<Vec<u8>, FetchError> {
    let mut response = client.get(url).send().await?;
    if !response.status().is_success() {
        return Err(FetchError::Status(response.status().as_u16()));
    }
    let mut text = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        text.extend_from_slice(&chunk);
        if text.len() > MAX_RESPONSE {
            return Err(FetchError::TooLarge);
        }
    }
    KeySet::parse(&text)?;
    Ok(text)
}
