//! Tests of mistakes and their positions.

use crate::config::ConfigFile;

use super::*;

fn mistakes(text: &str) -> Vec<String> {
    let read = Document::toml(text).read::<ConfigFile>(|_, _| {});
    let mistakes = read.unwrap_err();
    mistakes.list().iter().map(ToString::to_string).collect()
}

#[test]
fn all_mistakes_are_reported_with_their_positions() {
    let text = r#"
[ec2]
regoin = "eu-west-1"
security_groups = "sg-1"
metadata_hop_limit = 65

[launch]
market = "sport"
disk_size_gb = 0

[[launch.alternatives]]
zone = 7

[limits]
call_timeout_seconds = "a minute"
"#;
    let expected = [
        (3, 1, "ec2.regoin: is unknown"),
        (3, 1, "did you mean region?"),
        (
            4,
            19,
            "ec2.security_groups: found a string: expected an array",
        ),
        (
            5,
            22,
            "ec2.metadata_hop_limit: 65 is out of range: expected 1 to 64",
        ),
        (
            8,
            10,
            "launch.market: \"sport\" is unknown: expected one of on-demand, spot; did you mean spot?",
        ),
        (9, 16, "launch.disk_size_gb: 0 is out of range"),
        (
            12,
            8,
            "launch.alternatives[0].zone: found a whole number: expected a string",
        ),
        (
            15,
            24,
            "limits.call_timeout_seconds: found a string: expected a number",
        ),
    ];
    let found = mistakes(text);
    assert_eq!(found.len(), expected.len() - 1, "{found:#?}");
    for (line, column, what) in expected {
        let begins = format!("line {line}, column {column}: ");
        let has = |mistake: &String| mistake.starts_with(&begins) && mistake.contains(what);
        assert!(found.iter().any(has), "{begins}{what} in {found:#?}");
    }
}

#[test]
fn missing_fields_are_reported_at_their_table() {
    let found = mistakes("[gcp]\nproject = \"p\"\n");
    let expected = ["line 1, column 2: gcp.zones: is missing: expected an array"];
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with(expected[0]), "{found:?}");
}

#[test]
fn syntax_is_reported_with_its_line_and_nothing_else() {
    let found = mistakes("[ec2]\nregion = eu-west-1\nwhat = 1\n");
    assert!(
        found.iter().all(|mistake| mistake.starts_with("line 2, ")),
        "{found:?}"
    );
}

#[test]
fn json_has_paths_without_positions() {
    let value = serde_json::json!({"disk_size_gb": "ten", "colour": 1, "zone": null});
    let read = Document::json(&value).read::<crate::settings::LaunchSettings>(|_, _| {});
    let text = read.unwrap_err().to_string();
    assert!(text.starts_with("2 mistakes\n"), "{text}");
    assert!(
        text.contains("disk_size_gb: found a string: expected a whole number"),
        "{text}"
    );
    assert!(text.contains("colour: is unknown"), "{text}");
}
