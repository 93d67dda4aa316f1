//! What operators set for each process: credentials, the mapping file and the machine's clock. It outlives the process.

mod clock;
mod mapping;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use fleetwright_runtime::clock::TokioClock;
use tokio::{sync::watch, time::Instant};

pub use clock::JumpingClock;
pub use mapping::{Entry, MappingFile, catalog_name};

/// The account that the credentials of a process belong to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Credentials {
    /// The account of the region.
    #[default]
    Right,
    /// None: the cloud refuses every call.
    Refused,
    /// Another account, without machines.
    EmptyAccount,
    /// Another account, with machines of others, one of them in a region of the same name.
    OtherAccount,
}

impl Credentials {
    /// Returns whether the cloud accepts them for another account than the region's.
    pub const fn is_of_another_account(self) -> bool {
        match self {
            Self::Right | Self::Refused => false,
            Self::EmptyAccount | Self::OtherAccount => true,
        }
    }
}

/// The mapping that a process has loaded, and the one before.
#[derive(Debug, Default)]
struct Loaded {
    now: MappingFile,
    before: Option<(Instant, MappingFile)>,
}

/// How long a process may act by a mapping that was replaced.
const REPLACED_FOR: Duration = Duration::from_secs(5);

/// The environment of one process.
#[derive(Debug)]
pub struct Environment {
    credentials: Mutex<Credentials>,
    mapping: Mutex<MappingFile>,
    loaded: Mutex<Loaded>,
    /// The clock of the machine that the process runs on.
    pub clock: Arc<JumpingClock>,
    /// Whether the process keeps the catalog that it has, whatever is loaded elsewhere.
    pub keeps_catalog: watch::Sender<bool>,
}

impl Environment {
    /// Creates an environment that is right in every respect.
    pub fn new(clock: TokioClock) -> Self {
        Self {
            credentials: Mutex::default(),
            mapping: Mutex::default(),
            loaded: Mutex::default(),
            clock: Arc::new(JumpingClock::new(clock)),
            keeps_catalog: watch::Sender::new(false),
        }
    }

    /// Returns the credentials.
    pub fn credentials(&self) -> Credentials {
        *lock(&self.credentials)
    }

    /// Sets other credentials. Calls from now on use them.
    pub fn set_credentials(&self, credentials: Credentials) {
        *lock(&self.credentials) = credentials;
    }

    /// Returns the mapping file.
    pub fn mapping(&self) -> MappingFile {
        lock(&self.mapping).clone()
    }

    /// Edits the mapping file. A process reads it when it starts and when an operator loads it.
    pub fn edit_mapping(&self, edit: impl FnOnce(&mut MappingFile)) {
        edit(&mut lock(&self.mapping));
    }

    /// Remembers that the process has loaded a mapping.
    pub fn set_loaded(&self, mapping: MappingFile) {
        let mut loaded = lock(&self.loaded);
        let before = std::mem::replace(&mut loaded.now, mapping);
        loaded.before = Some((Instant::now(), before));
    }

    /// Returns the mapping that the process has loaded, and the one that it had until a moment ago.
    pub fn recent_mappings(&self) -> Vec<MappingFile> {
        let loaded = lock(&self.loaded);
        let before = loaded.before.as_ref();
        let before = before.filter(|(replaced, _)| replaced.elapsed() < REPLACED_FOR);
        let before = before.map(|(_, mapping)| mapping.clone());
        before.into_iter().chain([loaded.now.clone()]).collect()
    }

    /// Returns whether credentials and clock are right.
    pub fn is_right(&self) -> bool {
        self.credentials() == Credentials::Right && self.clock.is_right()
    }

    /// Corrects everything.
    pub fn correct(&self) {
        self.set_credentials(Credentials::Right);
        self.edit_mapping(|mapping| *mapping = MappingFile::default());
        self.clock.correct();
        self.keeps_catalog.send_replace(false);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
