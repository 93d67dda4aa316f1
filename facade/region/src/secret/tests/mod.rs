//! Secrets open only in their place and appear in no output.

use std::{error::Error, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use fleetwright_identity::{ActorName, Principal, Scope};
use fleetwright_store::{Interest, RecordId, Revision, Store, Transaction};
use proptest::prelude::*;
use serde_json::{Value, json};
use ssh_key::{PrivateKey, PublicKey};
use uuid::Uuid;

use super::*;
use crate::testing::{
    CountingEntropy, FailingEntropy, organization, project, store, user_with_role,
};

mod servers;
mod user_data;

const MAY: &str = "may:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
const JUNE: &str = "june:anVuZWp1bmVqdW5lanVuZWp1bmVqdW5lanVuZWp1bmU=";

fn ring(text: &str) -> Keyring {
    text.parse().unwrap()
}

fn record(key: &str) -> RecordId {
    RecordId::new("server-key", key).unwrap()
}

fn keys(store: &Arc<dyn Store>, text: &str) -> ServerKeys {
    let entropy = Arc::new(CountingEntropy::default());
    ServerKeys::new(Arc::clone(store), Arc::new(ring(text)), entropy).unwrap()
}

async fn created(store: &Arc<dyn Store>, keys: &ServerKeys, server: u128) -> String {
    let server = Uuid::from_u128(server);
    let created = keys.create(Transaction::new(), server, organization(1), project(1));
    let (transaction, public) = created.unwrap();
    store.commit(&transaction).await.unwrap();
    public
}

fn user() -> Principal {
    user_with_role("project-user", Scope::Project(organization(1), project(1)))
}

/// Returns the message of an error with all its sources.
fn whole(error: &dyn Error) -> String {
    let text = format!("{error} {error:?} ");
    error
        .source()
        .map_or(text.clone(), |cause| text + &whole(cause))
}

#[test]
fn secret_opens_only_with_its_key_for_its_record_and_place() {
    let (may, both) = (ring(MAY), ring(&format!("{JUNE}\n{MAY}")));
    let secret = Secret::new("hunter2");
    let entropy = CountingEntropy::default();
    let sealed = may.seal(&record("a"), "x", &secret, &entropy).unwrap();
    for ring in [&may, &both] {
        let opened = ring.open(&record("a"), "x", &sealed).unwrap();
        assert_eq!(opened.expose_text(), Some("hunter2"));
    }
    let elsewhere = [
        (record("b"), "x"),
        (record("a"), "y"),
        (RecordId::new("server", "a").unwrap(), "x"),
    ];
    for (record, place) in elsewhere {
        assert!(matches!(
            may.open(&record, place, &sealed),
            Err(OpenError::NotAuthentic { .. })
        ));
    }
    assert_eq!(
        ring(JUNE)
            .open(&record("a"), "x", &sealed)
            .unwrap_err()
            .to_string(),
        "the secret of server-key/a is sealed with key may, which is not in the keyring: add its line"
    );
    let wrong_key = ring(&JUNE.replace("june:", "may:"));
    assert_eq!(
        wrong_key
            .open(&record("a"), "x", &sealed)
            .unwrap_err()
            .to_string(),
        "the secret of server-key/a does not open with key may: it was changed, belongs to another record, \
         or the key of that id is another one"
    );
    // The same key under another name does not open it.
    let twin = ring(&format!("{MAY}\n{}", MAY.replace("may:", "mai:")));
    let mut renamed = serde_json::to_value(&sealed).unwrap();
    renamed["key"] = json!("mai");
    let renamed: Sealed = serde_json::from_value(renamed).unwrap();
    assert!(matches!(
        twin.open(&record("a"), "x", &renamed),
        Err(OpenError::NotAuthentic { .. })
    ));
    let again = may.seal(&record("a"), "x", &secret, &entropy).unwrap();
    assert_ne!(sealed, again, "each sealing has its own nonce");
    assert_eq!(
        may.seal(&record("a"), "x", &secret, &FailingEntropy)
            .unwrap_err()
            .to_string(),
        "no random bytes are available: the source is empty"
    );
}

#[test]
fn any_changed_bit_is_detected() {
    let ring = ring(MAY);
    let sealed = ring
        .seal(
            &record("a"),
            "x",
            &Secret::new("hunter2"),
            &CountingEntropy::default(),
        )
        .unwrap();
    let value = serde_json::to_value(&sealed).unwrap();
    for field in ["nonce", "data"] {
        let bytes = STANDARD.decode(value[field].as_str().unwrap()).unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let mut value = value.clone();
            value[field] = STANDARD.encode(changed).into();
            let sealed: Sealed = serde_json::from_value(value).unwrap();
            assert!(
                ring.open(&record("a"), "x", &sealed).is_err(),
                "{field} {bit}"
            );
        }
        for odd in ["", "!", "AAAA", &"A".repeat(400)] {
            let mut value = value.clone();
            value[field] = odd.into();
            let sealed: Sealed = serde_json::from_value(value).unwrap();
            assert!(
                ring.open(&record("a"), "x", &sealed).is_err(),
                "{field} {odd}"
            );
        }
    }
}

