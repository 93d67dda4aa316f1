//! The first boot of a Linux machine, for cloud-init.
//!
//! Owns the document. It is JSON, which is YAML too, so that no value can break out of its place.

use serde_json::{Value, json};

use super::{Source, template::RUNNER};
use crate::{
    bootstrap::BootstrapInstance,
    failure::Failure,
    settings::{LaunchSettings, decode, decode_text},
};

const BOOT: &str = include_str!("scripts/boot.sh");
const INSTALL: &str = include_str!("scripts/install.sh");

/// Where the scripts are on the machine. Only root reads the folder.
const FOLDER: &str = "/var/lib/garm-provider";

/// Returns the document.
pub(super) fn cloud_config(
    document: &BootstrapInstance,
    settings: &LaunchSettings,
    source: &Source,
) -> Result<Vec<u8>, Failure> {
    let options = &document.user_data_options;
    let is_upgraded = !settings
        .disable_updates
        .unwrap_or(options.disable_updates_on_boot);
    let mut packages: Vec<&str> = if is_upgraded {
        vec!["curl", "tar"]
    } else {
        vec![]
    };
    let extra = settings.extra_packages.iter().flatten();
    for package in options.extra_packages.iter().chain(extra) {
        if !packages.contains(&package.as_str()) {
            packages.push(package);
        }
    }
    let boot = format!("{}{BOOT}", variables(document, source));
    let mut files = vec![file("boot.sh", boot.as_bytes())];
    if let Some(script) = &source.fallback {
        files.push(file("install.sh", script.as_bytes()));
    }
    let mut commands = Vec::new();
    for (name, script) in &settings.pre_install_scripts {
        let script = decode(script).unwrap_or_default();
        files.push(file(&format!("pre-install/{name}"), &script));
        let path = format!("{FOLDER}/pre-install/{name}");
        commands.push(json!(["chmod", "0700", path]));
        commands.push(json!([path]));
    }
    commands.push(json!(["bash", format!("{FOLDER}/boot.sh")]));
    commands.push(json!(["rm", "-rf", FOLDER]));
    let mut config = json!({
        "package_upgrade": is_upgraded,
        "packages": packages,
        "users": ["default"],
        "system_info": {"default_user": {
            "name": RUNNER,
            "home": format!("/home/{RUNNER}"),
            "shell": "/bin/bash",
            "groups": ["sudo", "adm", "docker"],
            "sudo": "ALL=(ALL) NOPASSWD:ALL",
        }},
        "write_files": files,
        "runcmd": commands,
    });
    let mut set = |key: &str, value: Value| {
        if let Some(fields) = config.as_object_mut() {
            fields.insert(key.to_owned(), value);
        }
    };
    if !document.ssh_keys.is_empty() {
        set("ssh_authorized_keys", json!(document.ssh_keys));
    }
    if let Some(bundle) = bundle(document)? {
        // The name that every version of cloud-init knows.
        set("ca-certs", json!({"trusted": [bundle]}));
    }
    let proxy = &document.proxy_config;
    let (http, https) = (proxy.http_proxy.reveal(), proxy.https_proxy.reveal());
    let mut apt = serde_json::Map::new();
    for (key, value) in [("http_proxy", http), ("https_proxy", https)] {
        if !value.is_empty() {
            apt.insert(key.to_owned(), json!(value));
        }
    }
    if !apt.is_empty() {
        let one = if http.is_empty() { https } else { http };
        // dnf and yum have one proxy for both. cloud-init runs this at every boot.
        let line = format!("proxy={one}");
        let command = format!(
            "for conf in /etc/dnf/dnf.conf /etc/yum.conf; do [ ! -f $conf ] || grep -q ^proxy= $conf || echo {} >> $conf; done",
            quoted(&line)
        );
        set("bootcmd", json!([["sh", "-c", command]]));
        set("apt", Value::Object(apt));
    }
    Ok(format!("#cloud-config\n{config}\n").into_bytes())
}

