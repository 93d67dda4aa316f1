//! The program as GARM starts it, and the emulated clouds that it is pointed at.
#![allow(
    clippy::expect_used,
    clippy::panic,
    dead_code,
    unused_imports,
    reason = "test helpers may panic, and no test program uses all of them"
)]

mod clouds;

use std::{
    fs,
    io::Write as _,
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread::sleep,
    time::Duration,
};

use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) use clouds::{AzureCloud, Cloud, Ec2Cloud, GcpCloud, Phase, each_cloud};

pub(crate) const CONTROLLER: &str = "f9286791-1589-4f39-a106-5b68c2a18af4";
pub(crate) const POOL: &str = "9dcf590a-1192-4a9c-b3e4-e0902974c2c0";

/// What the instance token of every document contains. No output may contain it.
pub(crate) const SECRET: &str = "s3cr3t-instance-token";

/// How long a test waits for something that happens on its own, in steps.
const STEPS: u32 = 1_000;
const STEP: Duration = Duration::from_millis(10);

/// One GARM with one provider.
pub(crate) struct Garm {
    folder: TempDir,
    pub(crate) controller: String,
    pub(crate) version: &'static str,
    environment: Vec<(String, String)>,
}

/// How a call ended.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ended {
    /// Returns the answer of a call that must have succeeded.
    #[track_caller]
    pub(crate) fn answer(&self) -> Value {
        assert_eq!(self.code, Some(0), "{}", self.err);
        serde_json::from_str(&self.out).unwrap_or_else(|_| panic!("no JSON: {:?}", self.out))
    }

    /// Checks that the call succeeded without an answer.
    #[track_caller]
    pub(crate) fn done(&self) {
        assert_eq!(
            (self.code, self.out.as_str()),
            (Some(0), ""),
            "{}",
            self.err
        );
    }

    /// Returns the message of a call that must have failed with a code.
    #[track_caller]
    pub(crate) fn failed(&self, code: i32) -> &str {
        assert_eq!(
            (self.code, self.out.as_str()),
            (Some(code), ""),
            "{}",
            self.err
        );
        assert!(!self.err.is_empty());
        &self.err
    }
}

impl Garm {
    /// Starts with a config file and the variables that `environment_variables` would list.
    pub(crate) fn new(config: &str, environment: &[(&str, &str)]) -> Self {
        let folder = TempDir::new().expect("a folder");
        fs::write(folder.path().join("provider.toml"), config).expect("a file");
        let pairs = environment.iter();
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Self {
            folder,
            controller: CONTROLLER.to_owned(),
            version: "v0.1.0",
            environment: pairs.map(owned).collect(),
        }
    }

    /// Points the program at an emulated cloud.
    pub(crate) fn on(cloud: &dyn Cloud) -> Self {
        Self::with_settings(cloud, "")
    }

    /// As [`on`](Self::on), with more lines at the end of the config file.
    pub(crate) fn with_settings(cloud: &dyn Cloud, lines: &str) -> Self {
        let limits = "[limits]\nconsistency_window_seconds = 0.2\npoll_interval_seconds = 0.01\n";
        let config = format!("{}\n{limits}{lines}", cloud.config());
        Self::new(&config, &cloud.environment())
    }

    pub(crate) fn config_path(&self) -> PathBuf {
        self.folder.path().join("provider.toml")
    }

    /// Starts the program.
    pub(crate) fn start(&self, command: &str, more: &[(&str, &str)], input: &str) -> Child {
        let mut process = Command::new(env!("CARGO_BIN_EXE_garm-provider-fleetwright"));
        process.env_clear();
        process.envs(self.environment.iter().map(|(name, value)| (name, value)));
        process.env("GARM_COMMAND", command);
        process.env("GARM_INTERFACE_VERSION", self.version);
        process.env("GARM_CONTROLLER_ID", &self.controller);
        process.env("GARM_PROVIDER_CONFIG_FILE", self.config_path());
        process.envs(more.iter().copied());
        process.stdin(Stdio::piped());
        process.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = process.spawn().expect("the program");
        let mut stdin = child.stdin.take().expect("a pipe");
        // A call that reads nothing closes the pipe.
        let _ = stdin.write_all(input.as_bytes());
        child
    }

    /// Runs the program to its end. No output may have the token.
    #[track_caller]
    pub(crate) fn run(&self, command: &str, more: &[(&str, &str)], input: &str) -> Ended {
        let output = self.start(command, more, input).wait_with_output();
        let output = output.expect("an output");
        let ended = Ended {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).expect("text"),
            err: String::from_utf8(output.stderr).expect("text"),
        };
        assert!(
            !ended.out.contains(SECRET) && !ended.err.contains(SECRET),
            "{ended:?}"
        );
        ended
    }

    /// Creates an instance, as GARM does for each attempt with another token.
    #[track_caller]
    pub(crate) fn create(&self, document: &Value) -> Ended {
        self.run(
            "CreateInstance",
            &[("GARM_POOL_ID", POOL)],
            &document.to_string(),
        )
    }

    /// Runs a command for an instance.
    #[track_caller]
    pub(crate) fn for_instance(&self, command: &str, instance: &str) -> Ended {
        let more = [("GARM_INSTANCE_ID", instance), ("GARM_POOL_ID", POOL)];
        self.run(command, &more, "")
    }

    #[track_caller]
    pub(crate) fn delete(&self, instance: &str) -> Ended {
        self.for_instance("DeleteInstance", instance)
    }

    #[track_caller]
    pub(crate) fn list(&self, pool: &str) -> Ended {
        self.run("ListInstances", &[("GARM_POOL_ID", pool)], "")
    }
}

/// Returns GARM's document for a creation. Each has a token of its own.
pub(crate) fn document(cloud: &dyn Cloud, name: &str) -> Value {
    static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let (image, flavor) = cloud.image_and_flavor();
    json!({
        "name": name, "arch": "amd64", "os_type": "linux", "flavor": flavor, "image": image, "pool_id": POOL,
        "callback-url": "http://127.0.0.1:9/api/v1/callbacks", "metadata-url": "http://127.0.0.1:9/api/v1/metadata",
        "instance-token": format!("{SECRET}-{number}"), "repo_url": "https://forge.example/owner/repository",
        "labels": ["one", "two"], "tools": null, "ssh-keys": null, "extra_specs": {}, "ca-cert-bundle": null,
        "github-runner-group": "", "jit_config_enabled": true, "user_data_options": {"extra_packages": null},
        "proxy_config": {"http_proxy": "", "https_proxy": "", "no_proxy": ""},
    })
}

/// Waits until `is_true` returns no complaint.
#[track_caller]
pub(crate) fn eventually(is_true: impl Fn() -> Result<(), String>) {
    let mut last = Ok(());
    for _ in 0..STEPS {
        last = is_true();
        if last.is_ok() {
            return;
        }
        sleep(STEP);
    }
    last.expect("in the time of the test");
}

/// Checks that a name has this many machines.
#[track_caller]
pub(crate) fn has_machines(cloud: &dyn Cloud, name: &str, count: usize) {
    let live = cloud.live(name);
    assert_eq!(live.len(), count, "machines of {name}: {live:?}");
}

/// Waits until nothing is left of any machine.
#[track_caller]
pub(crate) fn nothing_left(cloud: &dyn Cloud) {
    eventually(|| {
        let left = cloud.leftovers();
        if left.is_empty() {
            Ok(())
        } else {
            Err(format!("left: {left:?}"))
        }
    });
}
