//! Secrets at rest: sealed with a key that the operator gives, each bound to its record, and shown to nobody by accident.
//!
//! A sealed value says which key it was sealed with. Several keys may be given: the first seals, all of them open.

mod keyring;
mod seal;
mod server_key;
mod ssh;
mod value;

pub use keyring::{BadKeyring, KeyId, Keyring};
pub use seal::{CannotOpen, CannotSeal, Sealed};
pub use server_key::{KeyError, Resealed, ServerKey, ServerKeys, SshKeys};
pub use ssh::{CannotGenerate, SshKeyPair};
pub use value::Secret;

#[cfg(test)]
mod tests;
