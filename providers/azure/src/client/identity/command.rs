//! The `az` command.
//!
//! Owns how the command is run and what its failure means. The command is killed if nobody waits for
//! it any more. Its output may contain a token and is never kept.

use std::{
    ffi::OsStr,
    io,
    process::{Output, Stdio},
};

use azure_identity::Executor;
use fleetwright::async_trait;

use super::service::aadsts;
use crate::TokenFailure;

/// What the command prints if it cannot reach the authority.
const NETWORK_WORDS: [&str; 6] = [
    "max retries exceeded",
    "connection aborted",
    "connection error",
    "failed to establish a new connection",
    "name resolution",
    "timed out",
];

/// Runs the `az` command.
#[derive(Debug)]
pub(super) struct AzCommand;

#[async_trait]
impl Executor for AzCommand {
    async fn run(&self, program: &OsStr, args: &[&OsStr]) -> io::Result<Output> {
        let mut command = tokio::process::Command::new(program);
        command
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        #[cfg(unix)]
        command.process_group(0);
        let child = command.spawn()?;
        let group = ProcessGroup(child.id());
        let output = child.wait_with_output().await?;
        group.has_ended();
        if output.status.success() {
            return Ok(output);
        }
        let stderr = String::from_utf8_lossy(&output.stderr);
        Err(io::Error::other(failure(output.status.code(), &stderr)))
    }
}

/// The shell, the command and what it starts. Killed when it is dropped before its end: killing the
/// shell alone would leave the command running.
struct ProcessGroup(Option<u32>);

impl ProcessGroup {
    fn has_ended(mut self) {
        self.0 = None;
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if let Some(id) = self.0.filter(|_| cfg!(unix)) {
            // The standard library cannot kill a group. If this fails, the command ends by itself.
            let _ = std::process::Command::new("/bin/sh")
                .args(["-c", &format!("kill -s KILL -- -{id}")])
                .stderr(Stdio::null())
                .status();
        }
    }
}

/// Returns what a failed command means.
fn failure(code: Option<i32>, stderr: &str) -> TokenFailure {
    if code == Some(127) {
        return TokenFailure::refused(
            "the az command was not found; install the Azure CLI, or select another source with AZURE_TOKEN_CREDENTIALS",
        );
    }
    let words = stderr.to_ascii_lowercase();
    // It was killed, or it has no connection.
    if code.is_none() || NETWORK_WORDS.iter().any(|word| words.contains(word)) {
        return TokenFailure::unavailable("the az command cannot reach the authority; retry later");
    }
    let code = aadsts(stderr).map_or_else(String::new, |number| format!(" (AADSTS{number})"));
    TokenFailure::refused(format!(
        "the az command returned no token{code}; run az login"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_network_problems_can_be_retried() {
        let lost = "ERROR: HTTPSConnectionPool(host='login.microsoftonline.com', port=443): Max retries exceeded with \
                    url: /s3cr3t/oauth2";
        let expired =
            "ERROR: AADSTS700082: The refresh token s3cr3t has expired. Please run: az login";
        for (code, stderr, passes, word) in [
            (Some(127), "az: not found", false, "not found"),
            (Some(1), lost, true, "retry"),
            (None, "", true, "retry"),
            (Some(1), expired, false, "AADSTS700082"),
            (
                Some(1),
                "ERROR: Please run 'az login' to setup account.",
                false,
                "az login",
            ),
        ] {
            let failure = failure(code, stderr);
            assert_eq!(
                matches!(failure, TokenFailure::Unavailable(_)),
                passes,
                "{stderr}"
            );
            assert!(failure.message().contains(word), "{failure}");
            assert!(!failure.message().contains("s3cr3t"), "{failure}");
        }
    }
}
