//! Every source of tokens, against a token service on this machine.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

mod emulated;
#[path = "identity/local.rs"]
mod local;

use std::{
    fs,
    net::TcpListener,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use fleetwright_azure::{
    AzureCloud, AzureCredentials, AzureProvisioner, ManagedIdentity, ServicePrincipal,
    fleetwright::{
        Effect, ErrorKind, InstanceFilter, InstanceProvisioner as _, ProvisionError, RetryAdvice,
    },
};
use fleetwright_provider_testkit::canned_responses::CannedResponse;
use local::{Arm, TokenServer, form, issued, query};
use tempfile::TempDir;

const SECRETS: [&str; 3] = ["s3cr3t-secret", "s3cr3t-assertion", "s3cr3t-token"];

/// A source, with what its token service must receive.
struct Source {
    name: &'static str,
    credentials: fn(&str) -> AzureCredentials,
    is_metadata: bool,
    /// What a refusal must name.
    setting: &'static str,
}

fn principal(authority: &str) -> ServicePrincipal {
    ServicePrincipal::new("tenant-1", "client-1").at(authority)
}

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/identity")
        .join(name)
}

fn sources() -> Vec<Source> {
    vec![
        Source {
            name: "secret",
            credentials: |at| AzureCredentials::client_secret(principal(at), "s3cr3t-secret"),
            is_metadata: false,
            setting: "AZURE_CLIENT_SECRET",
        },
        Source {
            name: "certificate",
            credentials: |at| {
                AzureCredentials::client_certificate(principal(at), fixture("certificate.pem"))
            },
            is_metadata: false,
            setting: "AZURE_CLIENT_CERTIFICATE_PATH",
        },
        Source {
            name: "workload",
            credentials: |at| {
                AzureCredentials::workload_identity(principal(at), fixture("assertion.txt"))
            },
            is_metadata: false,
            setting: "AZURE_FEDERATED_TOKEN_FILE",
        },
        Source {
            name: "machine",
            credentials: |at| AzureCredentials::managed_identity(ManagedIdentity::system().at(at)),
            is_metadata: true,
            setting: "AZURE_CLIENT_ID",
        },
    ]
}

/// Lists the instances of an account that has none.
async fn list(arm: &Arm, credentials: AzureCredentials) -> Result<(), ProvisionError> {
    let azure = arm.provisioner(credentials, Duration::from_secs(4));
    azure.list_instances(&InstanceFilter::new()).await.map(drop)
}

#[tokio::test]
async fn every_source_gets_a_token_that_azure_receives() {
    for source in sources() {
        let (server, arm) = (TokenServer::start(issued), Arm::start());
        let azure = arm.provisioner((source.credentials)(&server.url), Duration::from_secs(60));
        for _ in 0..3 {
            azure.list_instances(&InstanceFilter::new()).await.unwrap();
        }
        assert_eq!(server.requests().len(), 1, "{}", source.name);
        for request in arm.requests() {
            let header = "authorization: Bearer s3cr3t-token-1".to_owned();
            assert!(request.headers.contains(&header), "{:?}", request.headers);
        }
        let request = &server.requests()[0];
        let scope = "https://management.azure.com/.default";
        if source.is_metadata {
            assert_eq!(request.method, "GET");
            assert!(request.path.starts_with("/metadata/identity/oauth2/token?"));
            assert_eq!(
                query(request, "resource").unwrap(),
                "https://management.azure.com"
            );
            assert!(request.headers.contains(&"metadata: true".to_owned()));
        } else {
            assert_eq!(request.method, "POST");
            assert_eq!(request.path, "/tenant-1/oauth2/v2.0/token");
            assert_eq!(form(request, "scope").unwrap(), scope);
            assert_eq!(form(request, "client_id").unwrap(), "client-1");
            assert_eq!(form(request, "grant_type").unwrap(), "client_credentials");
        }
    }
}

