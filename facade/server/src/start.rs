//! Starting and stopping the service: store, façade, loops, listener.

use std::{
    fmt,
    io::Write as _,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use axum::http::HeaderValue;
use fleetwright::InstanceProvisioner;
use fleetwright_compute::{Facade, facade::RunningFacade};
use fleetwright_identity::{Actor, ActorName};
use fleetwright_region::{monitor::Policy, secret::Keyring};
use fleetwright_store::{MemoryStore, Schema, Store};
use fleetwright_store_sqlite::SqliteStore;
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};

use crate::{
    auth::{
        Authenticator, jwt,
        tokens::{NewToken, Tokens},
    },
    config::{self, Config, Limits, RegionConfig},
    error::ServerError,
    follow::Followed,
    http::limit::CallerLimits,
    idempotency::{self, Idempotency},
    keys::{self, Keys},
    router,
    sample::{self, Sample},
    service::{Parts, Service},
    tls::Certificates,
};

/// How often the file of tokens is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// How often old idempotency keys are removed.
const PRUNE_EVERY: Duration = Duration::from_secs(3600);
/// How often the samples of histograms are put into their buckets, so that they take no memory until somebody reads the metrics.
const UPKEEP_EVERY: Duration = Duration::from_secs(5);
/// How often the sample's cloud is scanned.
const SAMPLE_TICK: Duration = Duration::from_secs(1);
/// The name of the database of the sample.
const DATABASE: &str = "fleet.db";

/// A service that serves until it is shut down.
///
/// ```
/// use fleetwright_server::Server;
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let folder = tempfile::tempdir()?;
/// let server = Server::sample(folder.path(), "127.0.0.1:0".parse()?).await?;
/// assert!(server.greeting().unwrap().contains("curl"));
/// server.shutdown().await;
/// # Ok(())
/// # }
/// ```
pub struct Server {
    address: SocketAddr,
    scheme: &'static str,
    greeting: Option<String>,
    token: Option<String>,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
    followers: Vec<JoinHandle<()>>,
    running: RunningFacade,
}

/// What a service is started with, beside its façade.
struct Settings {
    limits: Limits,
    listen: SocketAddr,
    token_file: Option<PathBuf>,
    keys: Option<jwt::Source>,
    certificates: Option<Certificates>,
    origins: Vec<HeaderValue>,
}

impl Server {
    /// Starts the sample in a folder: a simulated cloud, a SQLite file, a catalog, an organization with a project and a network, and a new token for
    /// its administrator.
    ///
    /// The simulated cloud forgets its machines when the program ends. In a folder that was used before, instances are then reported as lost.
    ///
    /// # Errors
    ///
    /// The folder or the address cannot be used.
    pub async fn sample(folder: &Path, listen: SocketAddr) -> Result<Self, ServerError> {
        Self::sample_on(open_store(&folder.join(DATABASE)).await?, listen).await
    }

    /// Starts the same sample with its records in memory: nothing is written to a disk, and nothing is left when the program ends.
    ///
    /// ```
    /// use fleetwright_server::Server;
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Server::sample_in_memory("127.0.0.1:0".parse()?).await?;
    /// assert!(server.greeting().unwrap().contains("curl"));
    /// server.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The address cannot be used.
    pub async fn sample_in_memory(listen: SocketAddr) -> Result<Self, ServerError> {
        Self::sample_on(Arc::new(MemoryStore::new(schema()?)), listen).await
    }

    async fn sample_on(store: Arc<dyn Store>, listen: SocketAddr) -> Result<Self, ServerError> {
        let keyring = new_keyring()?;
        // A simulated cloud is scanned at once, so that a change is seen within a second.
        let mut policy = Policy::default();
        policy.tick = SAMPLE_TICK;
        let facade = Facade::builder()
            .store(store)
            .catalog(sample::CATALOG)
            .region(sample_cloud().await?, sample::MAPPING)
            .keyring(keyring)
            .monitor_policy(policy)
            .build()
            .await?;
        let administrator = ActorName::new(sample::ADMINISTRATOR).map_err(ServerError::internal)?;
        bootstrap(&facade, &administrator).await?;
        let sample = sample::prepare(&facade).await?;
        let token =
            NewToken::generate().map_err(|error| ServerError::internal(error.to_string()))?;
        let tokens = Tokens::default().with(&token, administrator);
        let settings = Settings {
            limits: Limits::default(),
            listen,
            token_file: None,
            keys: None,
            certificates: None,
            origins: Vec::new(),
        };
        let started = Self::start(facade, tokens, settings).await?;
        Ok(started.with_sample(&sample, token.text))
    }

