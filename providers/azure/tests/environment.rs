//! The credentials of the environment. Each test starts this program again, with its own variables.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

mod emulated;
#[path = "identity/local.rs"]
mod local;

use std::{
    env, fs,
    path::Path,
    process::{Command, ExitCode},
    time::Duration,
};

use fleetwright_azure::{
    AzureCredentials, AzureLaunchConfig, AzureOptions, AzureProvisioner,
    fleetwright::{InstanceFilter, InstanceProvisioner as _, ProvisionError, Result},
};
use libtest_mimic::{Arguments, Trial};
use local::{Arm, TokenServer, form, issued, query};
use tempfile::TempDir;

/// The Resource Manager that the started program must use.
const ENDPOINT: &str = "FLEETWRIGHT_TEST_ENDPOINT";

fn main() -> ExitCode {
    if let Ok(endpoint) = env::var(ENDPOINT) {
        return started_program(&endpoint);
    }
    let trial = |name: &str, run: fn()| {
        Trial::test(name, move || {
            run();
            Ok(())
        })
    };
    let tests = vec![
        trial("service_principals_are_configured_by_variables", principals),
        trial(
            "managed_identities_are_configured_by_variables",
            managed_identities,
        ),
        trial("az_command_is_run_if_it_is_selected", az_command),
        trial("failing_az_command_is_classified", failing_az_command),
        trial(
            "missing_configuration_names_the_variables",
            missing_configuration,
        ),
        trial("provisioner_follows_the_cloud_of_the_authority", clouds),
        trial(
            "failing_source_is_not_replaced_by_another",
            no_second_source,
        ),
    ];
    libtest_mimic::run(&Arguments::from_args(), tests).exit_code()
}

/// Lists instances with the credentials of the environment, and prints the result.
fn started_program(endpoint: &str) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let result = runtime.block_on(async {
        if endpoint.is_empty() {
            let azure = AzureProvisioner::from_env(emulated::AzureHarness::launch_config())?;
            return Ok(format!("{azure:?}"));
        }
        list(endpoint).await.map(|()| "listed".to_owned())
    });
    match result {
        Ok(text) => println!("{text}"),
        Err(error) => println!(
            "{:?} {:?} {} {error:?}",
            error.kind(),
            error.effect(),
            error.message()
        ),
    }
    ExitCode::SUCCESS
}

async fn list(endpoint: &str) -> Result<()> {
    let launch: AzureLaunchConfig = emulated::AzureHarness::launch_config();
    let mut options = AzureOptions::default();
    endpoint.clone_into(&mut options.endpoint);
    options.call_timeout = Duration::from_secs(6);
    let credentials = match AzureCredentials::from_env() {
        Ok(credentials) => credentials,
        // The provisioner's own error for it.
        Err(_) => return AzureProvisioner::from_env(launch).map(drop),
    };
    let azure = AzureProvisioner::new(credentials, launch, options)?;
    let listed: std::result::Result<_, ProvisionError> =
        azure.list_instances(&InstanceFilter::new()).await;
    listed.map(drop)
}

/// Names and values of variables.
type Variables<'a> = &'a [(&'a str, &'a str)];

