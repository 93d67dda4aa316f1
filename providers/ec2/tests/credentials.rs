//! Missing credentials, profiles and regions: nothing is sent, and the error says what to set.
//!
//! Each case runs in a process of its own, because `from_env` reads the environment of the process.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests may panic, and the child reports to its parent"
)]

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpListener,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::Duration,
};

use fleetwright_ec2::{
    Ec2LaunchConfig, Ec2Options, Ec2Provisioner,
    aws_config::{BehaviorVersion, Region, SdkConfig},
    fleetwright::{
        Effect, ErrorKind, InstanceConfig, InstanceProvisioner as _, ProvisionError, RetryAdvice,
    },
};
use fleetwright_emulators::ec2::{Ec2Emulator, Knobs};
use tempfile::TempDir;

#[path = "emulated/mod.rs"]
mod emulated;

/// Set in the child process, which launches and prints the error.
const CHILD: &str = "FLEETWRIGHT_TEST_CHILD";

/// A word that stands for a secret in files and responses.
const SECRET: &str = "swordfish";

/// The error that a child has printed.
#[derive(Debug)]
struct Reported {
    kind: String,
    retry: String,
    effect: String,
    text: String,
}

/// Writes a file of one test.
fn write(home: &TempDir, name: &str, text: &str) -> PathBuf {
    let path = home.path().join(name);
    fs::write(&path, text).unwrap();
    path
}

/// Launches in a child process with these variables and no others, and returns the error. The emulator must not
/// have received anything.
fn launch_with(test: &str, home: &Path, variables: &[(&str, &str)]) -> Reported {
    let emulator = Ec2Emulator::start(Knobs::default()).unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap());
    child
        .args(["--exact", test, "--nocapture"])
        .env_clear()
        .env("HOME", home)
        .env("PATH", "/usr/bin:/bin")
        .env("AWS_ENDPOINT_URL_EC2", emulator.endpoint())
        .env(CHILD, "1")
        .envs(variables.iter().copied());
    let output = child.output().unwrap();
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    let shown = shown + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{shown}");
    assert!(!shown.contains(SECRET), "{shown}");
    let line = |name: &str| {
        let line = shown.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("no {name} in {shown}"))
            .to_owned()
    };
    assert!(emulator.oracle().calls.is_empty(), "{shown}");
    Reported {
        kind: line("kind="),
        retry: line("retry="),
        effect: line("effect="),
        text: line("text="),
    }
}

/// In a child, launches with the environment, prints the error and returns `true`.
fn is_child() -> bool {
    if std::env::var_os(CHILD).is_none() {
        return false;
    }
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().unwrap();
    let error = runtime.block_on(async {
        let ec2 = Ec2Provisioner::from_env(Ec2LaunchConfig::new()).await;
        ec2.unwrap().launch_instance(&config()).await.unwrap_err()
    });
    println!("\nkind={:?}", error.kind());
    println!("retry={:?}", error.retry());
    println!("effect={:?}", error.effect());
    println!("text={error} {error:?}");
    true
}

fn config() -> InstanceConfig {
    let builder = InstanceConfig::builder("ami-00000000000000001", "t3.micro");
    builder.build().unwrap()
}

/// Checks that the error cannot be retried and names `words`.
fn assert_unauthenticated(reported: &Reported, words: &[&str]) {
    let found = (
        reported.kind.as_str(),
        reported.retry.as_str(),
        reported.effect.as_str(),
    );
    assert_eq!(found, ("Unauthenticated", "Never", "None"), "{reported:?}");
    for word in words {
        assert!(reported.text.contains(word), "{word}: {reported:?}");
    }
}

/// Checks that the error may pass and that nothing was sent.
fn assert_unavailable(reported: &Reported) {
    let found = (reported.kind.as_str(), reported.effect.as_str());
    assert_eq!(found, ("Unavailable", "None"), "{reported:?}");
    assert_eq!(reported.retry, "SameToken", "{reported:?}");
    assert!(reported.text.contains("credentials"), "{reported:?}");
}

const REGION: (&str, &str) = ("AWS_REGION", "us-east-1");
const NO_METADATA: (&str, &str) = ("AWS_EC2_METADATA_DISABLED", "true");

