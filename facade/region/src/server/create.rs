//! The transaction that creates a server: dependency checks, the key pair and the first record.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use fleetwright::UserData;
use fleetwright_cloud_init::Mode;
use fleetwright_identity::Principal;
use fleetwright_store::{Check, Transaction};

use super::{
    EventKind, Field, MAX_SECURITY_GROUPS, MAX_USER_DATA_BYTES, NewServer, Server, ServerError,
    ServerId, ServerPlacement, ServerSpec, Servers, Writer,
};
use crate::secret::SshKeys;

impl Servers {
    /// Returns the checks of the dependencies of a server. If nothing changed, nothing is checked.
    pub(super) async fn dependency_checks(
        &self,
        principal: &Principal,
        placement: &ServerPlacement<'_>,
    ) -> Result<Vec<Check>, ServerError> {
        if placement.changed.is_empty() {
            return Ok(Vec::new());
        }
        Ok(self.dependencies.check(principal, placement).await?)
    }

    /// Adds the key pair of a new server to the transaction, if servers have key pairs. Returns the public key.
    pub(super) fn add_key_pair(
        &self,
        transaction: Transaction,
        new: &NewServer,
    ) -> Result<(Transaction, Option<String>), ServerError> {
        match &self.keys {
            SshKeys::Disabled => Ok((transaction, None)),
            SshKeys::OnePerServer(keys) => {
                let server = new.id.as_uuid();
                let created = keys.create(transaction, server, new.organization, new.project);
                let (transaction, public) =
                    created.map_err(|source| ServerError::Key { id: new.id, source })?;
                Ok((transaction, Some(public)))
            }
        }
    }
}

/// Checks that a spec fits into a record.
pub(super) fn check_size(id: ServerId, spec: &ServerSpec) -> Result<(), ServerError> {
    let actual = spec.security_groups.len();
    if actual > MAX_SECURITY_GROUPS {
        return Err(ServerError::TooManySecurityGroups { id, actual });
    }
    let data = spec.user_data.as_ref();
    match data.map_or(0, |data| data.as_bytes().len()) {
        actual if actual > MAX_USER_DATA_BYTES => Err(ServerError::UserDataTooLarge { id, actual }),
        _ => Ok(()),
    }
}

/// Checks that the user data of a spec that is to be written can be opened.
pub(super) fn check_opened(id: ServerId, spec: &ServerSpec) -> Result<(), ServerError> {
    match &spec.sealed_user_data {
        Some(unopened) => Err(ServerError::Sealed {
            id,
            key: unopened.key.clone(),
        }),
        None => Ok(()),
    }
}

/// Checks that a machine can boot with the user data of a spec, together with what is added: the server's key and its authority.
pub(super) fn check_boot_data(
    id: ServerId,
    spec: &ServerSpec,
    key: KeyPair,
) -> Result<(), ServerError> {
    let mode = user_data_mode(key, spec);
    let data = spec.user_data.as_ref().map_or(&[][..], UserData::as_bytes);
    let checked = fleetwright_cloud_init::check(data, mode);
    checked.map_err(|source| ServerError::UserData { id, source })?;
    Ok(())
}

/// Returns whether something is added to the user data of a spec.
pub(super) fn user_data_mode(key: KeyPair, spec: &ServerSpec) -> Mode {
    match (key, spec.ssh_authority) {
        (KeyPair::Without, None) => Mode::Alone,
        (KeyPair::With, _) | (_, Some(_)) => Mode::Merged,
    }
}

/// Runs [`check_boot_data`] for a changed spec, if the user data or the authority changed.
pub(super) fn check_changed_boot_data(
    server: &Server,
    spec: &ServerSpec,
) -> Result<(), ServerError> {
    let changed = server.spec.changed(spec);
    if !changed.contains(&Field::UserData) && !changed.contains(&Field::SshAuthority) {
        return Ok(());
    }
    check_boot_data(server.id, spec, KeyPair::of(server.public_key.as_ref()))
}

/// Whether a server has a key pair.
#[derive(Clone, Copy)]
pub(super) enum KeyPair {
    With,
    Without,
}

impl KeyPair {
    pub(super) fn of(public_key: Option<&String>) -> Self {
        public_key.map_or(Self::Without, |_| Self::With)
    }
}

/// Returns the first record of a server.
pub(crate) fn new_record(new: &NewServer, now: DateTime<Utc>) -> Server {
    let mut server = Server {
        id: new.id,
        owner: new.owner.clone(),
        region: new.region.clone(),
        organization: new.organization,
        project: new.project,
        created_at: now,
        spec: new.spec.clone(),
        intent: new.intent.clone(),
        generation: 1,
        observed_generation: 0,
        launch: None,
        machine: None,
        retry: None,
        conditions: Vec::new(),
        observed: None,
        booted: None,
        drift: BTreeSet::new(),
        public_key: None,
        events: Vec::new(),
    };
    let message = format!("created for {}", new.owner);
    server.note(now, Writer::Service, EventKind::Created, message);
    server
}
