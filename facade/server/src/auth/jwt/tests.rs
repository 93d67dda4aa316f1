use chrono::{DateTime, Utc};
use fleetwright_identity::{Binding, RoleName, Scope};
use serde_json::{Value, json};

use super::*;

#[path = "../../../tests/support/issuer.rs"]
mod issuer;

use issuer::{AUDIENCE, ISSUER, SigningKey, claims, key_set};

fn now() -> DateTime<Utc> {
    "2027-01-31T12:00:00Z".parse().unwrap()
}

fn at(seconds: i64) -> DateTime<Utc> {
    now() + chrono::Duration::seconds(seconds)
}

fn config() -> JwtConfig {
    let rule = |claim: &[&str], value: &str, role: &str| RoleRule {
        claim: ClaimPath(claim.iter().map(|&name| name.to_owned()).collect()),
        value: value.to_owned(),
        binding: Binding::new(RoleName::new(role).unwrap(), Scope::Global),
    };
    JwtConfig {
        issuer: ISSUER.to_owned(),
        audiences: vec![AUDIENCE.to_owned()],
        algorithms: vec![Algorithm::ES256],
        file: None,
        url: None,
        refresh: Duration::from_secs(300),
        retry: Duration::from_secs(10),
        clock_skew: Duration::from_secs(30),
        mapping: ClaimMapping {
            actor: ClaimPath(vec!["sub".to_owned()]),
            prefix: "jwt:".to_owned(),
            rules: vec![
                rule(&["groups"], "admins", "platform-administrator"),
                rule(
                    &["realm_access", "roles"],
                    "auditors",
                    "organization-auditor",
                ),
            ],
        },
    }
}

fn verifier(key: &SigningKey) -> Verifier {
    let verifier = Verifier::new(config());
    verifier.set_keys(KeySet::parse(key_set(&[key]).as_bytes()).unwrap());
    verifier
}

fn with(name: &str, value: Value) -> Value {
    let mut claims = claims("ada", now().timestamp());
    claims[name] = value;
    claims
}

fn roles(identity: &Identity) -> Vec<&str> {
    let roles = identity.roles.iter();
    roles.map(|binding| binding.role.as_str()).collect()
}

#[test]
fn a_valid_token_names_an_actor_with_the_roles_of_its_claims() {
    let key = SigningKey::ec("k1");
    let verifier = verifier(&key);
    let verify = |claims: &Value| verifier.verify(&key.token(claims), now()).unwrap();
    let identity = verify(&claims("ada", now().timestamp()));
    assert_eq!(identity.actor.to_string(), "user jwt:ada");
    assert_eq!(roles(&identity), Vec::<&str>::new());
    for groups in [json!("admins"), json!(["x", "admins"])] {
        assert_eq!(
            roles(&verify(&with("groups", groups))),
            ["platform-administrator"]
        );
    }
    let nested = verify(&with("realm_access", json!({"roles": ["auditors"]})));
    assert_eq!(roles(&nested), ["organization-auditor"]);
    for other in [
        json!("Admins"),
        json!({"admins": true}),
        json!([["admins"]]),
        json!(null),
    ] {
        assert!(roles(&verify(&with("groups", other))).is_empty());
    }
    // Several audiences, one of which is this service.
    verify(&with("aud", json!(["other", AUDIENCE])));
}

#[test]
fn a_token_is_valid_between_its_dates_with_the_skew() {
    let key = SigningKey::ec("k1");
    let verifier = verifier(&key);
    let mut dated = claims("ada", now().timestamp());
    dated["exp"] = json!(at(100).timestamp());
    dated["nbf"] = json!(at(50).timestamp());
    let token = key.token(&dated);
    let reason = |seconds| verifier.verify(&token, at(seconds)).err().map(|why| why.0);
    assert_eq!(reason(19), Some("it is not valid yet"));
    assert_eq!((reason(20), reason(50), reason(129)), (None, None, None));
    assert_eq!(reason(130), Some("it is expired"));
    for (name, wrong) in [
        ("exp", json!("2027-02-01")),
        ("exp", json!(null)),
        ("exp", json!(-1)),
        ("nbf", json!("soon")),
        ("iat", json!(at(60).timestamp())),
    ] {
        let token = key.token(&with(name, wrong));
        assert!(verifier.verify(&token, now()).is_err(), "{name}");
    }
    let mut endless = claims("ada", now().timestamp());
    endless.as_object_mut().unwrap().remove("exp");
    assert!(verifier.verify(&key.token(&endless), now()).is_err());
}

