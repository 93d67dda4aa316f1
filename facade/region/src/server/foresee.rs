//! What an owner wants to know of a spec before it asks for it.

use super::{
    ServerSpec, Servers,
    make::{Keyed, user_data_mode},
};
use crate::{
    secret::SshKeys,
    user_data::{self, BadUserData},
};

impl Servers {
    /// Whether a machine of a server that is made now could boot with a spec's user data, beside the key that it gets and the
    /// authority that it is to trust.
    pub fn check_user_data(&self, spec: &ServerSpec) -> Result<(), BadUserData> {
        let Some(data) = &spec.user_data else {
            return Ok(());
        };
        let keyed = match &self.keys {
            SshKeys::Without => Keyed::Without,
            SshKeys::OnePerServer(_) => Keyed::With,
        };
        user_data::check(data.as_bytes(), user_data_mode(keyed, spec)).map(|_| ())
    }
}