#[test]
fn invalid_keyring_is_refused_and_not_shown() {
    let zeros = format!("a:{}", STANDARD.encode([0; 32]));
    let short = format!("a:{}", STANDARD.encode([7; 31]));
    let cases = [
        (
            "",
            "there is no key: expected a line id:key, with the 32 bytes of the key in base64",
        ),
        (
            "# only this\n\n",
            "there is no key: expected a line id:key, with the 32 bytes of the key in base64",
        ),
        ("c2VjcmV0", "line 1 is not a key: expected id:key"),
        (
            "A b:c2VjcmV0",
            "line 1 is not a key: expected an id of 1 to 32 of a-z, 0-9 and '-' before the colon",
        ),
        (
            "\na:c2VjcmV0",
            "line 2 is not a key: expected 32 bytes in base64 after the id, as `openssl rand -base64 32` prints them",
        ),
        (
            &short,
            "line 1 is not a key: expected 32 bytes in base64 after the id, as `openssl rand -base64 32` prints them",
        ),
        (
            "a:c2VjcmV0!",
            "line 1 is not a key: expected 32 bytes in base64 after the id, as `openssl rand -base64 32` prints them",
        ),
        (
            &zeros,
            "line 1 is not a key: expected a key that is not all zeros",
        ),
        (
            &format!("{MAY}\n{MAY}"),
            "line 2 repeats the key id may: expected another id",
        ),
    ];
    for (text, message) in cases {
        let error = text.parse::<Keyring>().unwrap_err();
        assert_eq!(error.to_string(), message);
        assert!(!whole(&error).contains("c2VjcmV0"), "{error:?}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys");
    assert!(
        Keyring::from_file(&path)
            .unwrap_err()
            .to_string()
            .ends_with("keys cannot be read")
    );
    std::fs::write(&path, format!("# the keys\n{JUNE}\n{MAY}\n")).unwrap();
    assert_eq!(
        Keyring::from_file(&path).unwrap().current().as_str(),
        "june"
    );
    let error = Keyring::from_env("FLEETWRIGHT_NO_SUCH_VARIABLE").unwrap_err();
    assert!(
        error
            .to_string()
            .contains("FLEETWRIGHT_NO_SUCH_VARIABLE is not set"),
        "{error}"
    );
    // The variable is set, but contains no keys.
    assert!(matches!(
        Keyring::from_env("PATH"),
        Err(KeyringError::InvalidLine { .. })
    ));
}

#[test]
fn key_pair_needs_entropy_and_a_one_line_comment() {
    assert_eq!(
        SshKeyPair::generate("c", &FailingEntropy)
            .unwrap_err()
            .to_string(),
        "no random bytes are available: the source is empty"
    );
    assert_eq!(
        SshKeyPair::generate("a\nssh-rsa", &FailingEntropy).unwrap_err(),
        KeyPairError::InvalidComment
    );
}

proptest! {
    #[test]
    fn any_secret_round_trips(bytes in prop::collection::vec(any::<u8>(), 0..300), key in "[!-~]{1,40}") {
        let ring = ring(MAY);
        let sealed = ring.seal(&record(&key), "x", &Secret::new(bytes.clone()), &CountingEntropy::default()).unwrap();
        let json = serde_json::to_string(&sealed).unwrap();
        let sealed: Sealed = serde_json::from_str(&json).unwrap();
        let opened = ring.open(&record(&key), "x", &sealed).unwrap();
        prop_assert_eq!(opened.expose(), &bytes);
    }

    #[test]
    fn no_text_causes_a_keyring_panic_or_is_shown(text in ".{0,80}") {
        if let Err(error) = text.parse::<Keyring>() {
            prop_assert!(text.chars().count() < 8 || !whole(&error).contains(&text));
        }
    }
}
