//! That secrets open where they belong, nowhere else, and are seen nowhere.

use std::{error::Error, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use fleetwright_identity::{ActorName, Principal, Scope};
use fleetwright_store::{Interest, RecordId, Revision, Store, Transaction};
use proptest::prelude::*;
use serde_json::{Value, json};
use ssh_key::{PrivateKey, PublicKey};
use uuid::Uuid;

use super::*;
use crate::testing::{Dry, Numbered, organization, project, somebody, store};

const MAY: &str = "may:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
const JUNE: &str = "june:anVuZWp1bmVqdW5lanVuZWp1bmVqdW5lanVuZWp1bmU=";

fn ring(text: &str) -> Keyring {
    text.parse().unwrap()
}

fn record(key: &str) -> RecordId {
    RecordId::new("server-key", key).unwrap()
}

fn keys(store: &Arc<dyn Store>, text: &str) -> ServerKeys {
    let entropy = Arc::new(Numbered::default());
    ServerKeys::new(Arc::clone(store), Arc::new(ring(text)), entropy).unwrap()
}

async fn made(store: &Arc<dyn Store>, keys: &ServerKeys, server: u128) -> String {
    let server = Uuid::from_u128(server);
    let made = keys.create(Transaction::new(), server, organization(1), project(1));
    let (transaction, public) = made.unwrap();
    store.commit(&transaction).await.unwrap();
    public
}

fn user() -> Principal {
    somebody("project-user", Scope::Project(organization(1), project(1)))
}

/// Everything that an error says, down to its last cause.
fn whole(error: &dyn Error) -> String {
    let said = format!("{error} {error:?} ");
    error
        .source()
        .map_or(said.clone(), |cause| said + &whole(cause))
}

#[test]
fn a_secret_opens_in_its_place_with_its_key_and_nowhere_else() {
    let (may, both) = (ring(MAY), ring(&format!("{JUNE}\n{MAY}")));
    let secret = Secret::new("hunter2");
    let entropy = Numbered::default();
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
            Err(CannotOpen::Wrong { .. })
        ));
    }
    assert_eq!(
        ring(JUNE)
            .open(&record("a"), "x", &sealed)
            .unwrap_err()
            .to_string(),
        "the secret of server-key/a is sealed with key may, which is not given: add its line to the keys"
    );
    let impostor = ring(&JUNE.replace("june:", "may:"));
    assert_eq!(
        impostor
            .open(&record("a"), "x", &sealed)
            .unwrap_err()
            .to_string(),
        "the secret of server-key/a does not open with key may: it was changed, is another record's, \
         or another key is given by that id"
    );
    let again = may.seal(&record("a"), "x", &secret, &entropy).unwrap();
    assert_ne!(sealed, again, "the same twice does not look the same");
    assert_eq!(
        may.seal(&record("a"), "x", &secret, &Dry)
            .unwrap_err()
            .to_string(),
        "the system gives no random bytes: it has run dry"
    );
}

