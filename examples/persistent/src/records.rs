//! The file with the records of all machines, and transactions on it.
//!
//! Owns the lock and the form of the file. A transaction is atomic: the new content is written to a
//! second file, which then replaces the first one. A process that dies before that has changed
//! nothing, one that dies after it has changed everything.

use std::{
    convert::Infallible,
    fs::{self, File},
    io::{self, Write as _},
    net::{IpAddr, Ipv4Addr},
    path::Path,
};

use chrono::{DateTime, TimeDelta, Utc};
use fleetwright::{CloudInstanceState, InstanceConfig, InstanceId, InstanceInfo};
use fs4::fs_std::FileExt as _;
use serde::{Deserialize, Serialize};

/// How long it takes to switch a machine on or off.
pub(crate) const SWITCH_TIME: TimeDelta = TimeDelta::milliseconds(20);

/// How long the record of a removed machine is kept.
pub(crate) const RETENTION: TimeDelta = TimeDelta::hours(1);

/// The record of one machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Its id, which no other machine ever has.
    pub id: InstanceId,
    /// What it was launched with, its token included.
    pub config: InstanceConfig,
    /// The state that it is in or on the way to, as a word of this program: `on`, `off` or `removed`.
    pub target: String,
    /// Since when.
    pub since: DateTime<Utc>,
    /// When it was launched.
    pub launched: DateTime<Utc>,
    number: u32,
}

impl Machine {
    /// Returns the current state: a transition ends after a fixed time, however many processes come and
    /// go meanwhile. A word that this version does not know is reported as pending.
    pub fn state(&self) -> CloudInstanceState {
        let settled = Utc::now() - self.since >= SWITCH_TIME;
        match (self.target.as_str(), settled) {
            ("on", true) => CloudInstanceState::Running,
            ("off", false) => CloudInstanceState::Stopping,
            ("off", true) => CloudInstanceState::Stopped,
            ("removed", false) => CloudInstanceState::Terminating,
            ("removed", true) => CloudInstanceState::Terminated,
            _ => CloudInstanceState::Pending,
        }
    }

    /// Starts the transition to `target`.
    pub fn switch(&mut self, target: &str) {
        target.clone_into(&mut self.target);
        self.since = Utc::now();
    }

    /// Returns what a read says about it.
    pub fn info(&self) -> InstanceInfo {
        let mut info = InstanceInfo::new(self.id.clone(), self.state());
        let [_, a, b, c] = self.number.to_be_bytes();
        let address = IpAddr::V4(Ipv4Addr::new(10, a, b, c));
        info.private_ip = (!info.state.is_final()).then_some(address);
        info.native_state = Some(self.target.clone());
        info.launch_time = Some(self.launched);
        info.tags = self.config.tags.clone();
        info.image = Some(self.config.image.clone());
        info.instance_type = Some(self.config.instance_type.clone());
        info
    }
}

/// The content of the file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Records {
    /// Every machine, removed ones included.
    pub machines: Vec<Machine>,
    launches: u32,
}

impl Records {
    /// Reads the file in `folder`.
    ///
    /// # Errors
    /// The error of the file system.
    pub fn read(folder: &Path) -> io::Result<Self> {
        let read = Self::transaction(folder, |records| Ok::<_, Infallible>(records.clone()))?;
        let Ok(records) = read;
        Ok(records)
    }

    /// Runs a transaction on the file in `folder`. What `work` changes is written, unless it returns an
    /// error. Blocks the thread while another process has the lock.
    ///
    /// # Errors
    /// The error of the file system; the inner result is that of `work`.
    pub fn transaction<T, E>(
        folder: &Path,
        work: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> io::Result<Result<T, E>> {
        let lock = File::create(folder.join("lock"))?;
        // Released when the file is closed, also by the end of the process.
        lock.lock_exclusive()?;
        let file = folder.join("machines.json");
        let before: Self = match fs::read(&file) {
            Ok(bytes) => serde_json::from_slice(&bytes)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::default(),
            Err(error) => return Err(error),
        };
        let mut after = before.clone();
        let result = work(&mut after);
        if result.is_ok() && after != before {
            let forgotten = Utc::now() - RETENTION - SWITCH_TIME;
            after
                .machines
                .retain(|one| one.target != "removed" || one.since > forgotten);
            let next = folder.join("machines.json.next");
            let mut written = File::create(&next)?;
            written.write_all(&serde_json::to_vec(&after)?)?;
            written.sync_all()?;
            fs::rename(&next, &file)?;
        }
        Ok(result)
    }

    /// Adds a machine that is being switched on.
    pub fn add(&mut self, id: InstanceId, config: InstanceConfig) -> &Machine {
        let number = self.launches;
        self.launches += 1;
        let (since, launched) = (Utc::now(), Utc::now());
        let target = "on".to_owned();
        self.machines.push(Machine {
            id,
            config,
            target,
            since,
            launched,
            number,
        });
        &self.machines[self.machines.len() - 1]
    }

    /// Returns the number of the next launch, which ids are made of.
    pub fn next_number(&self) -> u32 {
        self.launches
    }
}
