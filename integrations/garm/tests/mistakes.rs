//! What people and broken callers do wrong, and the calls that need no cloud.

mod support;

use serde_json::{Value, json};
use support::{Cloud, Ec2Cloud, Garm, POOL, document};

#[test]
fn calls_without_a_cloud_need_nothing() {
    let garm = Garm::new("this is not TOML", &[]);
    let version = garm.run("GetVersion", &[], "");
    assert_eq!(
        (version.code, version.out.as_str()),
        (Some(0), concat!("v", env!("CARGO_PKG_VERSION")))
    );
    let mut garm = garm;
    garm.version = "v0.1.1";
    assert_eq!(
        garm.run("GetSupportedInterfaceVersions", &[], "").answer(),
        json!(["v0.1.0", "v0.1.1"])
    );
    for (command, field) in [
        ("GetConfigJSONSchema", "launch"),
        ("GetExtraSpecsJSONSchema", "alternatives"),
    ] {
        let schema = garm.run(command, &[], "").answer();
        assert!(schema["properties"][field].is_object(), "{schema}");
        assert_eq!(schema["additionalProperties"], false);
    }
}

#[test]
fn unknown_commands_and_versions_are_named() {
    let mut garm = Garm::new("", &[]);
    assert!(
        garm.run("Explode", &[], "")
            .failed(1)
            .contains("expected one of CreateInstance")
    );
    garm.version = "v9";
    assert!(
        garm.run("GetVersion", &[], "")
            .failed(1)
            .contains("v0.1.0 and v0.1.1")
    );
}

#[test]
fn all_mistakes_of_the_config_file_are_reported_before_anything_is_sent() {
    let garm = Garm::new("[ec2]\nregoin = \"x\"\n[launch]\ndisk_size_gb = 0\n", &[]);
    let cloud = Ec2Cloud::new();
    let ended = garm.create(&document(&cloud, "garm-a"));
    let message = ended.failed(1);
    for part in [
        "2 mistakes",
        "line 2, column 1: ec2.regoin: is unknown",
        "line 4, column 16: launch.disk_size_gb",
    ] {
        assert!(message.contains(part), "{message}");
    }
    let absent = garm.run(
        "ListInstances",
        &[
            ("GARM_POOL_ID", POOL),
            ("GARM_PROVIDER_CONFIG_FILE", "no/such/file"),
        ],
        "",
    );
    assert!(absent.failed(1).contains("no/such/file"));
}

#[test]
fn variables_that_are_missing_are_named() {
    let cloud = Ec2Cloud::new();
    let garm = Garm::on(&cloud);
    let input = document(&cloud, "garm-a").to_string();
    let cases = [
        (
            "DeleteInstance",
            ("GARM_INSTANCE_ID", ""),
            "",
            "GARM_INSTANCE_ID is not set",
        ),
        (
            "ListInstances",
            ("GARM_POOL_ID", ""),
            "",
            "GARM_POOL_ID is not set",
        ),
        (
            "CreateInstance",
            ("GARM_CONTROLLER_ID", ""),
            &input,
            "GARM_CONTROLLER_ID is not set",
        ),
        (
            "CreateInstance",
            ("GARM_POOL_ID", "another"),
            &input,
            "one call is for one pool",
        ),
        (
            "CreateInstance",
            ("GARM_PROVIDER_CONFIG_FILE", ""),
            &input,
            "GARM_PROVIDER_CONFIG_FILE is not set",
        ),
        (
            "CreateInstance",
            ("GARM_POOL_ID", POOL),
            "",
            "standard input is empty",
        ),
        (
            "CreateInstance",
            ("GARM_POOL_ID", POOL),
            "{\"name\":",
            "not valid JSON",
        ),
    ];
    for (command, variable, input, expected) in cases {
        let ended = garm.run(command, &[variable], input);
        assert!(ended.failed(1).contains(expected), "{ended:?}");
    }
    assert_eq!(cloud.calls(), 0);
}

#[test]
fn input_is_bounded() {
    let cloud = Ec2Cloud::new();
    let garm = Garm::on(&cloud);
    let mut large = document(&cloud, "garm-a");
    large["repo_url"] = Value::from("x".repeat(5 * 1024 * 1024));
    assert!(
        garm.create(&large)
            .failed(1)
            .contains("more than 4194304 bytes")
    );
}