#[test]
fn one_bit_that_changed_is_found() {
    let ring = ring(MAY);
    let sealed = ring
        .seal(
            &record("a"),
            "x",
            &Secret::new("hunter2"),
            &Numbered::default(),
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
fn keys_that_are_none_are_refused_without_being_shown() {
    let zeros = format!("a:{}", STANDARD.encode([0; 32]));
    let short = format!("a:{}", STANDARD.encode([7; 31]));
    let cases = [
        (
            "",
            "there is no key: want a line id:key, with the 32 bytes of the key in base64",
        ),
        (
            "# only this\n\n",
            "there is no key: want a line id:key, with the 32 bytes of the key in base64",
        ),
        ("c2VjcmV0", "line 1 is no key: want id:key"),
        (
            "A b:c2VjcmV0",
            "line 1 is no key: want an id of 1 to 32 of a-z, 0-9 and '-' before the colon",
        ),
        (
            "\na:c2VjcmV0",
            "line 2 is no key: want 32 bytes in base64 after the id, as `openssl rand -base64 32` prints them",
        ),
        (
            &short,
            "line 1 is no key: want 32 bytes in base64 after the id, as `openssl rand -base64 32` prints them",
        ),
        (
            "a:c2VjcmV0!",
            "line 1 is no key: want 32 bytes in base64 after the id, as `openssl rand -base64 32` prints them",
        ),
        (&zeros, "line 1 is no key: want a key that is not all zeros"),
        (
            &format!("{MAY}\n{MAY}"),
            "line 2 has the id may of a key above it: want another",
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
            .contains("FLEETWRIGHT_NO_SUCH_VARIABLE gives no keys"),
        "{error}"
    );
    // Set by cargo for every test, and no keys.
    assert!(matches!(
        Keyring::from_env("CARGO_PKG_NAME"),
        Err(BadKeyring::BadLine { .. })
    ));
}

#[tokio::test]
async fn every_server_has_a_key_of_its_own() {
    let store = store();
    let keys = keys(&store, MAY);
    let one = made(&store, &keys, 1).await;
    let two = made(&store, &keys, 2).await;
    assert_ne!(one, two);
    let revealed = keys.reveal(&user(), Uuid::from_u128(1)).await.unwrap();
    let private = PrivateKey::from_openssh(revealed.expose()).unwrap();
    let public = PublicKey::from_openssh(&one).unwrap();
    assert_eq!(private.public_key().key_data(), public.key_data());
    assert_eq!(public.comment(), format!("server-{}", Uuid::from_u128(1)));
    assert_eq!(keys.public(&user(), Uuid::from_u128(2)).await.unwrap(), two);

    let again = keys.create(
        Transaction::new(),
        Uuid::from_u128(1),
        organization(1),
        project(1),
    );
    let refused = store.commit(&again.unwrap().0).await.unwrap_err();
    assert!(
        refused.conflict().is_some(),
        "a server keeps the key it has"
    );
    let gone = keys.delete(Transaction::new(), Uuid::from_u128(1)).unwrap();
    store.commit(&gone).await.unwrap();
    let error = keys.reveal(&user(), Uuid::from_u128(1)).await.unwrap_err();
    assert!(matches!(error, KeyError::NotFound(_)));
}

#[tokio::test]
async fn a_key_is_revealed_to_the_permission_alone() {
    let store = store();
    let keys = keys(&store, MAY);
    made(&store, &keys, 1).await;
    let server = Uuid::from_u128(1);
    let here = Scope::Project(organization(1), project(1));
    let nobody = Principal::service(ActorName::new("nobody").unwrap(), []);
    // Each: who, whether they are shown the key, whether they may know that there is one.
    let table = [
        (somebody("project-user", here), true, true),
        (
            somebody(
                "organization-administrator",
                Scope::Organization(organization(1)),
            ),
            true,
            true,
        ),
        (
            somebody("platform-administrator", Scope::Global),
            true,
            true,
        ),
        (somebody("project-reader", here), false, true),
        (
            somebody("organization-auditor", Scope::Organization(organization(1))),
            false,
            true,
        ),
        (
            somebody("project-user", Scope::Project(organization(1), project(2))),
            false,
            false,
        ),
        (
            somebody("project-user", Scope::Project(organization(2), project(1))),
            false,
            false,
        ),
        (
            somebody(
                "organization-administrator",
                Scope::Organization(organization(2)),
            ),
            false,
            false,
        ),
        (nobody, false, false),
    ];
    for (principal, shown, known) in table {
        let answer = keys.reveal(&principal, server).await;
        assert_eq!(answer.is_ok(), shown, "{principal:?}");
        assert_eq!(
            keys.public(&principal, server).await.is_ok(),
            known,
            "{principal:?}"
        );
        match (answer, known) {
            (Err(KeyError::NotFound(id)), false) => {
                let absent = keys
                    .reveal(&principal, Uuid::from_u128(9))
                    .await
                    .unwrap_err();
                let same = absent
                    .to_string()
                    .replace(&Uuid::from_u128(9).to_string(), &id.to_string());
                assert_eq!(KeyError::NotFound(id).to_string(), same);
            }
            (Err(KeyError::Refused(_)), true) | (Ok(_), true) => {}
            (answer, known) => panic!("{answer:?} {known}"),
        }
    }
}

#[tokio::test]
async fn a_key_is_changed_without_losing_anything() {
    let store = store();
    let old = keys(&store, MAY);
    for server in 1..=3 {
        made(&store, &old, server).await;
    }
    // One belongs to another record, one is no record of a key, one is of a key that is lost.
    let moved = store
        .get(&record(&Uuid::from_u128(3).to_string()))
        .await
        .unwrap()
        .unwrap();
    let broken = Transaction::new()
        .put(record(&Uuid::from_u128(4).to_string()), moved.value)
        .put(
            record(&Uuid::from_u128(5).to_string()),
            json!({"private_key": "x"}),
        );
    store.commit(&broken).await.unwrap();

    let both = keys(&store, &format!("{JUNE}\n{MAY}"));
    let stale = both.reseal().await.unwrap();
    assert_eq!(
        (stale.resealed, stale.unopened.len(), stale.damaged.len()),
        (3, 1, 1)
    );
    assert_eq!(stale.damaged[0].id, record(&Uuid::from_u128(5).to_string()));
    assert_eq!(both.reseal().await.unwrap().resealed, 0, "once is enough");

    let new = keys(&store, JUNE);
    for server in 1..=3 {
        assert!(new.reveal(&user(), Uuid::from_u128(server)).await.is_ok());
    }
    let error = old.reveal(&user(), Uuid::from_u128(1)).await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("sealed with key june, which is not given"),
        "{error}"
    );
    let error = new.reveal(&user(), Uuid::from_u128(5)).await.unwrap_err();
    assert!(matches!(error, KeyError::Store(_)), "{error}");
}

/// Everything that is stored, shown or said is searched for the private key, in the forms it could have there.
#[tokio::test]
async fn a_secret_is_seen_nowhere() {
    let store = store();
    let keys = keys(&store, MAY);
    made(&store, &keys, 1).await;
    let server = Uuid::from_u128(1);
    let secret = keys.reveal(&user(), server).await.unwrap();
    let pem = secret.expose_text().unwrap().to_owned();
    let inner = PrivateKey::from_openssh(&pem).unwrap();
    let seed = inner.key_data().ed25519().unwrap().private.to_bytes();
    let hex: String = seed.iter().map(|byte| format!("{byte:02x}")).collect();
    let key_bytes = STANDARD.decode(MAY.split_once(':').unwrap().1).unwrap();
    let forms = [
        pem.lines().nth(1).unwrap().to_owned(),
        pem.lines().nth(2).unwrap().to_owned(),
        STANDARD.encode(&pem),
        STANDARD.encode(seed),
        hex,
        format!("{seed:?}"),
        MAY.split_once(':').unwrap().1.to_owned(),
        String::from_utf8(key_bytes.clone()).unwrap(),
        format!("{key_bytes:?}"),
        "BEGIN OPENSSH".to_owned(),
    ];

    let mut seen = vec![
        format!("{secret:?} {secret:#?} {keys:?} {keys:#?} {store:?}"),
        format!(
            "{:?}",
            SshKeyPair::generate("c", &Numbered::default()).unwrap()
        ),
        format!("{:?} {:?}", ring(MAY), ring(&format!("{JUNE}\n{MAY}"))),
    ];
    let stored = store
        .get(&record(&server.to_string()))
        .await
        .unwrap()
        .unwrap();
    seen.push(format!("{stored:?} {}", stored.value));
    let typed: ServerKey = serde_json::from_value(stored.value.clone()).unwrap();
    seen.push(format!(
        "{typed:?} {}",
        serde_json::to_string(&typed).unwrap()
    ));
    let mut watch = store.watch(Revision::ZERO, Interest::all()).await.unwrap();
    seen.push(format!("{:?}", watch.next().await.unwrap()));
    let transaction = keys.create(
        Transaction::new(),
        Uuid::from_u128(2),
        organization(1),
        project(1),
    );
    seen.push(format!("{transaction:?}"));

    let moved = Transaction::new().put(
        record(&Uuid::from_u128(7).to_string()),
        stored.value.clone(),
    );
    store.commit(&moved).await.unwrap();
    let mut damaged = stored.value.clone();
    damaged["private_key"]["data"] = Value::from(pem.as_str());
    let damaged_one = Transaction::new()
        .put(record(&Uuid::from_u128(8).to_string()), damaged)
        .put(
            record(&Uuid::from_u128(9).to_string()),
            json!({"private_key": pem, "public_key": [pem]}),
        );
    store.commit(&damaged_one).await.unwrap();
    let outsider = somebody(
        "project-reader",
        Scope::Project(organization(1), project(1)),
    );
    for (who, server) in [
        (&user(), 7),
        (&user(), 8),
        (&user(), 9),
        (&outsider, 1),
        (&user(), 10),
    ] {
        let error = keys.reveal(who, Uuid::from_u128(server)).await.unwrap_err();
        seen.push(whole(&error));
    }
    for text in seen {
        for form in &forms {
            assert!(!text.contains(form.as_str()), "{form} is in {text}");
        }
    }
}

#[test]
fn a_key_pair_needs_randomness_and_one_line() {
    assert_eq!(
        SshKeyPair::generate("c", &Dry).unwrap_err().to_string(),
        "the system gives no random bytes: it has run dry"
    );
    assert_eq!(
        SshKeyPair::generate("a\nssh-rsa", &Dry).unwrap_err(),
        CannotGenerate::BadComment
    );
}

proptest! {
    #[test]
    fn any_secret_round_trips(bytes in prop::collection::vec(any::<u8>(), 0..300), key in "[!-~]{1,40}") {
        let ring = ring(MAY);
        let sealed = ring.seal(&record(&key), "x", &Secret::new(bytes.clone()), &Numbered::default()).unwrap();
        let json = serde_json::to_string(&sealed).unwrap();
        let sealed: Sealed = serde_json::from_str(&json).unwrap();
        let opened = ring.open(&record(&key), "x", &sealed).unwrap();
        prop_assert_eq!(opened.expose(), &bytes);
    }

    #[test]
    fn no_text_makes_a_keyring_panic_or_shows_itself(text in ".{0,80}") {
        if let Err(error) = text.parse::<Keyring>() {
            prop_assert!(text.chars().count() < 8 || !whole(&error).contains(&text));
        }
    }
}