    /// Starts the service that a configuration file describes. `listen` replaces the address of the file.
    ///
    /// # Errors
    ///
    /// A file has mistakes, or the store, a region or the address cannot be used.
    pub async fn from_file(path: &Path, listen: Option<SocketAddr>) -> Result<Self, ServerError> {
        let config = config::load(path)?;
        let tokens = match &config.tokens {
            Some(file) => config::load_tokens(file)?,
            None => Tokens::default(),
        };
        let facade = build(&config).await?;
        bootstrap(&facade, &config.administrator).await?;
        let keys = match config.jwt {
            Some(jwt) => Some(jwt::Source::open(jwt).await?),
            None => None,
        };
        let settings = Settings {
            limits: config.limits,
            listen: listen.unwrap_or(config.listen),
            token_file: config.tokens,
            keys,
            certificates: config.tls.map(Certificates::open).transpose()?,
            origins: config.origins,
        };
        Self::start(facade, tokens, settings).await
    }

    async fn start(
        facade: Facade,
        tokens: Tokens,
        settings: Settings,
    ) -> Result<Self, ServerError> {
        let Settings {
            limits,
            listen,
            token_file,
            keys,
            certificates,
            origins,
        } = settings;
        let scheme = if certificates.is_some() {
            "https"
        } else {
            "http"
        };
        let tls = certificates
            .as_ref()
            .map(Certificates::acceptor)
            .transpose()?;
        let verifier = keys.as_ref().map(jwt::Source::verifier);
        let (stop, stopping) = watch::channel(false);
        let idempotency = Idempotency::new(Arc::clone(&facade.store), Arc::clone(&facade.clock));
        let service = Service::new(Parts {
            authenticator: Authenticator::new(tokens, verifier),
            keys: Keys::open(&*facade.store).await?,
            idempotency: idempotency.map_err(ServerError::internal)?,
            callers: CallerLimits::new(&limits),
            limits: limits.clone(),
            metrics: crate::telemetry::metrics(),
            readiness: tokio::sync::Mutex::default(),
            stopping: stopping.clone(),
            facade,
        });
        let failed = |source| ServerError::Listen {
            address: listen,
            source,
        };
        let listener = TcpListener::bind(listen).await.map_err(failed)?;
        let address = listener.local_addr()?;
        let router = router::router(&service, origins);
        let mut followers = vec![
            tokio::spawn(prune(service.clone())),
            tokio::spawn(keep_metrics_small(service.clone())),
        ];
        if let Some(file) = token_file {
            followers.push(tokio::spawn(follow_tokens(service.clone(), file)));
        }
        followers.extend(certificates.map(|files| tokio::spawn(files.follow())));
        followers.extend(keys.map(|keys| tokio::spawn(jwt::follow(keys))));
        let running = service.facade.start();
        let serving = tokio::spawn(async move {
            crate::listen::serve(listener, router, tls, &limits, stopping).await;
        });
        Ok(Self {
            address,
            scheme,
            greeting: None,
            token: None,
            stop,
            serving,
            followers,
            running,
        })
    }

    fn with_sample(mut self, sample: &Sample, token: String) -> Self {
        let address = format!("http://{}", self.address);
        self.greeting = Some(sample::greeting(&address, &token, sample));
        self.token = Some(token);
        self
    }

    /// The address that it listens at.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What the sample prints when it is ready: a token, requests that can be pasted, and pages.
    pub fn greeting(&self) -> Option<&str> {
        self.greeting.as_deref()
    }

    /// The token of the sample's administrator.
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// Accepts no more connections, finishes the requests that were accepted, ends the watches, and stops the loops.
    pub async fn shutdown(self) {
        // The receivers are gone if serving has ended.
        let _ = self.stop.send(true);
        let _ = self.serving.await;
        for follower in self.followers {
            follower.abort();
            let _ = follower.await;
        }
        self.running.shutdown().await;
    }
}