/// Serves every request with one response until the process ends.
fn serve(status: &'static str, body: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            drop(stream.read(&mut [0; 4096]));
            let length = body.len();
            let response = format!(
                "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
            );
            drop(stream.write_all(response.as_bytes()));
        }
    });
    format!("http://{address}")
}

/// Returns the address of a port that refuses connections.
fn closed_port() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

#[test]
fn no_credentials_at_all_are_reported_with_the_variables_to_set() {
    if is_child() {
        return;
    }
    let home = TempDir::new().unwrap();
    let test = "no_credentials_at_all_are_reported_with_the_variables_to_set";
    let reported = launch_with(test, home.path(), &[REGION, NO_METADATA]);
    assert_unauthenticated(&reported, &["AWS_ACCESS_KEY_ID", "AWS_PROFILE"]);
}

#[test]
fn unknown_profile_is_reported_with_the_files_to_check() {
    if is_child() {
        return;
    }
    let home = TempDir::new().unwrap();
    let file = write(&home, "credentials", "[default]\naws_access_key_id = x\n");
    let file = file.to_str().unwrap();
    let test = "unknown_profile_is_reported_with_the_files_to_check";
    let variables = [
        REGION,
        NO_METADATA,
        ("AWS_PROFILE", "missing"),
        ("AWS_SHARED_CREDENTIALS_FILE", file),
    ];
    let reported = launch_with(test, home.path(), &variables);
    assert_unauthenticated(&reported, &["profile does not exist", "AWS_PROFILE"]);
}

#[test]
fn malformed_and_unreadable_profiles_are_reported_with_the_files_to_check() {
    if is_child() {
        return;
    }
    let home = TempDir::new().unwrap();
    let malformed = write(&home, "malformed", &format!("[default\n{SECRET}\n"));
    let partial = write(
        &home,
        "partial",
        &format!("[default]\naws_secret_access_key = {SECRET}\n"),
    );
    let looping = write(
        &home,
        "looping",
        "[default]\nrole_arn = arn:aws:iam::1:role/x\nsource_profile = other\n\
         [other]\nrole_arn = arn:aws:iam::1:role/y\nsource_profile = default\n",
    );
    let unreadable = home.path().join("directory");
    fs::create_dir(&unreadable).unwrap();
    let binary = home.path().join("binary");
    fs::write(&binary, [0xff, 0xfe, 0x00]).unwrap();
    let test = "malformed_and_unreadable_profiles_are_reported_with_the_files_to_check";
    for file in [malformed, partial, looping, unreadable, binary] {
        let path = file.to_str().unwrap();
        let variables = [REGION, NO_METADATA, ("AWS_SHARED_CREDENTIALS_FILE", path)];
        let reported = launch_with(test, home.path(), &variables);
        assert_unauthenticated(&reported, &["AWS_PROFILE", "~/.aws/credentials"]);
    }
}

#[test]
fn missing_or_malformed_region_is_an_invalid_value() {
    if is_child() {
        return;
    }
    let home = TempDir::new().unwrap();
    let keys = [
        ("AWS_ACCESS_KEY_ID", "test"),
        ("AWS_SECRET_ACCESS_KEY", SECRET),
    ];
    let test = "missing_or_malformed_region_is_an_invalid_value";
    let reported = launch_with(test, home.path(), &[keys[0], keys[1], NO_METADATA]);
    let found = (
        reported.kind.as_str(),
        reported.retry.as_str(),
        reported.effect.as_str(),
    );
    assert_eq!(found, ("Invalid", "Never", "None"), "{reported:?}");
    for word in ["region", "AWS_REGION", "~/.aws/config"] {
        assert!(reported.text.contains(word), "{word}: {reported:?}");
    }
    // Without credentials too: the region is what a caller can repair first.
    let reported = launch_with(test, home.path(), &[NO_METADATA]);
    assert_eq!(reported.effect, "None", "{reported:?}");
    assert_eq!(reported.retry, "Never", "{reported:?}");
}

#[cfg(feature = "sso")]
#[test]
fn failing_credentials_process_is_reported_without_its_output() {
    if is_child() {
        return;
    }
    let home = TempDir::new().unwrap();
    let test = "failing_credentials_process_is_reported_without_its_output";
    for command in [
        format!("sh -c 'echo {SECRET} >&2; exit 3'"),
        format!("echo {SECRET}"),
        "/nonexistent".to_owned(),
    ] {
        let text = format!("[default]\ncredential_process = {command}\n");
        let file = write(&home, "config", &text);
        let variables = [
            REGION,
            NO_METADATA,
            ("AWS_CONFIG_FILE", file.to_str().unwrap()),
        ];
        let reported = launch_with(test, home.path(), &variables);
        assert_unauthenticated(&reported, &["credential_process"]);
    }
}

