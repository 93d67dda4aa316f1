//! The first boot of a Windows machine, in PowerShell.

use super::{Source, linux::bundle};
use crate::{bootstrap::BootstrapInstance, failure::Failure, settings::LaunchSettings};

const BOOT: &str = include_str!("scripts/boot.ps1");
const INSTALL: &str = include_str!("scripts/install.ps1");

/// Returns the script.
pub(super) fn script(
    document: &BootstrapInstance,
    settings: &LaunchSettings,
    source: &Source,
) -> Result<String, Failure> {
    let is_debug = document.user_data_options.enable_boot_debug;
    let is_debug = settings.enable_boot_debug.unwrap_or(is_debug);
    let proxy = &document.proxy_config;
    let mut lines = assignments(&[
        ("CallbackUrl", document.callback_url.as_str()),
        ("MetadataUrl", &document.metadata_url),
        ("Token", document.instance_token.reveal()),
        ("HttpProxy", proxy.http_proxy.reveal()),
        ("HttpsProxy", proxy.https_proxy.reveal()),
        ("NoProxy", &proxy.no_proxy),
        ("CaBundle", &bundle(document)?.unwrap_or_default()),
        ("Fetch", if source.fetch { "yes" } else { "" }),
        ("IsDebug", if is_debug { "yes" } else { "" }),
        ("Fallback", source.fallback.as_deref().unwrap_or_default()),
    ]);
    lines += BOOT;
    Ok(lines)
}

/// Returns the self-contained install script for GitHub's runner.
pub(super) fn install_script(document: &BootstrapInstance) -> Result<String, Failure> {
    let tool = document.tool();
    let name = tool.and_then(|tool| tool.filename.as_deref());
    let name =
        name.filter(|name| name.starts_with("actions-runner") && !name.contains(['/', '\\']));
    let url = tool.and_then(|tool| tool.download_url.as_deref());
    let (Some(tool), Some(name), Some(url)) = (tool, name, url) else {
        return Err(Failure::new(
            "GARM sent no download of GitHub's runner for Windows, and the built-in script installs nothing else: set install = \"metadata\", or \
             runner_install_template",
        ));
    };
    let token = tool.temp_download_token.as_ref();
    let labels = document.labels.join(",");
    let head = assignments(&[
        ("CallbackUrl", document.callback_url.as_str()),
        ("MetadataUrl", &document.metadata_url),
        ("Token", document.instance_token.reveal()),
        ("RunnerName", &document.name),
        ("RepoUrl", &document.repo_url),
        ("RunnerLabels", &labels),
        ("RunnerGroup", &document.runner_group),
        ("FileName", name),
        ("DownloadUrl", url),
        ("DownloadToken", token.map_or("", |token| token.reveal())),
        (
            "Sha256",
            tool.sha256_checksum.as_deref().unwrap_or_default(),
        ),
        (
            "IsJit",
            if document.jit_config_enabled {
                "yes"
            } else {
                ""
            },
        ),
    ]);
    Ok(head + INSTALL)
}

/// Returns a script as EC2's agents and cloudbase-init read it from user data.
pub(super) fn as_user_data(script: &str) -> String {
    format!("<powershell>\n{script}\n</powershell>\n")
}

fn assignments(variables: &[(&str, &str)]) -> String {
    let line = |(name, value): &(&str, &str)| format!("${name} = '{}'\n", quoted(value));
    variables.iter().map(line).collect()
}

/// Escapes a text for quotes. PowerShell takes typographic quotes for quotes.
fn quoted(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        out.push(c);
        if matches!(c, '\'' | '‘' | '’' | '‚' | '‛') {
            out.push(c);
        }
    }
    out
}