/// Starts this program with nothing but these variables. Returns what it prints.
fn start(endpoint: &str, variables: Variables<'_>) -> String {
    let output = Command::new(env::current_exe().unwrap())
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env(ENDPOINT, endpoint)
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    assert!(!text.contains("s3cr3t"), "{text}");
    text.trim().to_owned()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn principals() {
    let directory = TempDir::new().unwrap();
    let token = directory.path().join("token");
    fs::write(&token, "s3cr3t-assertion").unwrap();
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let certificate = manifest.join("tests/identity/certificate.pem");
    for (name, value, field) in [
        ("AZURE_CLIENT_SECRET", "s3cr3t-secret", "client_secret"),
        (
            "AZURE_CLIENT_CERTIFICATE_PATH",
            text(&certificate),
            "client_assertion",
        ),
        (
            "AZURE_FEDERATED_TOKEN_FILE",
            text(&token),
            "client_assertion",
        ),
    ] {
        let (server, arm) = (TokenServer::start(issued), Arm::start());
        let printed = start(
            &arm.url,
            &[
                ("AZURE_TENANT_ID", "t-1"),
                ("AZURE_CLIENT_ID", "c-1"),
                ("AZURE_AUTHORITY_HOST", &server.url),
                (name, value),
            ],
        );
        assert_eq!(printed, "listed", "{name}");
        let request = server.requests().remove(0);
        assert_eq!(request.path, "/t-1/oauth2/v2.0/token");
        assert_eq!(form(&request, "client_id").unwrap(), "c-1");
        assert!(form(&request, field).is_some(), "{name}");
    }
}

fn managed_identities() {
    let proxy = ("http_proxy", "http://127.0.0.1:1");
    // An app service.
    let (server, arm) = (TokenServer::start(issued), Arm::start());
    let endpoint = format!("{}/msi/token", server.url);
    let app_service = [
        ("IDENTITY_ENDPOINT", endpoint.as_str()),
        ("IDENTITY_HEADER", "s3cr3t-header"),
        ("AZURE_CLIENT_ID", "c-1"),
        ("no_proxy", "127.0.0.1"),
    ];
    assert_eq!(start(&arm.url, &app_service), "listed");
    let request = server.requests().remove(0);
    assert!(request.path.starts_with("/msi/token?"), "{}", request.path);
    assert!(
        request
            .headers
            .contains(&"x-identity-header: s3cr3t-header".to_owned())
    );
    assert_eq!(query(&request, "client_id").unwrap(), "c-1");
    // A machine. The metadata service is not behind the proxy of the environment.
    let (server, arm) = (TokenServer::start(issued), Arm::start());
    let machine = [
        ("AZURE_TOKEN_CREDENTIALS", "ManagedIdentityCredential"),
        ("AZURE_POD_IDENTITY_AUTHORITY_HOST", server.url.as_str()),
        proxy,
        ("https_proxy", "http://127.0.0.1:1"),
    ];
    // The Resource Manager is, and so cannot be reached.
    let printed = start(&arm.url, &machine);
    assert!(
        printed.starts_with("Unavailable None no connection"),
        "{printed}"
    );
    let request = server.requests().remove(0);
    assert!(request.path.starts_with("/metadata/identity/oauth2/token?"));
    assert_eq!(query(&request, "client_id"), None);
    // A platform whose identities azure_identity does not support.
    let cloud_shell = [
        ("AZURE_TOKEN_CREDENTIALS", "ManagedIdentityCredential"),
        ("MSI_ENDPOINT", "http://127.0.0.1:1"),
    ];
    let printed = start(&arm.url, &cloud_shell);
    assert!(printed.starts_with("Unauthenticated None"), "{printed}");
    assert!(printed.contains("CloudShell"), "{printed}");
}

/// Writes an `az` command, and returns the variables that select it.
fn fake_az(directory: &Path, script: &str) -> String {
    use std::os::unix::fs::PermissionsExt as _;
    let path = directory.join("az");
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    format!("{}:/usr/bin:/bin", directory.display())
}

const SELECT_AZ: (&str, &str) = ("AZURE_TOKEN_CREDENTIALS", "AzureCliCredential");

fn az_command() {
    let directory = TempDir::new().unwrap();
    let arguments = directory.path().join("arguments");
    let ends = chrono::Utc::now().timestamp() + 3600;
    let script = format!(
        r#"echo "$@" > {}
echo '{{"accessToken":"s3cr3t-token","expires_on":{ends},"tokenType":"Bearer"}}'"#,
        arguments.display()
    );
    let path = fake_az(directory.path(), &script);
    let arm = Arm::start();
    assert_eq!(start(&arm.url, &[SELECT_AZ, ("PATH", &path)]), "listed");
    let arguments = fs::read_to_string(arguments).unwrap();
    let expected =
        "account get-access-token -o json --scope https://management.azure.com/.default\n";
    assert_eq!(arguments, expected);
    let bearer = "authorization: Bearer s3cr3t-token".to_owned();
    assert!(
        arm.requests()
            .iter()
            .all(|request| request.headers.contains(&bearer))
    );
    assert!(!arm.requests().is_empty());
}

fn failing_az_command() {
    let directory = TempDir::new().unwrap();
    let pid = directory.path().join("pid");
    let hangs = format!("sleep 600 & echo $$ $! > {}; wait", pid.display());
    for (script, expected, word) in [
        (
            "echo \"ERROR: Please run 'az login'\" >&2; exit 1",
            "Unauthenticated None",
            "az login",
        ),
        (
            "echo 'AADSTS50173: s3cr3t' >&2; exit 1",
            "Unauthenticated None",
            "AADSTS50173",
        ),
        (
            "echo 'Max retries exceeded with url: /s3cr3t' >&2; exit 1",
            "Unavailable None",
            "retry",
        ),
        ("exit 127", "Unauthenticated None", "not found"),
        (
            "echo '{\"accessToken\":\"s3cr3t\",\"tokenType\":\"x\"}'",
            "Unauthenticated None",
            "2.54",
        ),
        (hangs.as_str(), "Unavailable None", "in time"),
    ] {
        let path = fake_az(directory.path(), script);
        let arm = Arm::start();
        let printed = start(&arm.url, &[SELECT_AZ, ("PATH", &path)]);
        assert!(printed.starts_with(expected), "{script}: {printed}");
        assert!(printed.contains(word), "{script}: {printed}");
        assert!(arm.requests().is_empty());
    }
    // The command that hung was killed, with what it had started.
    let pid = fs::read_to_string(pid).unwrap();
    for process in pid.split_whitespace() {
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        assert!(!status.contains("sleeping"), "{status}");
    }
    assert_eq!(pid.split_whitespace().count(), 2, "{pid}");
}

fn missing_configuration() {
    let cases: [(Variables<'_>, &[&str]); 4] = [
        (
            &[],
            &[
                "AZURE_TENANT_ID",
                "AZURE_CLIENT_ID",
                "AZURE_CLIENT_SECRET",
                "AZURE_TOKEN_CREDENTIALS",
            ],
        ),
        (
            &[("AZURE_CLIENT_SECRET", "s3cr3t")],
            &["AZURE_TENANT_ID", "AZURE_CLIENT_ID"],
        ),
        (
            &[("AZURE_TENANT_ID", "t"), ("AZURE_CLIENT_ID", "c")],
            &[
                "AZURE_CLIENT_SECRET",
                "AZURE_CLIENT_CERTIFICATE_PATH",
                "AZURE_FEDERATED_TOKEN_FILE",
            ],
        ),
        (
            &[
                ("AZURE_TOKEN_CREDENTIALS", "WorkloadIdentityCredential"),
                ("AZURE_TENANT_ID", "t"),
            ],
            &["AZURE_CLIENT_ID", "AZURE_FEDERATED_TOKEN_FILE"],
        ),
    ];
    for (variables, names) in cases {
        let arm = Arm::start();
        let printed = start(&arm.url, variables);
        assert!(printed.starts_with("Unauthenticated None"), "{printed}");
        for name in names {
            assert!(printed.contains(name), "{name}: {printed}");
        }
        assert!(arm.requests().is_empty());
    }
}

fn clouds() {
    let base = [
        ("AZURE_TENANT_ID", "t"),
        ("AZURE_CLIENT_ID", "c"),
        ("AZURE_CLIENT_SECRET", "s3cr3t"),
    ];
    let start_at = |authority: &'static str| {
        let host = ("AZURE_AUTHORITY_HOST", authority);
        start("", &base.into_iter().chain([host]).collect::<Vec<_>>())
    };
    for (authority, endpoint) in [
        ("", "management.azure.com"),
        ("https://login.microsoftonline.com/", "management.azure.com"),
        (
            "https://login.chinacloudapi.cn",
            "management.chinacloudapi.cn",
        ),
        (
            "https://login.microsoftonline.us",
            "management.usgovcloudapi.net",
        ),
    ] {
        let printed = start_at(authority);
        assert!(printed.contains(endpoint), "{authority}: {printed}");
    }
    let printed = start_at("https://login.example.net");
    assert!(printed.starts_with("Unauthenticated None"), "{printed}");
    assert!(printed.contains("AzureOptions"), "{printed}");
}

fn no_second_source() {
    let (metadata, arm) = (TokenServer::start(issued), Arm::start());
    let printed = start(
        &arm.url,
        &[
            ("AZURE_TENANT_ID", "t-1"),
            ("AZURE_CLIENT_ID", "c-1"),
            ("AZURE_CLIENT_SECRET", "s3cr3t-secret"),
            ("AZURE_AUTHORITY_HOST", "http://127.0.0.1:1"),
            ("AZURE_POD_IDENTITY_AUTHORITY_HOST", &metadata.url),
        ],
    );
    assert!(
        printed.starts_with("Unavailable None the authority 127.0.0.1"),
        "{printed}"
    );
    assert!(metadata.requests().is_empty() && arm.requests().is_empty());
}
