//! Secrets at rest: sealed with a key that the operator gives, each bound to its record, and shown to nobody by accident.
//!
//! A sealed value says which key it was sealed with. Several keys may be given: the first seals, all of them open.

mod keyring;
mod seal;
mod server_key;
mod ssh;
mod value;

pub use keyring::{KeyId, Keyring, KeyringError};
pub use seal::{OpenError, SealError, Sealed};
pub use server_key::{KeyError, ResealReport, ServerKey, ServerKeys, SshKeys};
pub use ssh::{KeyPairError, SshKeyPair};
pub use value::Secret;

#[cfg(test)]
mod tests;
