//! Keys of authorities: those that OpenSSH creates, and invalid ones.

use proptest::prelude::*;

use super::*;

const KEYS: &str = include_str!("../../../tests/fixtures/ssh_public_keys.txt");

fn keys(what: &str) -> Vec<&'static str> {
    let lines = KEYS.lines().filter_map(|line| line.split_once(' '));
    lines
        .filter(|(word, _)| *word == what)
        .map(|(_, key)| key)
        .collect()
}

#[test]
fn keys_of_ssh_keygen_are_accepted_and_normalized() {
    assert_eq!(keys("good").len(), 5);
    for key in keys("good") {
        let read = AuthorityKey::new(key).unwrap();
        assert_eq!(read.as_str(), key);
        let odd = format!(" \t{}\r\n", key.replacen(' ', "  \t", 1));
        assert_eq!(AuthorityKey::new(&odd).unwrap(), read, "spaces are removed");
        let json = serde_json::to_string(&read).unwrap();
        assert_eq!(serde_json::from_str::<AuthorityKey>(&json).unwrap(), read);
    }
    let commented = format!("{KEY}   the   authority ");
    assert_eq!(
        AuthorityKey::new(&commented).unwrap().as_str(),
        format!("{KEY} the authority")
    );
}

#[test]
fn authority_key_has_a_form_without_its_comment() {
    let key = AuthorityKey::new(&format!("{KEY} comment: of the tenant")).unwrap();
    assert_eq!(key.without_comment(), KEY);
}

#[test]
fn invalid_authority_key_is_refused_and_not_shown() {
    let short = keys("short")[0];
    let cert = keys("sort")[0];
    let sk = keys("sort")[1];
    let body = KEY.split_once(' ').unwrap().1;
    let private =
        "-----BEGIN OPENSSH PRIVATE KEY-----\nc2VjcmV0\n-----END OPENSSH PRIVATE KEY-----";
    let table = [
        (String::new(), InvalidAuthorityKey::NotOneLine),
        (" \n ".to_owned(), InvalidAuthorityKey::NotOneLine),
        (format!("{KEY}\n{KEY}"), InvalidAuthorityKey::NotOneLine),
        (
            format!("{KEY} {}", "x".repeat(9000)),
            InvalidAuthorityKey::NotOneLine,
        ),
        (format!("{KEY} a\0b"), InvalidAuthorityKey::NotOneLine),
        (private.to_owned(), InvalidAuthorityKey::Private),
        (
            format!("cert-authority {KEY}"),
            InvalidAuthorityKey::Options,
        ),
        (
            format!("command=\"ls\",no-pty {KEY}"),
            InvalidAuthorityKey::Options,
        ),
        (short.to_owned(), InvalidAuthorityKey::Short(1024)),
        (cert.to_owned(), InvalidAuthorityKey::Algorithm),
        (sk.to_owned(), InvalidAuthorityKey::Algorithm),
        (format!("ssh-dss {body}"), InvalidAuthorityKey::Algorithm),
        (format!("ssh-rsa {body}"), InvalidAuthorityKey::Unreadable),
        ("ssh-ed25519".to_owned(), InvalidAuthorityKey::Unreadable),
        (
            "ssh-ed25519 c2VjcmV0".to_owned(),
            InvalidAuthorityKey::Unreadable,
        ),
        (body.to_owned(), InvalidAuthorityKey::Unreadable),
        ("hello world".to_owned(), InvalidAuthorityKey::Unreadable),
    ];
    for (text, wrong) in table {
        assert_eq!(AuthorityKey::new(&text), Err(wrong), "{text}");
        assert!(!format!("{wrong} {wrong:?}").contains("c2VjcmV0"));
        assert!(serde_json::from_value::<AuthorityKey>(text.into()).is_err());
    }
}

proptest! {
    #[test]
    fn arbitrary_text_does_not_panic(text in ".{0,120}") {
        prop_assert!(AuthorityKey::new(&text).is_err());
    }

    #[test]
    fn key_with_one_changed_character_is_refused_or_another_key(place in 12_usize..80, with in "[A-Za-z0-9+/ =]") {
        let mut text = KEY.to_owned();
        text.replace_range(place..=place, &with);
        if let Ok(read) = AuthorityKey::new(&text) {
            prop_assert_eq!(AuthorityKey::new(read.as_str()).unwrap(), read);
        }
    }
}
