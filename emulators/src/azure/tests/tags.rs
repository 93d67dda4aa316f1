//! Tags of virtual machines.

use super::*;

#[test]
fn tags_are_kept_exactly_and_a_patch_replaces_them_all() {
    let mut lab = Lab::new();
    let tags = json!({ "Managed By": "", "ünï": "ä 🦀", "UPPER": "Case" });
    lab.put("a", order_with("/tags", tags.clone()));
    assert_eq!(lab.get(&format!("{VMS}/a"))["tags"], tags);
    lab.pass(100);
    lab.ok(&format!("PATCH {VMS}/a"), json!({ "tags": { "x": "y" } }));
    lab.pass(0);
    assert_eq!(lab.get(&format!("{VMS}/a"))["tags"], json!({ "x": "y" }));
    lab.ok(&format!("PATCH {VMS}/a"), json!({ "tags": {} }));
    assert!(lab.get(&format!("{VMS}/a"))["tags"].is_null());
}

#[test]
fn put_without_tags_removes_them() {
    let mut lab = Lab::new();
    lab.running("a");
    lab.put("a", order_with("/tags", Value::Null));
    assert!(lab.vm("a").tags.is_empty());
}

#[test]
fn tags_that_can_not_be_are_refused() {
    let mut lab = Lab::new();
    lab.running("a");
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
            lab.refused(&patch, json!({ "tags": tags })),
            (400, code.to_owned())
        );
    }
    assert_eq!(lab.vm("a").tags["Owner"], "me");
}
