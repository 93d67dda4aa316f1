//! Keys of servers: one per server, readable with one permission only, resealed without loss, and in no output.

use super::*;

#[tokio::test]
async fn every_server_has_its_own_key_pair() {
    let store = store();
    let keys = keys(&store, MAY);
    let one = created(&store, &keys, 1).await;
    let two = created(&store, &keys, 2).await;
    assert_ne!(one, two);
    let revealed = keys.private_key(&user(), Uuid::from_u128(1)).await.unwrap();
    let private = PrivateKey::from_openssh(revealed.expose()).unwrap();
    let public = PublicKey::from_openssh(&one).unwrap();
    assert_eq!(private.public_key().key_data(), public.key_data());
    assert_eq!(public.comment(), format!("server-{}", Uuid::from_u128(1)));
    assert_eq!(
        keys.public_key(&user(), Uuid::from_u128(2)).await.unwrap(),
        two
    );

    let again = keys.create(
        Transaction::new(),
        Uuid::from_u128(1),
        organization(1),
        project(1),
    );
    let refused = store.commit(&again.unwrap().0).await.unwrap_err();
    assert!(
        refused.conflict().is_some(),
        "the key of a server is not replaced"
    );
    let deletion = ServerKeys::delete(Transaction::new(), Uuid::from_u128(1)).unwrap();
    store.commit(&deletion).await.unwrap();
    let error = keys
        .private_key(&user(), Uuid::from_u128(1))
        .await
        .unwrap_err();
    assert!(matches!(error, KeyError::NotFound(_)));
}

#[tokio::test]
async fn private_key_requires_its_own_permission() {
    let store = store();
    let keys = keys(&store, MAY);
    created(&store, &keys, 1).await;
    let server = Uuid::from_u128(1);
    let scope = Scope::Project(organization(1), project(1));
    let nobody = Principal::service(ActorName::new("nobody").unwrap(), []);
    // Each row: principal, whether it may read the key, whether it may know that the key exists.
    let table = [
        (user_with_role("project-user", scope), true, true),
        (
            user_with_role(
                "organization-administrator",
                Scope::Organization(organization(1)),
            ),
            true,
            true,
        ),
        (
            user_with_role("platform-administrator", Scope::Global),
            true,
            true,
        ),
        (user_with_role("project-reader", scope), false, true),
        (
            user_with_role("organization-auditor", Scope::Organization(organization(1))),
            false,
            true,
        ),
        (
            user_with_role("project-user", Scope::Project(organization(1), project(2))),
            false,
            false,
        ),
        (
            user_with_role("project-user", Scope::Project(organization(2), project(1))),
            false,
            false,
        ),
        (
            user_with_role(
                "organization-administrator",
                Scope::Organization(organization(2)),
            ),
            false,
            false,
        ),
        (nobody, false, false),
    ];
    for (principal, shown, known) in table {
        let result = keys.private_key(&principal, server).await;
        assert_eq!(result.is_ok(), shown, "{principal:?}");
        assert_eq!(
            keys.public_key(&principal, server).await.is_ok(),
            known,
            "{principal:?}"
        );
        match (result, known) {
            (Err(KeyError::NotFound(id)), false) => {
                let absent = keys
                    .private_key(&principal, Uuid::from_u128(9))
                    .await
                    .unwrap_err();
                let same = absent
                    .to_string()
                    .replace(&Uuid::from_u128(9).to_string(), &id.to_string());
                assert_eq!(KeyError::NotFound(id).to_string(), same);
            }
            (Err(KeyError::Refused(_)), true) | (Ok(_), true) => {}
            (result, known) => panic!("{result:?} {known}"),
        }
    }
}

#[tokio::test]
async fn record_moved_to_another_tenant_does_not_open() {
    let store = store();
    let keys = keys(&store, MAY);
    created(&store, &keys, 1).await;
    let id = record(&Uuid::from_u128(1).to_string());
    let mut value = store.get(&id).await.unwrap().unwrap().value;
    value["organization"] = json!(organization(2));
    store
        .commit(&Transaction::new().put(id, value))
        .await
        .unwrap();
    let other_tenant = user_with_role(
        "organization-administrator",
        Scope::Organization(organization(2)),
    );
    let error = keys
        .private_key(&other_tenant, Uuid::from_u128(1))
        .await
        .unwrap_err();
    assert!(
        matches!(error, KeyError::Open(OpenError::NotAuthentic { .. })),
        "{error}"
    );
}

#[tokio::test]
async fn keyring_is_rotated_without_losing_a_secret() {
    let store = store();
    let old = keys(&store, MAY);
    for server in 1..=3 {
        created(&store, &old, server).await;
    }
    // One belongs to another record, one is not a key record, and the key of one is lost.
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
    let done = both.reseal().await.unwrap();
    assert_eq!(
        (done.count, done.failed.len(), done.damaged.len()),
        (3, 1, 1)
    );
    assert_eq!(done.damaged[0].id, record(&Uuid::from_u128(5).to_string()));
    assert_eq!(
        both.reseal().await.unwrap().count,
        0,
        "all keys are sealed with the current key"
    );

    let new = keys(&store, JUNE);
    for server in 1..=3 {
        assert!(
            new.private_key(&user(), Uuid::from_u128(server))
                .await
                .is_ok()
        );
    }
    let error = old
        .private_key(&user(), Uuid::from_u128(1))
        .await
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("sealed with key june, which is not in the keyring"),
        "{error}"
    );
    let error = new
        .private_key(&user(), Uuid::from_u128(5))
        .await
        .unwrap_err();
    assert!(matches!(error, KeyError::Store(_)), "{error}");
}

/// Searches everything that is stored, displayed or logged for the private key, in every encoding it could have.
#[tokio::test]
async fn secret_is_never_shown() {
    let store = store();
    let keys = keys(&store, MAY);
    created(&store, &keys, 1).await;
    let server = Uuid::from_u128(1);
    let secret = keys.private_key(&user(), server).await.unwrap();
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
            SshKeyPair::generate("c", &CountingEntropy::default()).unwrap()
        ),
        format!("{:?} {:?}", ring(MAY), ring(&format!("{JUNE}\n{MAY}"))),
    ];
    let stored = store
        .get(&record(&server.to_string()))
        .await
        .unwrap()
        .unwrap();
    seen.push(format!("{stored:?} {}", stored.value));
    let typed: ServerKey = stored.value.clone().parse_owned().unwrap();
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
    let outsider = user_with_role(
        "project-reader",
        Scope::Project(organization(1), project(1)),
    );
    for (principal, server) in [
        (&user(), 7),
        (&user(), 8),
        (&user(), 9),
        (&outsider, 1),
        (&user(), 10),
    ] {
        let error = keys
            .private_key(principal, Uuid::from_u128(server))
            .await
            .unwrap_err();
        seen.push(whole(&error));
    }
    for text in seen {
        for form in &forms {
            assert!(!text.contains(form.as_str()), "{form} is in {text}");
        }
    }
}
