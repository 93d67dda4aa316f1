//! The managed cloud-config: what the operator adds to a machine. cloud-init merges it into the settings of the user data and
//! replaces none of them.

use std::{fmt, fmt::Write as _};

use uuid::Uuid;

use crate::Mode;

/// The settings that are appended to. In user data they must be lists.
pub(crate) const LISTS: [&str; 3] = ["ssh_authorized_keys", "write_files", "runcmd"];

/// The longest key of a certificate authority, in bytes: 8 KiB.
pub const MAX_AUTHORITY_KEY_BYTES: usize = 8192;
/// The longest public key line that can be added, in bytes.
const MAX_PUBLIC_KEY_BYTES: usize = 256;
/// The longest comment that can be added, in bytes: a UUID with hyphens.
const MAX_COMMENT_BYTES: usize = 36;

/// How cloud-init merges this config: lists are appended to, and nothing is replaced. cloud-init's default is to replace.
const MERGE: &str = "\
merge_how:
  - name: list
    settings: [append]
  - name: dict
    settings: [no_replace, recurse_list]
";
/// The file with the key of the authority.
const TRUSTED: &str = "/etc/ssh/fleetwright_user_ca.pub";
/// The file that makes sshd trust it. sshd uses the first value of a setting, and reads these files in the order of their names.
const DROP_IN: &str = "/etc/ssh/sshd_config.d/00-fleetwright-user-ca.conf";
/// Adds the setting to sshd's main file if that does not include the directory of the drop-in, as old versions do not.
const OLD_SSHD: &str = "f=/etc/ssh/sshd_config; if [ -f $f ] && ! grep -Eqi '^[[:space:]]*include[[:space:]].*sshd_config[.]d/' $f && \
! grep -qF fleetwright_user_ca $f; then sed -i '1i TrustedUserCAKeys /etc/ssh/fleetwright_user_ca.pub' $f; fi";
/// Reloads sshd, which may be running under one of two names. If it is not running, it reads its files when it starts.
const RELOAD: &str = "for s in ssh sshd; do if [ -d /run/systemd/system ]; then systemctl try-reload-or-restart $s.service && exit 0; \
else service $s reload && exit 0; fi; done; exit 1";

/// A cloud-config that is added to user data: a public key, an SSH certificate authority, or both. A new one is empty, and nothing is added.
///
/// The arguments are trusted: the caller validates keys and comments, because they become YAML that the machine applies as root.
///
/// ```
/// use fleetwright_cloud_init::{ManagedConfig, Mode};
/// use uuid::Uuid;
///
/// let config = ManagedConfig::new(Uuid::from_u128(1));
/// assert_eq!(config.mode(), Mode::Alone);
/// let config = config.with_public_key("ssh-ed25519 AAAA server-1");
/// assert_eq!(config.mode(), Mode::Merged);
/// ```
#[derive(Clone)]
pub struct ManagedConfig {
    seed: Uuid,
    public_key: Option<String>,
    /// The key of the authority, with its comment.
    authority: Option<String>,
}

impl ManagedConfig {
    /// Creates an empty config. `seed` identifies the machine or its server; the boundary of the archive is derived from it.
    pub fn new(seed: Uuid) -> Self {
        Self {
            seed,
            public_key: None,
            authority: None,
        }
    }

    /// Adds a public key to `authorized_keys` of the default user: one line of printable ASCII, at most 256 bytes.
    #[must_use]
    pub fn with_public_key(mut self, line: &str) -> Self {
        self.public_key = Some(line.to_owned());
        self
    }

    /// Makes sshd trust the certificates of an SSH certificate authority. `key` is its algorithm and its key in base64, without a
    /// comment and at most [`MAX_AUTHORITY_KEY_BYTES`] long; `comment` is printable ASCII, at most 36 bytes.
    #[must_use]
    pub fn with_authority(mut self, key: &str, comment: &str) -> Self {
        self.authority = Some(format!("{key} {comment}"));
        self
    }

    /// Returns the largest config: user data that is assembled with it is as long as it can be.
    pub(crate) fn largest() -> Self {
        let x = |bytes| "x".repeat(bytes);
        Self::new(Uuid::nil())
            .with_public_key(&x(MAX_PUBLIC_KEY_BYTES))
            .with_authority(&x(MAX_AUTHORITY_KEY_BYTES), &x(MAX_COMMENT_BYTES))
    }

    /// Returns [`Mode::Alone`] if the config is empty, and [`Mode::Merged`] otherwise.
    pub fn mode(&self) -> Mode {
        match (&self.public_key, &self.authority) {
            (None, None) => Mode::Alone,
            (Some(_), _) | (_, Some(_)) => Mode::Merged,
        }
    }

    /// Returns the seed of the boundary.
    pub(crate) fn seed(&self) -> &Uuid {
        &self.seed
    }

    /// Returns the cloud-config, in printable ASCII.
    pub(crate) fn cloud_config(&self) -> String {
        let mut text = format!("#cloud-config\n{MERGE}");
        if let Some(key) = &self.public_key {
            let _ = write!(text, "ssh_authorized_keys:\n  - {key}\n");
        }
        if let Some(key) = &self.authority {
            let files = [
                (TRUSTED, key.clone()),
                (DROP_IN, format!("TrustedUserCAKeys {TRUSTED}")),
            ];
            text.push_str("write_files:\n");
            for (path, line) in files {
                let _ = write!(
                    text,
                    "  - path: {path}\n    owner: root:root\n    permissions: '0644'\n    content: |\n      {line}\n"
                );
            }
            text.push_str("runcmd:\n");
            for command in [OLD_SSHD, RELOAD] {
                let _ = write!(text, "  - - sh\n    - -c\n    - |\n      {command}\n");
            }
        }
        text
    }
}

impl fmt::Debug for ManagedConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManagedConfig")
            .field("seed", &self.seed)
            .field("mode", &self.mode())
            .finish_non_exhaustive()
    }
}
