//! Tags of virtual machines.

use super::*;

#[test]
fn tags_are_stored_exactly_and_a_patch_replaces_all() {
    let mut fixture = Fixture::new();
    let tags = json!({ "Managed By": "", "ünï": "ä 🦀", "UPPER": "Case" });
    fixture.put("a", vm_body_with("/tags", tags.clone()));
    assert_eq!(fixture.get(&format!("{VMS}/a"))["tags"], tags);
    fixture.advance(100);
    fixture.ok(&format!("PATCH {VMS}/a"), json!({ "tags": { "x": "y" } }));
    fixture.advance(0);
    assert_eq!(
        fixture.get(&format!("{VMS}/a"))["tags"],
        json!({ "x": "y" })
    );
    fixture.ok(&format!("PATCH {VMS}/a"), json!({ "tags": {} }));
    assert!(fixture.get(&format!("{VMS}/a"))["tags"].is_null());
}

#[test]
fn put_without_tags_removes_them() {
    let mut fixture = Fixture::new();
    fixture.running("a");
    fixture.put("a", vm_body_with("/tags", Value::Null));
    assert!(fixture.vm("a").tags.is_empty());
}

#[test]
fn invalid_tags_are_refused() {
    let mut fixture = Fixture::new();
    fixture.running("a");
    let patch = format!("PATCH {VMS}/a");
    let many: BTreeMap<String, String> =
        (0..51).map(|n| (format!("t{n}"), String::new())).collect();
    for (tags, code) in [
        (json!(many), "TooManyTags"),
        (json!({ "a/b": "" }), "InvalidTagNameCharacters"),
        (json!({ "Owner": "", "owner": "" }), "InvalidRequestContent"),
        (json!({ "a": "x".repeat(257) }), "InvalidTagValueLength"),
        (json!({ "a": 1 }), "BadRequest"),
    ] {
        assert_eq!(
            fixture.refused(&patch, json!({ "tags": tags })),
            (400, code.to_owned())
        );
    }
    assert_eq!(fixture.vm("a").tags["Owner"], "me");
}