impl fmt::Debug for Server {
    /// Without the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// Writes the greeting, or one line with the address.
pub(crate) fn announce(server: &Server) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    match server.greeting() {
        Some(greeting) => out.write_all(greeting.as_bytes())?,
        None => writeln!(
            out,
            "fleetwright-server is ready at {}://{}",
            server.scheme,
            server.address()
        )?,
    }
    out.flush()
}

async fn build(config: &Config) -> Result<Facade, ServerError> {
    let mut policy = Policy::default();
    policy.tick = config.scan_interval;
    let mut builder = Facade::builder()
        .store(open_store(&config.database).await?)
        .catalog(config::load_text(&config.catalog)?)
        .monitor_policy(policy);
    for RegionConfig { cloud, mapping } in &config.regions {
        builder = builder.region(cloud.open().await?, config::load_text(mapping)?);
    }
    builder = match &config.keyring {
        Some(keyring) => {
            let keyring = Keyring::from_file(keyring).map_err(config::ConfigError::from)?;
            builder.keyring(Arc::new(keyring))
        }
        None => builder.without_server_keys(),
    };
    Ok(builder.build().await?)
}

/// Makes the administrator the first one, unless there is one already.
async fn bootstrap(facade: &Facade, administrator: &ActorName) -> Result<(), ServerError> {
    use fleetwright_identity::TenancyError;
    let actor = Actor::User(administrator.clone());
    match facade.tenancy.bootstrap(&actor).await {
        Ok(_) | Err(TenancyError::AlreadyBootstrapped) => Ok(()),
        Err(error) => Err(ServerError::internal(error)),
    }
}

async fn open_store(path: &Path) -> Result<Arc<dyn Store>, ServerError> {
    Ok(Arc::new(SqliteStore::open(path, schema()?).await?))
}

/// The kinds of records that the façade and the service store.
fn schema() -> Result<Schema, ServerError> {
    let schema = fleetwright_compute::schema::add_all_kinds(Schema::builder())
        .kind(keys::KIND)
        .kind(idempotency::KIND)
        .index(idempotency::BY_CALLER, ["/caller"]);
    let schema = schema.build();
    Ok(schema.map_err(fleetwright_store::StoreError::from)?)
}

/// The cloud of the sample.
async fn sample_cloud() -> Result<Arc<dyn InstanceProvisioner>, ServerError> {
    #[cfg(feature = "memory")]
    return crate::cloud::Cloud::Memory.open().await;
    #[cfg(not(feature = "memory"))]
    Err(ServerError::internal(
        "this program was built without the sample: build it with `--features memory`, or name a configuration with --config",
    ))
}

/// A keyring that is as short-lived as the machines of the simulated cloud.
fn new_keyring() -> Result<Arc<Keyring>, ServerError> {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let bytes: [u8; 32] = keys::random()?;
    let line = zeroize::Zeroizing::new(format!("sample:{}", STANDARD.encode(bytes)));
    let keyring: Keyring = line.parse().map_err(config::ConfigError::from)?;
    Ok(Arc::new(keyring))
}

/// Reads the file of tokens again when it has changed. A file with mistakes is reported, and the last good one stays in force.
async fn follow_tokens(service: Service, file: PathBuf) {
    let mut followed = Followed::new([file.clone()]);
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        match followed.look(|| config::load_tokens(&file)) {
            None => {}
            Some(Ok(tokens)) => {
                service.authenticator.set_tokens(tokens);
                tracing::info!(file = %file.display(), "the tokens were read again");
            }
            Some(Err(error)) => {
                tracing::warn!(%error, "the tokens are not read again: those from before stay valid");
            }
        }
    }
}

async fn keep_metrics_small(service: Service) {
    loop {
        tokio::time::sleep(UPKEEP_EVERY).await;
        service.metrics.run_upkeep();
    }
}

async fn prune(service: Service) {
    loop {
        tokio::time::sleep(PRUNE_EVERY).await;
        if let Err(error) = service.idempotency.prune_all().await {
            tracing::warn!(%error, "old idempotency keys are not removed; it is retried");
        }
    }
}