/// Returns the self-contained install script for GitHub's runner.
pub(super) fn install_script(
    document: &BootstrapInstance,
    settings: &LaunchSettings,
) -> Result<String, Failure> {
    let tool = document.tool();
    let name = tool.and_then(|tool| tool.filename.as_deref());
    let name = name.filter(|name| name.starts_with("actions-runner") && !name.contains('/'));
    let url = tool.and_then(|tool| tool.download_url.as_deref());
    let (Some(tool), Some(name), Some(url)) = (tool, name, url) else {
        return Err(Failure::new(format!(
            "GARM sent no download of GitHub's runner for {} on {}, and the built-in script installs nothing else: set install = \"metadata\", \
             or runner_install_template",
            document.os_type.as_str(),
            document.arch.as_str()
        )));
    };
    let token = tool.temp_download_token.as_ref();
    let is_debug = document.user_data_options.enable_boot_debug;
    let is_debug = settings.enable_boot_debug.unwrap_or(is_debug);
    let variables = [
        ("RUNNER_NAME", document.name.as_str()),
        ("REPO_URL", &document.repo_url),
        ("RUNNER_LABELS", &document.labels.join(",")),
        ("RUNNER_GROUP", &document.runner_group),
        ("FILE_NAME", name),
        ("DOWNLOAD_URL", url),
        ("DOWNLOAD_TOKEN", token.map_or("", |token| token.reveal())),
        (
            "SHA256",
            tool.sha256_checksum.as_deref().unwrap_or_default(),
        ),
        (
            "IS_JIT",
            if document.jit_config_enabled {
                "yes"
            } else {
                ""
            },
        ),
        ("IS_DEBUG", if is_debug { "yes" } else { "" }),
    ];
    let head = "#!/bin/bash\n".to_owned() + &shared(document);
    Ok(head + &assignments(&variables) + INSTALL)
}

fn variables(document: &BootstrapInstance, source: &Source) -> String {
    let fetch = if source.fetch { "yes" } else { "" };
    let fallback = if source.fallback.is_some() { "yes" } else { "" };
    let own = [
        ("FOLDER", FOLDER),
        ("RUNNER_USER", RUNNER),
        ("FETCH", fetch),
        ("HAS_FALLBACK", fallback),
    ];
    "#!/bin/bash\n".to_owned() + &shared(document) + &assignments(&own)
}

/// Returns the lines that both scripts begin with.
fn shared(document: &BootstrapInstance) -> String {
    let proxy = &document.proxy_config;
    let mut lines = assignments(&[
        ("CALLBACK_URL", &document.callback_url),
        ("METADATA_URL", &document.metadata_url),
        ("TOKEN", document.instance_token.reveal()),
    ]);
    let proxies = [
        ("http_proxy", proxy.http_proxy.reveal()),
        ("https_proxy", proxy.https_proxy.reveal()),
        ("no_proxy", &proxy.no_proxy),
    ];
    for (name, value) in proxies.into_iter().filter(|(_, value)| !value.is_empty()) {
        let (value, upper) = (quoted(value), name.to_uppercase());
        lines += &format!("export {name}={value} {upper}={value}\n");
    }
    lines
}

fn assignments(variables: &[(&str, &str)]) -> String {
    let line = |(name, value): &(&str, &str)| format!("{name}={}\n", quoted(value));
    variables.iter().map(line).collect()
}

/// Quotes a text for the shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn file(name: &str, content: &[u8]) -> Value {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    let path = format!("{FOLDER}/{name}");
    let owner = "root:root";
    // Text compresses better than base64, if cloud-init gets the document compressed.
    match std::str::from_utf8(content) {
        Ok(text) => json!({"path": path, "owner": owner, "permissions": "0600", "content": text}),
        Err(_) => json!({
            "path": path, "owner": owner, "permissions": "0600", "encoding": "b64", "content": STANDARD.encode(content),
        }),
    }
}

/// Returns the CA bundle as text.
pub(super) fn bundle(document: &BootstrapInstance) -> Result<Option<String>, Failure> {
    let Some(encoded) = document
        .ca_bundle
        .as_deref()
        .filter(|text| !text.is_empty())
    else {
        return Ok(None);
    };
    let text = decode_text(encoded).filter(|text| text.contains("-----BEGIN CERTIFICATE-----"));
    text.map(Some).ok_or_else(|| {
        let message = "ca-cert-bundle is not PEM in base64: correct the CA bundle of the forge's endpoint in GARM";
        Failure::new(message)
    })
}
