//! Templates of operators, for a GARM that renders none itself.
//!
//! Owns the plain variables of GARM's templates (cloudbase/garm-provider-common, `cloudconfig.InstallRunnerParams`). Anything else of Go's
//! template language is refused, because running half of a template is worse than running none.

use crate::{
    bootstrap::{BootstrapInstance, Tool},
    failure::Failure,
    secret::Secret,
    settings::{LaunchSettings, decode_text},
};

/// The user that runners run as, as in GARM's own templates.
pub(super) const RUNNER: &str = "runner";

/// Replaces the variables of a template.
pub(super) fn expand(
    template: &str,
    document: &BootstrapInstance,
    settings: &LaunchSettings,
) -> Result<String, Failure> {
    let (mut out, mut rest) = (String::new(), template);
    while let Some((before, after)) = rest.split_once("{{") {
        out.push_str(before);
        let Some((inside, after)) = after.split_once("}}") else {
            return Err(refused("an opening {{ without }}"));
        };
        let name = inside.trim();
        let value = variable(name, document, settings);
        out.push_str(&value.ok_or_else(|| refused(&format!("{{{{{inside}}}}}")))?);
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

fn refused(what: &str) -> Failure {
    let what: String = what.chars().take(80).collect();
    Failure::new(format!(
        "runner_install_template has {what}: only variables such as {{{{ .RunnerName }}}} and {{{{ .ExtraContext.name }}}} are replaced here; \
         use them only, or a GARM that renders templates itself with install = \"metadata\""
    ))
}

fn variable(name: &str, document: &BootstrapInstance, settings: &LaunchSettings) -> Option<String> {
    if let Some(key) = name.strip_prefix(".ExtraContext.") {
        return Some(settings.extra_context.get(key).cloned().unwrap_or_default());
    }
    let none = Tool::default();
    let tool = document.tool().unwrap_or(&none);
    let secret = |secret: Option<&Secret>| secret.map(|it| it.reveal().to_owned());
    let value = match name {
        ".FileName" => tool.filename.clone(),
        ".DownloadURL" => tool.download_url.clone(),
        ".TempDownloadToken" => secret(tool.temp_download_token.as_ref()),
        ".RunnerUsername" | ".RunnerGroup" => Some(RUNNER.to_owned()),
        ".RepoURL" => Some(document.repo_url.clone()),
        ".MetadataURL" => Some(document.metadata_url.clone()),
        ".CallbackURL" => Some(document.callback_url.clone()),
        ".CallbackToken" => secret(Some(&document.instance_token)),
        ".RunnerName" => Some(document.name.clone()),
        ".RunnerLabels" => Some(document.labels.join(",")),
        ".GitHubRunnerGroup" => Some(document.runner_group.clone()),
        ".CABundle" => Some(
            document
                .ca_bundle
                .as_deref()
                .and_then(decode_text)
                .unwrap_or_default(),
        ),
        ".EnableBootDebug" => Some(document.user_data_options.enable_boot_debug.to_string()),
        ".UseJITConfig" => Some(document.jit_config_enabled.to_string()),
        _ => return None,
    };
    Some(value.unwrap_or_default())
}
