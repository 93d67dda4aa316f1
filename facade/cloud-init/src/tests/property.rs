//! For any user data: nothing panics, and what is accepted is contained in the archive to the byte.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use proptest::prelude::*;

use super::{
    assembled::{KEY, authority, key},
    *,
};

/// A part as a reader of mail takes it out: its type and its content. Reads by the rules of RFC 2046 and shares nothing with the module.
fn parts(assembled: &[u8]) -> Vec<(String, Vec<u8>)> {
    let head_end = find(assembled, b"\n\n").unwrap();
    let head = std::str::from_utf8(&assembled[..head_end]).unwrap();
    let boundary = head.split('"').nth(1).unwrap();
    let mark = format!("\n--{boundary}");
    let mut rest = &assembled[head_end + 1..];
    let mut found = Vec::new();
    while let Some(at) = find(rest, mark.as_bytes()) {
        found.push(&rest[..at]);
        rest = &rest[at + mark.len()..];
    }
    assert_eq!(rest, b"--\n");
    found
        .into_iter()
        .skip(1)
        .map(|part| part_of(&part[1..]))
        .collect()
}

fn part_of(part: &[u8]) -> (String, Vec<u8>) {
    let end = find(part, b"\n\n").unwrap();
    let head = std::str::from_utf8(&part[..end]).unwrap();
    let content_type = head.lines().next().unwrap();
    let content_type = content_type
        .strip_prefix("Content-Type: ")
        .unwrap_or("?")
        .to_owned();
    let body = &part[end + 2..];
    if head.lines().count() == 2 && head.ends_with("base64") {
        let body: Vec<u8> = body.iter().copied().filter(|byte| *byte != b'\n').collect();
        return (content_type, STANDARD.decode(body).unwrap());
    }
    (content_type, body.to_vec())
}

fn find(within: &[u8], what: &[u8]) -> Option<usize> {
    within.windows(what.len()).position(|found| found == what)
}

fn first_line() -> impl Strategy<Value = String> {
    let lines = [
        "#cloud-config",
        "#cloud-config-archive",
        "#cloud-config-jsonp",
        "#!",
        "#cloud-boothook",
        "#include",
        "#include-once",
        "#part-handler",
        "## template: jinja",
        "",
        "Content-Type: multipart/mixed; boundary=b",
        "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n",
        "\u{1f}\u{8b}",
    ];
    prop::sample::select(lines.to_vec()).prop_map(str::to_owned)
}

fn data() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        "[ -~\t]{0,30}",
        "[a-z_]{1,8}: [a-z0-9 ]{0,8}",
        "- [a-z]{0,8}",
        "\\PC{0,12}\r?",
        Just("--b".to_owned()),
        Just("--b--".to_owned()),
        Just("MIME-Version: 1.0".to_owned()),
        Just("Content-Type: multipart/mixed; boundary=\"c\"".to_owned()),
    ];
    let text = (first_line(), prop::collection::vec(line, 0..12))
        .prop_map(|(first, lines)| format!("{first}{}", lines.concat_lines()).into_bytes());
    let plain = prop_oneof![
        4 => text,
        1 => prop::collection::vec(any::<u8>(), 0..300),
    ];
    (plain, prop::bool::weighted(0.2))
        .prop_map(|(data, pack)| if pack { compress(data) } else { data })
}

trait Lines {
    fn concat_lines(&self) -> String;
}

impl Lines for Vec<String> {
    fn concat_lines(&self) -> String {
        self.iter().map(|line| format!("\n{line}")).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_accepted_user_data_is_in_the_archive_to_the_byte(user_data in data()) {
        let _ = check(&user_data, Mode::Alone);
        let Ok(format) = check(&user_data, Mode::Merged) else { return Ok(()) };
        if user_data.is_empty() {
            return Ok(());
        }
        let assembled = assemble(&user_data, &authority(key())).unwrap();
        prop_assert!(assembled.len() <= MAX_ASSEMBLED_BYTES);
        let (kind, user_data, assembled) = match format {
            Format::Empty => unreachable!("it is not empty"),
            Format::Plain(kind) => (kind, user_data, assembled),
            Format::Gzip(kind) => (kind, gzip::inflate(&user_data).unwrap(), gzip::inflate(&assembled).unwrap()),
        };
        if kind == Kind::Mime {
            prop_assert!(find(&assembled, &user_data).is_some());
            return Ok(());
        }
        let parts = parts(&assembled);
        prop_assert_eq!(parts.len(), 2);
        prop_assert_eq!(&parts[0], &(kind.content_type().to_owned(), user_data));
        prop_assert_eq!(&parts[1].0, "text/cloud-config");
        let ours = std::str::from_utf8(&parts[1].1).unwrap();
        prop_assert!(ours.contains(KEY) && ours.contains("merge_how:") && ours.contains("runcmd:"));
    }

    #[test]
    fn any_bytes_are_accepted_or_refused_without_panic(user_data in prop::collection::vec(any::<u8>(), 0..200), first in first_line()) {
        for bytes in [user_data.clone(), [first.as_bytes(), &user_data].concat(), compress(&user_data), [&[0x1f, 0x8b, 8, 0][..], &user_data].concat()] {
            let _ = check(&bytes, Mode::Alone);
            let _ = check(&bytes, Mode::Merged);
        }
    }

    #[test]
    fn accepted_in_merged_mode_implies_accepted_alone(user_data in data()) {
        if let Ok(format) = check(&user_data, Mode::Merged) {
            prop_assert_eq!(check(&user_data, Mode::Alone), Ok(format));
        }
    }
}