#[test]
fn user_data_that_does_not_fit_is_refused_before_anything_is_sent() {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    let cloud = Ec2Cloud::new();
    let garm = Garm::on(&cloud);
    // A small generator: its output cannot be compressed.
    let mut state = 1_u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        state.to_be_bytes()[0]
    };
    let noise: Vec<u8> = (0..40_000).map(|_| next()).collect();
    let mut large = document(&cloud, "garm-large");
    large["extra_specs"] = json!({"pre_install_scripts": {"noise": STANDARD.encode(noise)}});
    let ended = garm.create(&large);
    assert!(
        ended.failed(1).contains("the cloud takes 16384"),
        "{ended:?}"
    );
    assert_eq!(cloud.calls(), 0);
}

#[test]
fn extra_specs_are_checked() {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    let cloud = Ec2Cloud::new();
    let mut garm = Garm::on(&cloud);
    let mut wrong = document(&cloud, "garm-a");
    wrong["extra_specs"] = json!({"disk_size": 10, "market": "sport"});
    let created = garm.create(&wrong);
    let message = created.failed(1);
    assert!(
        message.contains("2 mistakes") && message.contains("did you mean disk_size_gb?"),
        "{message}"
    );

    garm.version = "v0.1.1";
    let specs = |value: &Value| STANDARD.encode(value.to_string());
    let good = specs(&json!({"disk_size_gb": 10}));
    garm.run("ValidatePoolInfo", &[("GARM_POOL_EXTRASPECS", &good)], "")
        .done();
    garm.run(
        "ValidatePoolInfo",
        &[],
        r#"{"image": "ami-1", "flavor": "t3.micro"}"#,
    )
    .done();
    let bad = specs(&wrong["extra_specs"]);
    let checked = garm.run("ValidatePoolInfo", &[("GARM_POOL_EXTRASPECS", &bad)], "");
    assert!(checked.failed(1).contains("2 mistakes"), "{checked:?}");
    let checked = garm.run(
        "ValidatePoolInfo",
        &[],
        r#"{"image": "ami\n1", "flavor": "t3.micro"}"#,
    );
    checked.failed(1);
}

#[test]
fn secrets_are_in_no_output() {
    // `Garm::run` checks every output for the token. These calls fail in the middle of a launch.
    let cloud = Ec2Cloud::new();
    let garm = Garm::with_settings(&cloud, "total_timeout_seconds = 1\n");
    cloud.fault(None, fleetwright_emulators::Fault::Malformed);
    let ended = garm.create(&document(&cloud, "garm-a"));
    assert!(!ended.failed(1).contains("s3cr3t"), "{ended:?}");
    cloud.clear_faults();
    let mut unknown = document(&cloud, "garm-b");
    unknown["image"] = json!("ami-0fffffffffffffff0");
    let ended = garm.create(&unknown);
    assert!(
        ended.err.contains("ami-0fffffffffffffff0") && !ended.err.contains("s3cr3t"),
        "{ended:?}"
    );
}

#[test]
fn call_ends_on_sigterm() {
    let cloud = Ec2Cloud::new();
    let garm = Garm::on(&cloud);
    cloud.hang(1, support::Phase::Before);
    let before = cloud.calls();
    let child = garm.start("ListInstances", &[("GARM_POOL_ID", POOL)], "");
    support::eventually(|| {
        if cloud.calls() > before {
            Ok(())
        } else {
            Err("no request".to_owned())
        }
    });
    let killed = std::process::Command::new("kill")
        .arg(child.id().to_string())
        .status();
    assert!(killed.unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("SIGTERM"));
}

/// Operators' tools read the schemas: a change of them is a change of the interface.
#[test]
fn schemas_are_those_that_are_kept() {
    let mut garm = Garm::new("", &[]);
    garm.version = "v0.1.1";
    let kept = [
        ("GetConfigJSONSchema", include_str!("schemas/Config.json")),
        (
            "GetExtraSpecsJSONSchema",
            include_str!("schemas/ExtraSpecs.json"),
        ),
    ];
    for (command, text) in kept {
        let kept: Value = serde_json::from_str(text).unwrap();
        assert_eq!(garm.run(command, &[], "").answer(), kept, "{command}");
    }
}
