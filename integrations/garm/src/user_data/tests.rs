//! Tests of the document of the first boot.
#![allow(
    clippy::needless_pass_by_value,
    reason = "values of json! are written in place"
)]

use serde_json::{Value, json};

use super::*;

const TOKEN: &str = "s3cr3t'tok\"en";

fn document(change: impl FnOnce(&mut Value)) -> BootstrapInstance {
    let mut value = json!({
        "name": "garm-1", "arch": "amd64", "os_type": "linux", "flavor": "f", "image": "i", "pool_id": "p",
        "callback-url": "https://garm/api/v1/callbacks", "metadata-url": "https://garm/api/v1/metadata/",
        "instance-token": TOKEN, "repo_url": "https://github.com/a/b", "labels": ["x", "y"],
        "tools": [
            {"os": "linux", "architecture": "x64", "download_url": "https://dl/linux", "filename": "actions-runner-linux.tar.gz"},
            {"os": "win", "architecture": "x64", "download_url": "https://dl/win", "filename": "actions-runner-win.zip"},
        ],
    });
    change(&mut value);
    BootstrapInstance::parse(value.to_string().as_bytes()).unwrap()
}

fn settings(value: Value) -> LaunchSettings {
    LaunchSettings::of_pool(&value).unwrap()
}

fn encoded(text: &str) -> String {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    STANDARD.encode(text)
}

fn cloud_config(document: &BootstrapInstance, settings: &LaunchSettings) -> Value {
    let boot = first_boot(document, settings, WindowsBy::Nothing).unwrap();
    let text = String::from_utf8(boot.user_data.unwrap().0).unwrap();
    serde_json::from_str(text.strip_prefix("#cloud-config\n").unwrap()).unwrap()
}

fn paths(config: &Value) -> Vec<&str> {
    let files = config["write_files"].as_array().unwrap();
    files
        .iter()
        .map(|file| file["path"].as_str().unwrap())
        .collect()
}

#[test]
fn garm_with_install_scripts_gets_a_small_document() {
    let wrapper = encoded("curl $METADATA_URL/install-script/");
    let pool = settings(json!({"runner_install_template": wrapper}));
    let config = cloud_config(&document(|_| {}), &pool);
    assert_eq!(paths(&config), ["/var/lib/garm-provider/boot.sh"]);
    let script = config["write_files"][0]["content"].as_str().unwrap();
    assert!(
        script.contains("FETCH='yes'\nHAS_FALLBACK=''\n"),
        "{script}"
    );
    assert!(
        config.to_string().len() < 4096,
        "{}",
        config.to_string().len()
    );
}

#[test]
fn older_garm_gets_the_script_with_the_document() {
    let config = cloud_config(&document(|_| {}), &settings(json!({})));
    let expected = [
        "/var/lib/garm-provider/boot.sh",
        "/var/lib/garm-provider/install.sh",
    ];
    assert_eq!(paths(&config), expected);
    for file in config["write_files"].as_array().unwrap() {
        assert_eq!(file["permissions"], "0600");
    }
    let only = settings(json!({"install": "script"}));
    let config = cloud_config(&document(|value| value["metadata-url"] = json!("")), &only);
    let boot = config["write_files"][0]["content"].as_str().unwrap();
    assert!(boot.contains("FETCH=''\nHAS_FALLBACK='yes'\n"), "{boot}");
}

#[test]
fn template_of_a_pool_is_used_where_garm_renders_none() {
    let template =
        encoded("#!/bin/sh\n# {{ .RunnerName }} {{.ExtraContext.team}} {{ .RunnerLabels }}\n");
    let pool =
        settings(json!({"runner_install_template": template, "extra_context": {"team": "blue"}}));
    let config = cloud_config(&document(|_| {}), &pool);
    assert_eq!(
        config["write_files"][1]["content"],
        "#!/bin/sh\n# garm-1 blue x,y\n"
    );
    let unsupported = encoded("{{ if .UseJITConfig }}x{{ end }}");
    let pool = settings(json!({"runner_install_template": unsupported, "install": "script"}));
    let message = first_boot(&document(|_| {}), &pool, WindowsBy::Nothing).unwrap_err();
    assert!(
        message.to_string().contains("{{ if .UseJITConfig }}"),
        "{message}"
    );
}