#[test]
fn metadata_service_that_does_not_respond_can_be_retried() {
    if is_child() {
        return;
    }
    let home = TempDir::new().unwrap();
    let test = "metadata_service_that_does_not_respond_can_be_retried";
    let broken = serve("503 Service Unavailable", SECRET);
    for endpoint in [closed_port(), broken] {
        let variables = [
            REGION,
            ("AWS_EC2_METADATA_SERVICE_ENDPOINT", endpoint.as_str()),
        ];
        assert_unavailable(&launch_with(test, home.path(), &variables));
    }
    let none = serve("404 Not Found", SECRET);
    let variables = [REGION, ("AWS_EC2_METADATA_SERVICE_ENDPOINT", none.as_str())];
    assert_unauthenticated(&launch_with(test, home.path(), &variables), &["role"]);
}

#[test]
fn container_endpoint_that_does_not_respond_can_be_retried() {
    if is_child() {
        return;
    }
    let home = TempDir::new().unwrap();
    let test = "container_endpoint_that_does_not_respond_can_be_retried";
    let launch = |endpoint: &str| {
        let address = ("AWS_CONTAINER_CREDENTIALS_FULL_URI", endpoint);
        launch_with(test, home.path(), &[REGION, NO_METADATA, address])
    };
    for endpoint in [closed_port(), serve("503 Service Unavailable", SECRET)] {
        assert_unavailable(&launch(&endpoint));
    }
    for endpoint in [serve("403 Forbidden", SECRET), serve("200 OK", SECRET)] {
        assert_unauthenticated(&launch(&endpoint), &["container"]);
    }
    assert_unauthenticated(
        &launch("http://example.com/x"),
        &["AWS_CONTAINER_CREDENTIALS"],
    );
}

/// Returns the error of a launch with an SDK config.
async fn launch_error(config: &SdkConfig) -> ProvisionError {
    let mut options = Ec2Options::default();
    options.call_timeout = Duration::from_secs(600);
    let ec2 = Ec2Provisioner::new(config, Ec2LaunchConfig::new(), options).unwrap();
    ec2.launch_instance(&self::config()).await.unwrap_err()
}

#[tokio::test]
async fn sdk_config_without_a_provider_of_credentials_is_unauthenticated() {
    let harness = emulated::Ec2Harness::with_knobs(|_| {});
    let config = SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .endpoint_url(harness.emulator().endpoint())
        .build();
    let error = launch_error(&config).await;
    assert_eq!(
        (error.kind(), error.retry(), error.effect()),
        (ErrorKind::Unauthenticated, RetryAdvice::Never, Effect::None),
        "{error}"
    );
    assert!(error.to_string().contains("AWS_ACCESS_KEY_ID"), "{error}");
    assert!(harness.emulator().oracle().calls.is_empty());
}

/// A source of credentials that never responds.
#[derive(Debug)]
struct Hanging;

impl aws_credential_types::provider::ProvideCredentials for Hanging {
    fn provide_credentials<'a>(
        &'a self,
    ) -> aws_credential_types::provider::future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        aws_credential_types::provider::future::ProvideCredentials::new(std::future::pending())
    }
}

#[tokio::test(start_paused = true)]
async fn credentials_that_never_come_have_no_effect_and_can_be_retried() {
    let provider = aws_credential_types::provider::SharedCredentialsProvider::new(Hanging);
    let config = SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .endpoint_url("http://127.0.0.1:9")
        .credentials_provider(provider)
        .build();
    for timeout in [Duration::from_secs(600), Duration::from_millis(500)] {
        let mut options = Ec2Options::default();
        options.call_timeout = timeout;
        let ec2 = Ec2Provisioner::new(&config, Ec2LaunchConfig::new(), options).unwrap();
        let error = ec2.launch_instance(&self::config()).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.effect()),
            (ErrorKind::Unavailable, Effect::None),
            "{error}"
        );
    }
}