#[tokio::test]
async fn service_principal_sends_its_proof() {
    let proof = async |name: &str, field: &str| {
        let server = TokenServer::start(issued);
        let source = sources().into_iter().find(|one| one.name == name).unwrap();
        list(&Arm::start(), (source.credentials)(&server.url))
            .await
            .unwrap();
        let request = server.requests().remove(0);
        (server.url.clone(), form(&request, field).unwrap())
    };
    assert_eq!(proof("secret", "client_secret").await.1, "s3cr3t-secret");
    let kind = proof("workload", "client_assertion_type").await.1;
    assert_eq!(
        kind,
        "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
    );
    assert_eq!(
        proof("workload", "client_assertion").await.1,
        "s3cr3t-assertion"
    );
    let (authority, assertion) = proof("certificate", "client_assertion").await;
    let claims = assertion.split('.').nth(1).unwrap();
    let claims = URL_SAFE_NO_PAD.decode(claims).unwrap();
    let claims: serde_json::Value = serde_json::from_slice(&claims).unwrap();
    assert_eq!(
        claims["aud"],
        format!("{authority}/tenant-1/oauth2/v2.0/token")
    );
    assert_eq!(claims["iss"], "client-1");
}

#[tokio::test]
async fn user_assigned_identity_is_requested_by_its_id() {
    let cases = [
        (ManagedIdentity::system(), None),
        (
            ManagedIdentity::client_id("c-1"),
            Some(("client_id", "c-1")),
        ),
        (
            ManagedIdentity::object_id("o-1"),
            Some(("object_id", "o-1")),
        ),
        (
            ManagedIdentity::resource_id("/r/1"),
            Some(("msi_res_id", "/r/1")),
        ),
    ];
    for (identity, expected) in cases {
        let server = TokenServer::start(issued);
        let credentials = AzureCredentials::managed_identity(identity.at(&server.url));
        list(&Arm::start(), credentials).await.unwrap();
        let request = server.requests().remove(0);
        for name in ["client_id", "object_id", "msi_res_id"] {
            let value = expected.filter(|(key, _)| *key == name);
            let value = value.map(|(_, value)| value.to_owned());
            assert_eq!(query(&request, name), value, "{}", request.path);
        }
    }
}

/// Kubernetes replaces the file every hour, and the authority refuses the old assertion then.
#[tokio::test]
async fn token_file_is_read_at_every_request() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("token");
    fs::write(&path, "assertion-1").unwrap();
    let current = Arc::new(Mutex::new("assertion-1".to_owned()));
    let accepted = Arc::clone(&current);
    let server = TokenServer::start(move |number, request| {
        if form(request, "client_assertion").unwrap() != *accepted.lock().unwrap() {
            let body = r#"{"error":"invalid_client","error_codes":[700024]}"#;
            return CannedResponse::new("401 Unauthorized", body);
        }
        issued(number, request)
    });
    let arm = Arm::start();
    let credentials = AzureCredentials::workload_identity(principal(&server.url), &path);
    let azure = arm.provisioner(credentials, Duration::from_secs(60));
    for number in 1..=3 {
        azure.list_instances(&InstanceFilter::new()).await.unwrap();
        // Azure refuses the token, so that the next call requests another one.
        arm.refuse(&format!("s3cr3t-token-{number}"));
        let error = azure
            .list_instances(&InstanceFilter::new())
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unauthenticated, "{error}");
        let next = format!("assertion-{}", number + 1);
        fs::write(&path, &next).unwrap();
        *current.lock().unwrap() = next;
    }
    azure.list_instances(&InstanceFilter::new()).await.unwrap();
    assert_eq!(server.requests().len(), 4);
}