#[test]
fn options_of_garm_and_of_the_pool_are_in_the_document() {
    let bundle = encoded("-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n");
    let document = document(|value| {
        value["ssh-keys"] = json!(["ssh-ed25519 AAAA me"]);
        value["ca-cert-bundle"] = json!(bundle);
        value["user_data_options"] =
            json!({"disable_updates_on_boot": true, "extra_packages": ["jq"]});
        value["proxy_config"] = json!({"http_proxy": "http://proxy:1", "no_proxy": "localhost"});
    });
    let pool = settings(json!({
        "extra_packages": ["git", "jq"],
        "pre_install_scripts": {"02-b": encoded("b"), "01-a": encoded("a")},
    }));
    let config = cloud_config(&document, &pool);
    assert_eq!(config["package_upgrade"], false);
    assert_eq!(config["packages"], json!(["jq", "git"]));
    assert_eq!(
        config["ssh_authorized_keys"],
        json!(["ssh-ed25519 AAAA me"])
    );
    assert_eq!(config["ca-certs"]["trusted"].as_array().unwrap().len(), 1);
    assert_eq!(config["apt"], json!({"http_proxy": "http://proxy:1"}));
    assert!(
        config["bootcmd"]
            .to_string()
            .contains("'proxy=http://proxy:1'")
    );
    let commands = config["runcmd"].to_string();
    assert!(commands.find("01-a").unwrap() < commands.find("02-b").unwrap());
    let boot = config["write_files"][0]["content"].as_str().unwrap();
    assert!(
        boot.contains("export no_proxy='localhost' NO_PROXY='localhost'"),
        "{boot}"
    );
}

#[test]
fn values_cannot_break_out_of_the_scripts() {
    let config = cloud_config(&document(|_| {}), &settings(json!({})));
    let boot = config["write_files"][0]["content"].as_str().unwrap();
    assert!(boot.contains(r#"TOKEN='s3cr3t'\''tok"en'"#), "{boot}");
    let windows = document(|value| value["os_type"] = json!("windows"));
    let boot = first_boot(&windows, &settings(json!({})), WindowsBy::UserData).unwrap();
    let text = String::from_utf8(boot.user_data.unwrap().0).unwrap();
    assert!(text.starts_with("<powershell>\n") && text.ends_with("</powershell>\n"));
    assert!(text.contains("$Token = 's3cr3t''tok\"en'\n"));
}

#[test]
fn windows_needs_a_cloud_that_has_it() {
    let windows = document(|value| value["os_type"] = json!("windows"));
    let boot = first_boot(&windows, &settings(json!({})), WindowsBy::Metadata).unwrap();
    assert!(boot.user_data.is_none() && boot.windows_script.is_some());
    let refused = first_boot(&windows, &settings(json!({})), WindowsBy::Nothing).unwrap_err();
    assert!(refused.to_string().contains("Linux only"), "{refused}");
}

#[test]
fn large_documents_are_compressed_and_too_large_ones_are_refused_with_their_sizes() {
    let text = "0123456789abcdef\n".repeat(2_000);
    let pool = settings(json!({"pre_install_scripts": {"a": encoded(&text)}}));
    let data = || {
        first_boot(&document(|_| {}), &pool, WindowsBy::Nothing)
            .unwrap()
            .user_data
            .unwrap()
    };
    let packed = data().within(16_384, OsType::Linux).unwrap();
    assert!(packed.starts_with(&[0x1f, 0x8b]) && packed.len() < 16_384);
    let message = data().within(1_000, OsType::Linux).unwrap_err().to_string();
    assert!(message.contains("the cloud takes 1000"), "{message}");
    let message = data()
        .within(16_384, OsType::Windows)
        .unwrap_err()
        .to_string();
    assert!(
        message.contains("Windows cannot read it compressed"),
        "{message}"
    );
}

#[test]
fn nothing_shows_the_token() {
    let boot = first_boot(&document(|_| {}), &settings(json!({})), WindowsBy::Nothing).unwrap();
    assert!(!format!("{boot:?}").contains("s3cr3t"));
    let debug = format!("{:?}", document(|_| {}));
    assert!(!debug.contains("s3cr3t"), "{debug}");
}
