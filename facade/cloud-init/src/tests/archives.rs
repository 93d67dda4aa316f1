use super::*;

const HEAD: &str = "Content-Type: multipart/mixed; boundary=\"b\"\nMIME-Version: 1.0\n\n";

fn with(body: &str) -> String {
    format!("{HEAD}{body}")
}

#[test]
fn equivalent_spellings_of_an_archive_are_accepted() {
    let plain = with("--b\n\n#!/bin/sh\n--b--\n");
    let nested = "--b\nContent-Type: multipart/alternative; boundary=c\n\nhi\n--c\n\nx\n--c--\n--b\n\ny\n--b--";
    for text in [
        plain.clone(),
        plain.replace('\n', "\r\n"),
        plain.replace('\n', "\r"),
        plain.replace(
            "Content-Type: multipart/mixed;",
            "cOnTeNt-tYpE:\n\tMULTIPART/Mixed;\n ",
        ),
        plain.replace("boundary=\"b\"", "x=\"a;boundary=no\"; BOUNDARY = b "),
        format!(
            "MIME-Version: 1.0\nX-Other: 1\n{}",
            plain.replace("MIME-Version: 1.0\n", "")
        ),
        with("before\n--b\nContent-Type: text/plain\n\n--bc\n--b-- \t\nafter\n"),
        with("--b\n#!/bin/sh\n--b--"),
        with(nested),
        with(&format!(
            "{}--b--",
            "--b\nContent-Type: multipart/mixed; boundary=c\n\n--c\n\n--c--\n".repeat(20)
        )),
        plain.replace("=\"b\"", "=\"b \t\""),
        plain
            .replace("=\"b\"", "=\"x\\\"; boundary=y\\\\\"")
            .replace("--b", "--x\"; boundary=y\\"),
    ] {
        assert_eq!(accepted(&text), Format::Plain(Kind::Mime), "{text:?}");
        assert_eq!(
            accepted(compress(&text)),
            Format::Gzip(Kind::Mime),
            "{text:?}"
        );
    }
}

#[test]
fn archive_that_cloud_init_would_not_open_is_refused_with_the_reason() {
    let plain = with("--b\n\nhunter2\n--b--\n");
    let version = "the archive has no MIME-Version header in its first 4096 bytes, and cloud-init would not open it: expected \"MIME-Version: 1.0\" among its first headers";
    let late = plain.replace(
        "MIME-Version",
        &format!("X-Long: {:x<4096}\nMIME-Version", ""),
    );
    for text in [plain.replace("MIME-Version: 1.0\n", ""), late] {
        assert_eq!(refusal(text, Mode::Alone), version);
    }
    let multipart = "the user data has MIME headers and is not multipart: expected \"Content-Type: multipart/mixed\" with a boundary, or no headers at all";
    for text in [
        "MIME-Version: 1.0\nContent-Type: text/x-shellscript\n\n#!/bin/sh\n",
        "#cloud-config:\n# mime-version: 1.0\n",
        " #cloud-config\n# mime-version: 1.0\n",
        "MIME-Version: 1.0\nContent-Type: multipart\n",
    ] {
        assert_eq!(refusal(text, Mode::Alone), multipart, "{text:?}");
    }
    let boundary = "a multipart header of the archive has no boundary: expected boundary=\"...\" in its Content-Type";
    for content_type in [
        "multipart/mixed",
        "multipart/mixed; boundary=\"\"",
        "multipart/mixed; boundary",
    ] {
        let text = plain.replace("multipart/mixed; boundary=\"b\"", content_type);
        assert_eq!(refusal(text, Mode::Alone), boundary);
    }
    let inner = with("--b\nContent-Type: multipart/mixed\n\n--b--\n");
    assert_eq!(refusal(inner, Mode::Alone), boundary);
    let part = "an archive has no part: expected at least one, after a line of two dashes and its boundary";
    for body in ["--b--\n", "", "hunter2\n"] {
        assert_eq!(refusal(with(body), Mode::Alone), part, "{body:?}");
    }
    let end = "an archive has no end and may be cut off: expected its last line to be two dashes, its boundary and two dashes";
    for body in [
        "--b\n\nhunter2\n",
        "--b\n\nhunter2\n--b-",
        "--b\n\nhunter2\n--b\n\n",
        "--b\nContent-Type: multipart/mixed; boundary=c\n\n--c\n\nhunter2\n--b--\n",
        "--b\nContent-Type: multipart/mixed; boundary=c\n\n--c\n\nhunter2\n--c--\n",
        "--b\nContent-Type: multipart/mixed; boundary=c\n\n--c\n\nhunter2\n--b\n\n--c--\n--b--\n",
    ] {
        assert_eq!(refusal(with(body), Mode::Alone), end, "{body:?}");
    }
    assert_eq!(
        refusal(with("--b\n\nh\u{e9} hunter2\n--b--\n"), Mode::Alone),
        "the archive has characters beyond ASCII, which cloud-init would change: expected its parts in base64 or quoted-printable"
    );
}

#[test]
fn nesting_of_archives_is_limited() {
    let within = |depth: usize| {
        let mut text = "#!/bin/sh".to_owned();
        for at in (0..depth).rev() {
            let version = if at == 0 { "MIME-Version: 1.0\n" } else { "" };
            text = format!(
                "{version}Content-Type: multipart/mixed; boundary=b{at}x\n\n--b{at}x\n{text}\n--b{at}x--"
            );
        }
        text
    };
    assert_eq!(accepted(within(8)), Format::Plain(Kind::Mime));
    for depth in [9, 500] {
        assert_eq!(
            refusal(within(depth), Mode::Alone),
            "archives are nested too deep: expected at most 8 levels"
        );
    }
}