#[test]
fn who_the_token_is_of_and_for_is_checked() {
    let key = SigningKey::ec("k1");
    let verifier = verifier(&key);
    for (name, wrong) in [
        ("iss", json!("https://evil.example.com")),
        ("iss", json!([ISSUER])),
        ("iss", json!(null)),
        ("aud", json!("other")),
        ("aud", json!([])),
        ("aud", json!(null)),
        ("sub", json!("")),
        ("sub", json!(7)),
        ("sub", json!("two\nlines")),
        ("sub", json!("x".repeat(300))),
    ] {
        let token = key.token(&with(name, wrong.clone()));
        assert!(verifier.verify(&token, now()).is_err(), "{name}: {wrong}");
    }
}

#[test]
fn an_address_that_is_not_verified_names_nobody_and_has_no_role() {
    let key = SigningKey::ec("k1");
    let (by_email, mut for_email) = (ClaimPath(vec!["email".to_owned()]), config());
    for_email.mapping.rules = vec![RoleRule {
        claim: by_email.clone(),
        value: "ada@example.com".to_owned(),
        binding: Binding::new(
            RoleName::new("platform-administrator").unwrap(),
            Scope::Global,
        ),
    }];
    let mut named = config();
    named.mapping.actor = by_email;
    let [named, for_email] = [named, for_email].map(|config| {
        let verifier = Verifier::new(config);
        verifier.set_keys(KeySet::parse(key_set(&[&key]).as_bytes()).unwrap());
        verifier
    });
    let mut claims = with("email", json!("ada@example.com"));
    for wrong in [
        None,
        Some(json!(false)),
        Some(json!("true")),
        Some(json!(null)),
    ] {
        if let Some(wrong) = wrong {
            claims["email_verified"] = wrong;
        }
        let token = key.token(&claims);
        assert!(named.verify(&token, now()).is_err(), "{claims}");
        let identity = for_email.verify(&token, now()).unwrap();
        assert!(roles(&identity).is_empty(), "{claims}");
    }
    claims["email_verified"] = json!(true);
    let token = key.token(&claims);
    let identity = named.verify(&token, now()).unwrap();
    assert_eq!(identity.actor.to_string(), "user jwt:ada@example.com");
    let identity = for_email.verify(&token, now()).unwrap();
    assert_eq!(roles(&identity), ["platform-administrator"]);
}

#[test]
fn no_changed_letter_leaves_a_token_valid() {
    let key = SigningKey::ec("k1");
    let verifier = verifier(&key);
    let token = key.token(&claims("ada", now().timestamp()));
    let bytes = token.as_bytes();
    for place in 0..bytes.len() {
        let mut changed = bytes.to_vec();
        changed[place] = if bytes[place] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(changed).unwrap();
        assert!(verifier.verify(&changed, now()).is_err(), "{place}");
        assert!(verifier.verify(&token[..place], now()).is_err(), "{place}");
    }
}

#[test]
fn a_set_has_public_keys_for_signatures_only() {
    let good = SigningKey::ec("good").jwk();
    let changed = |name: &str, value: Value| {
        let mut key = good.clone();
        key["kid"] = json!(format!("with {name}"));
        key[name] = value;
        key
    };
    let mut nameless = good.clone();
    nameless.as_object_mut().unwrap().remove("kid");
    let keys = json!({"keys": [
        changed("use", json!("enc")), changed("key_ops", json!(["sign"])), changed("alg", json!("RS256")), changed("alg", json!("HS256")),
        changed("kty", json!("AKP")), nameless, {"kty": "oct", "kid": "secret", "k": "AAAA"}, 7, good,
    ]});
    let set = KeySet::parse(keys.to_string().as_bytes()).unwrap();
    assert_eq!(set.ids(), ["good"]);
    let refused = |text: &str| crate::meaning::chain(&KeySet::parse(text.as_bytes()).unwrap_err());
    assert!(refused("{}").contains("missing field `keys`"));
    assert!(refused("<html>").contains("no JSON Web Key Set"));
    assert!(refused(r#"{"keys": []}"#).contains("no key that can be used"));
    let many = json!({ "keys": vec![good; 101] }).to_string();
    assert!(refused(&many).contains("more than 100"));
}