#[tokio::test]
async fn transient_failures_can_be_retried_and_then_succeed() {
    let statuses = [
        "500 Internal Server Error",
        "502 Bad Gateway",
        "503 Service Unavailable",
        "504 Gateway Timeout",
        "429 Too Many Requests",
        "408 Request Timeout",
    ];
    let of_metadata = ["404 Not Found", "410 Gone"];
    for source in sources() {
        let more = of_metadata.into_iter().filter(|_| source.is_metadata);
        for status in statuses.into_iter().chain(more) {
            let arm = Arm::start();
            let server = TokenServer::start(move |number, request| match number {
                1 => CannedResponse::new(status, r#"{"error_description":"s3cr3t-secret"}"#),
                _ => issued(number, request),
            });
            let azure = arm.provisioner((source.credentials)(&server.url), Duration::from_secs(60));
            let error = azure
                .list_instances(&InstanceFilter::new())
                .await
                .unwrap_err();
            assert_transient(&error, &arm, &format!("{} {status}", source.name));
            azure.list_instances(&InstanceFilter::new()).await.unwrap();
            assert_eq!(server.requests().len(), 2, "one request for each call");
        }
    }
    let body = r#"{"error":"temporarily_unavailable","error_codes":[90033]}"#;
    for source in sources().into_iter().filter(|source| !source.is_metadata) {
        let arm = Arm::start();
        let server = TokenServer::start(move |_, _| CannedResponse::new("400 Bad Request", body));
        let error = list(&arm, (source.credentials)(&server.url))
            .await
            .unwrap_err();
        assert_transient(&error, &arm, source.name);
        assert!(error.message().contains("AADSTS90033"), "{error}");
    }
}

fn assert_transient(error: &ProvisionError, arm: &Arm, what: &str) {
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{what}: {error}");
    assert_ne!(error.retry(), RetryAdvice::Never, "{what}: {error}");
    assert_eq!(error.effect(), Effect::None, "{what}: {error}");
    assert!(arm.requests().is_empty(), "{what}");
    assert_no_secret(&format!("{error} {error:?}"));
}

fn assert_no_secret(text: &str) {
    for secret in SECRETS {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
}

#[tokio::test]
async fn unreachable_silent_and_garbled_services_can_be_retried() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("http://{}", silent.local_addr().unwrap());
    let nobody = "http://127.0.0.1:1".to_owned();
    let garbled = TokenServer::start(|_, _| CannedResponse::ok("<html>s3cr3t-secret</html>"));
    let empty = TokenServer::start(|_, _| CannedResponse::ok("{}"));
    for source in sources() {
        for url in [&silent, &nobody, &garbled.url, &empty.url] {
            let arm = Arm::start();
            let error = list(&arm, (source.credentials)(url)).await.unwrap_err();
            assert_transient(&error, &arm, &format!("{} {url}", source.name));
        }
    }
}

#[tokio::test]
async fn refused_credentials_are_permanent_and_say_what_to_set() {
    let refusals = [
        (
            "401 Unauthorized",
            r#"{"error":"invalid_client","error_codes":[7000215],"error_description":"AADSTS7000215: s3cr3t-secret s3cr3t-assertion"}"#,
            "AADSTS7000215",
        ),
        (
            "400 Bad Request",
            r#"{"error":"invalid_request"}"#,
            "invalid_request",
        ),
        ("403 Forbidden", "<html>s3cr3t-secret</html>", "403"),
        ("307 Temporary Redirect", "", "307"),
    ];
    for source in sources() {
        for (status, body, code) in refusals {
            let arm = Arm::start();
            let redirect_target = TokenServer::start(issued);
            let location = redirect_target.url.clone();
            let server = TokenServer::start(move |_, _| {
                CannedResponse::new(status, body).header("location", &location)
            });
            let error = list(&arm, (source.credentials)(&server.url))
                .await
                .unwrap_err();
            assert_eq!(
                error.kind(),
                ErrorKind::Unauthenticated,
                "{}: {error}",
                source.name
            );
            assert_eq!(error.effect(), Effect::None, "{error}");
            assert!(error.message().contains(code), "{code}: {error}");
            assert!(error.message().contains(source.setting), "{error}");
            assert_no_secret(&format!("{error} {error:?}"));
            assert!(arm.requests().is_empty() && redirect_target.requests().is_empty());
            assert_eq!(server.requests().len(), 1, "{}", source.name);
        }
    }
}

#[tokio::test]
async fn unusable_settings_are_permanent_and_nothing_is_sent() {
    let server = TokenServer::start(issued);
    let at = |tenant: &str| ServicePrincipal::new(tenant, "client-1").at(&server.url);
    let elliptic = fixture("certificate-elliptic.pem");
    let missing = fixture("missing.pem");
    let directory = TempDir::new().unwrap();
    let empty = directory.path().join("empty");
    fs::write(&empty, " \n").unwrap();
    let insecure = ServicePrincipal::new("t", "c").at("http://login.example.net");
    let cases = [
        (
            AzureCredentials::client_secret(at("a tenant"), "s3cr3t-secret"),
            "AZURE_TENANT_ID",
        ),
        (
            AzureCredentials::client_secret(at("tenant-1"), ""),
            "AZURE_CLIENT_SECRET",
        ),
        (
            AzureCredentials::client_secret(insecure, "s3cr3t-secret"),
            "https",
        ),
        (
            AzureCredentials::client_certificate(at("t"), elliptic),
            "RSA",
        ),
        (
            AzureCredentials::client_certificate(at("t"), &missing),
            "AZURE_CLIENT_CERTIFICATE_PATH",
        ),
        (
            AzureCredentials::workload_identity(at("t"), &missing),
            "AZURE_FEDERATED_TOKEN_FILE",
        ),
        (
            AzureCredentials::workload_identity(at("t"), &empty),
            "AZURE_FEDERATED_TOKEN_FILE",
        ),
        (
            AzureCredentials::managed_identity(ManagedIdentity::system().at("nowhere")),
            "AZURE_POD_IDENTITY_AUTHORITY_HOST",
        ),
    ];
    for (credentials, word) in cases {
        let arm = Arm::start();
        let error = list(&arm, credentials).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unauthenticated, "{error}");
        assert_eq!(error.effect(), Effect::None, "{error}");
        assert!(error.message().contains(word), "{word}: {error}");
        assert_no_secret(&format!("{error} {error:?}"));
        assert!(arm.requests().is_empty() && server.requests().is_empty());
    }
}

