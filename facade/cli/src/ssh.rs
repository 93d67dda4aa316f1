//! Runs ssh with the key of an instance in a file that only the caller can read, and removes the file afterwards.

use std::{io::Write as _, net::IpAddr, process::ExitStatus};

use fleetwright_api::{Instance, SshKey};
use tempfile::NamedTempFile;
use tokio::process::Command;

use crate::{
    arguments::SshInstance,
    failure::{Code, Failure},
};

/// Runs ssh and returns its exit code.
pub(crate) async fn run(
    instance: &Instance,
    key: &SshKey,
    arguments: &SshInstance,
) -> Result<u8, Failure> {
    let address = address(instance, arguments.private)?;
    let destination = match &arguments.user {
        Some(user) => format!("{user}@{address}"),
        None => address.to_string(),
    };
    let file = write(key)?;
    let mut command = Command::new("ssh");
    command
        .arg("-i")
        .arg(file.path())
        .args(["-o", "IdentitiesOnly=yes"]);
    command
        .arg("--")
        .arg(destination)
        .args(&arguments.command)
        .kill_on_drop(true);
    let child = command.spawn();
    let mut child = child.map_err(|error| {
        Failure::other(format!("ssh cannot be started: {error}")).advice("install OpenSSH's client")
    })?;
    let status = tokio::select! {
        status = child.wait() => Some(status),
        () = ended() => None,
    };
    let status = match status {
        Some(status) => status,
        None => {
            // A signal that would leave the key behind: ssh ends first.
            let _ = child.start_kill();
            child.wait().await
        }
    };
    let removed = file.close();
    removed.map_err(|error| {
        Failure::other(format!("the file with the key cannot be removed: {error}"))
    })?;
    let status =
        status.map_err(|error| Failure::other(format!("ssh cannot be waited for: {error}")))?;
    Ok(code(status))
}

/// The address to connect to: the public one, if there is one.
fn address(instance: &Instance, is_private: bool) -> Result<IpAddr, Failure> {
    let status = &instance.status;
    let public = status.public_ip.as_deref().filter(|_| !is_private);
    let text = public.or(status.private_ip.as_deref()).ok_or_else(|| {
        let message = format!("instance {} has no address", instance.metadata.name);
        Failure::new(Code::Conflict, message)
            .advice("start it, or wait until it runs: fleetwright instances start --wait")
    })?;
    parse(&instance.metadata.name, text)
}

/// An address as the service sent it. ssh would read other text as a host of the caller's own configuration, or as more than a host.
fn parse(name: &str, text: &str) -> Result<IpAddr, Failure> {
    text.parse().map_err(|_| {
        Failure::other(format!(
            "the address of instance {name} is {text:?}, which is no IP address, and ssh is not started"
        ))
        .advice("tell an operator: the service has a wrong address for the instance")
    })
}

/// A file that only the caller can read.
fn write(key: &SshKey) -> Result<NamedTempFile, Failure> {
    let failed = |error: std::io::Error| {
        Failure::other(format!(
            "the key cannot be written to a temporary file: {error}"
        ))
    };
    let mut file = NamedTempFile::with_prefix("fleetwright-key-").map_err(failed)?;
    file.write_all(key.private_key.as_bytes()).map_err(failed)?;
    if !key.private_key.ends_with('\n') {
        file.write_all(b"\n").map_err(failed)?;
    }
    file.flush().map_err(failed)?;
    Ok(file)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "exit codes are 0 to 255"
)]
fn code(status: ExitStatus) -> u8 {
    #[cfg(unix)]
    {
        use std::os::unix::process::ExitStatusExt as _;
        if let Some(signal) = status.signal() {
            return 128_u8.wrapping_add(signal as u8);
        }
    }
    status.code().map_or(1, |code| code as u8)
}

/// Returns when this program shall end. An interrupt from the keyboard reaches ssh itself, which decides.
#[cfg(unix)]
async fn ended() {
    use tokio::signal::unix::{SignalKind, signal};
    let of = |kind| signal(kind).ok();
    let (terminate, hangup, interrupt) = (
        of(SignalKind::terminate()),
        of(SignalKind::hangup()),
        of(SignalKind::interrupt()),
    );
    let (Some(mut terminate), Some(mut hangup), Some(_interrupt)) = (terminate, hangup, interrupt)
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = hangup.recv() => {}
    }
}

#[cfg(not(unix))]
async fn ended() {
    std::future::pending().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_ip_address_is_given_to_ssh() {
        for text in ["10.0.0.1", "2001:db8::1"] {
            let parsed = parse("web-1", text).map(|address| address.to_string());
            assert!(parsed.is_ok_and(|parsed| parsed == text), "{text}");
        }
        for text in [
            "prod-db",
            "ssh://h",
            "$(x)",
            "-oProxyCommand=x",
            "10.0.0.1 -v",
            "10.0.0.1\n",
            "[2001:db8::1]",
            "fe80::1%eth0",
            "ada@10.0.0.1",
            "",
        ] {
            let refused = parse("web-1", text).map_err(|failure| failure.message().to_owned());
            let expected = format!("{text:?}");
            assert!(
                refused.is_err_and(|message| message.contains(&expected)),
                "{text}"
            );
        }
    }
}
