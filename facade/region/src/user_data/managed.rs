//! What the region puts onto a machine: a cloud-config of its own, which is added to the tenant's and replaces nothing in it.

use std::{fmt, fmt::Write as _};

use uuid::Uuid;

use super::Mode;
use crate::{ids::SshAuthorityId, network::AuthorityKey};

/// The settings that are added to. A tenant's must be lists for it.
pub(super) const LISTS: [&str; 3] = ["ssh_authorized_keys", "write_files", "runcmd"];

/// How cloud-init joins this with what came before: lists are appended to, and nothing is replaced. Without it, its way is to replace.
const MERGE: &str = "\
merge_how:
  - name: list
    settings: [append]
  - name: dict
    settings: [no_replace, recurse_list]
";
/// Where the key of the authority is put.
const TRUSTED: &str = "/etc/ssh/fleetwright_user_ca.pub";
/// What makes sshd trust it. Of a setting that is there twice sshd takes the first, and it reads these files in the order of their names.
const DROP_IN: &str = "/etc/ssh/sshd_config.d/00-fleetwright-user-ca.conf";
/// An sshd that does not read such files, as older ones do not, is told in its own file.
const OLD_SSHD: &str = "f=/etc/ssh/sshd_config; if [ -f $f ] && ! grep -Eqi '^[[:space:]]*include[[:space:]].*sshd_config[.]d/' $f && \
! grep -qF fleetwright_user_ca $f; then sed -i '1i TrustedUserCAKeys /etc/ssh/fleetwright_user_ca.pub' $f; fi";
/// It may run already, under one of two names. If it does not, it reads its files when it starts.
const RELOAD: &str = "for s in ssh sshd; do if [ -d /run/systemd/system ]; then systemctl try-reload-or-restart $s.service && exit 0; \
else service $s reload && exit 0; fi; done; exit 1";

/// What is to be put onto the machine of a server.
#[derive(Clone)]
pub struct Managed {
    server: Uuid,
    public_key: Option<String>,
    authority: Option<(SshAuthorityId, String)>,
}

impl Managed {
    /// Nothing yet, for this server.
    pub fn nothing(server: Uuid) -> Self {
        Self {
            server,
            public_key: None,
            authority: None,
        }
    }

    /// With a public key that is let in: a line as `authorized_keys` has it, in plain characters.
    #[must_use]
    pub fn with_public_key(mut self, line: &str) -> Self {
        self.public_key = Some(line.to_owned());
        self
    }

    /// With an SSH certificate authority whose certificates are let in. The comment of its key is replaced by its id.
    #[must_use]
    pub fn with_authority(mut self, id: SshAuthorityId, key: &AuthorityKey) -> Self {
        self.authority = Some((id, key.without_comment().to_owned()));
        self
    }

    /// The most there can be. Assembled with it, user data are at their longest.
    pub(super) fn largest() -> Self {
        // Keys of servers are of the shortest sort, and have an id for a comment.
        Self {
            server: Uuid::nil(),
            public_key: Some("x".repeat(256)),
            authority: Some((
                SshAuthorityId::from_uuid(Uuid::nil()),
                "x".repeat(AuthorityKey::MAX_CHARS),
            )),
        }
    }

    /// Whether there is anything.
    pub fn mode(&self) -> Mode {
        match (&self.public_key, &self.authority) {
            (None, None) => Mode::Alone,
            (Some(_), _) | (_, Some(_)) => Mode::Merged,
        }
    }

    pub(super) fn server(&self) -> &Uuid {
        &self.server
    }

    /// The cloud-config, in plain characters.
    pub(super) fn cloud_config(&self) -> String {
        let mut text = format!("#cloud-config\n{MERGE}");
        if let Some(key) = &self.public_key {
            let _ = write!(text, "ssh_authorized_keys:\n  - {key}\n");
        }
        if let Some((id, key)) = &self.authority {
            let files = [
                (TRUSTED, format!("{key} {id}")),
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

impl fmt::Debug for Managed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Managed")
            .field("server", &self.server)
            .field("mode", &self.mode())
            .finish_non_exhaustive()
    }
}