#[tokio::test]
async fn sovereign_cloud_has_its_own_scope() {
    for cloud in AzureCloud::ALL {
        for source in sources() {
            let (server, arm) = (TokenServer::start(issued), Arm::start());
            let mut options = fleetwright_azure::AzureOptions::for_cloud(cloud);
            assert_eq!(options.endpoint, cloud.endpoint());
            options.endpoint.clone_from(&arm.url);
            let credentials = (source.credentials)(&server.url);
            let launch = emulated::AzureHarness::launch_config();
            let azure = AzureProvisioner::new(credentials, launch, options).unwrap();
            azure.list_instances(&InstanceFilter::new()).await.unwrap();
            let request = server.requests().remove(0);
            if source.is_metadata {
                assert_eq!(query(&request, "resource").unwrap(), cloud.endpoint());
            } else {
                assert_eq!(form(&request, "scope").unwrap(), cloud.scope());
            }
        }
    }
}

#[tokio::test]
async fn logs_of_every_level_and_debug_contain_no_secret() {
    let log = local::Log::default();
    log.install();
    for source in sources() {
        for status in ["200 OK", "400 Bad Request", "503 Service Unavailable"] {
            let sent = Arc::new(Mutex::new(Vec::new()));
            let proofs = Arc::clone(&sent);
            let server = TokenServer::start(move |number, request| {
                let fields = ["client_secret", "client_assertion"];
                let each = fields.into_iter().filter_map(|name| form(request, name));
                proofs.lock().unwrap().extend(each);
                let body = match status {
                    "200 OK" => return issued(number, request),
                    _ => r#"{"error":"invalid_client","error_description":"s3cr3t-secret"}"#,
                };
                CannedResponse::new(status, body)
            });
            let credentials = (source.credentials)(&server.url);
            assert_no_secret(&format!("{credentials:?}"));
            let arm = Arm::start();
            let azure = arm.provisioner(credentials, Duration::from_secs(60));
            let result = azure.list_instances(&InstanceFilter::new()).await;
            assert_eq!(result.is_ok(), status == "200 OK", "{result:?}");
            assert_no_secret(&format!("{azure:?} {result:?}"));
            let text = log.text();
            assert!(
                text.contains("typespec_client_core"),
                "azure_identity logs: {text}"
            );
            assert_no_secret(&text);
            for proof in sent.lock().unwrap().iter() {
                assert!(!text.contains(proof.as_str()), "{}", source.name);
            }
        }
    }
}
