use super::*;

#[test]
fn every_kind_is_recognized_by_its_first_line_and_has_its_content_type() {
    // Some first lines start with the first line of another kind.
    let kinds = [
        (
            "#cloud-config\nruncmd: [ls]\n",
            Kind::CloudConfig,
            "text/cloud-config",
        ),
        (
            "#cloud-config-archive\n- hello\n",
            Kind::CloudConfigArchive,
            "text/cloud-config-archive",
        ),
        (
            "#cloud-config-jsonp\n[{\"op\": \"add\", \"path\": \"/a\", \"value\": 1}]\n",
            Kind::CloudConfigJsonp,
            "text/cloud-config-jsonp",
        ),
        (
            "## template: jinja\n#cloud-config\n{% if %}",
            Kind::Jinja,
            "text/jinja2",
        ),
        ("#!/bin/sh\necho\n", Kind::Script, "text/x-shellscript"),
        (
            "#cloud-boothook\n#!/bin/sh\n",
            Kind::Boothook,
            "text/cloud-boothook",
        ),
        (
            "#include\nhttp://localhost/\n",
            Kind::Include,
            "text/x-include-url",
        ),
        (
            "#include-once\nhttp://localhost/\n",
            Kind::IncludeOnce,
            "text/x-include-once-url",
        ),
        (
            "#part-handler\nimport os\n",
            Kind::PartHandler,
            "text/part-handler",
        ),
    ];
    for (text, kind, content_type) in kinds {
        assert_eq!(accepted(text), Format::Plain(kind));
        assert_eq!(kind.content_type(), content_type);
        assert_eq!(accepted(compress(text)), Format::Gzip(kind));
        let crlf = text.replace('\n', "\r\n");
        assert_eq!(accepted(crlf), Format::Plain(kind));
    }
    assert_eq!(accepted(""), Format::Empty);
}

#[test]
fn white_space_and_case_matter_only_where_they_do_for_cloud_init() {
    for text in ["\n \t#cloud-config\n", "#Cloud-Config\n"] {
        assert_eq!(accepted(text), Format::Plain(Kind::CloudConfig), "{text:?}");
    }
    let handler = "\x1c\u{a0}#PART-HANDLER";
    assert_eq!(accepted(handler), Format::Plain(Kind::PartHandler));
    assert_eq!(accepted(" #Include\n"), Format::Plain(Kind::Include));
    let mentions = "#!/bin/sh\necho MIME-Version: 1.0 Content-Type: multipart/mixed\n";
    assert_eq!(accepted(mentions), Format::Plain(Kind::Script));
    for text in [
        "\n#!/bin/sh\n",
        " #cloud-boothook\n",
        "#Cloud-Boothook\n",
        "\t## template: jinja\n",
    ] {
        let message = refusal(text, Mode::Alone);
        assert!(
            message.ends_with("in lower case, with nothing before it"),
            "{message}"
        );
    }
    assert_eq!(
        refusal("\n#!/bin/hunter2", Mode::Merged),
        "the first line of a script is not at the start: expected the user data to start with \"#!\" in lower case, with nothing before it"
    );
}

#[test]
fn unknown_format_is_refused_with_the_accepted_ones() {
    let message = "the user data is in no format that cloud-init knows: expected a first line such as #cloud-config, #! or #include, or a \
                MIME archive, plain or compressed by gzip";
    for text in [
        "hunter2",
        "\n",
        "# cloud-config\n",
        "cloud-config\n",
        "\u{feff}#cloud-config\n",
        "MZ\0",
    ] {
        for mode in [Mode::Alone, Mode::Merged] {
            assert_eq!(refusal(text, mode), message);
            assert_eq!(refusal(compress(text), mode), message);
        }
    }
    let message = "the user data is not UTF-8 text, and cloud-init would not run it: expected UTF-8, plain or compressed by gzip";
    assert_eq!(
        refusal(b"#!/bin/sh\necho \xe9 hunter2", Mode::Alone),
        message
    );
    assert_eq!(refusal(compress(b"#!/bin/sh\n\xff"), Mode::Merged), message);
}

#[test]
fn size_limit_holds_for_compressed_user_data_too() {
    let script = |bytes: usize| format!("#!/bin/sh\n{}", "x".repeat(bytes - 10));
    accepted(script(MAX_BYTES));
    assert_eq!(
        refusal(script(MAX_BYTES + 1), Mode::Alone),
        "the user data has 32769 bytes: expected at most 32768, compressed or not; include the rest from a URL"
    );
    accepted(compress(script(MAX_INFLATED_BYTES)));
    let bomb = compress(script(32 * MAX_INFLATED_BYTES));
    assert!(bomb.len() < MAX_BYTES);
    for bomb in [bomb, compress(script(MAX_INFLATED_BYTES + 1))] {
        assert_eq!(
            refusal(bomb, Mode::Alone),
            "the user data decompresses to too many bytes: expected at most 524288; include the rest from a URL"
        );
    }
    let assembled = compress("#!/bin/sh\n");
    let mut trailing = assembled.clone();
    trailing.extend_from_slice(b"hunter2");
    let mut damaged = assembled.clone();
    damaged[12] ^= 1;
    for bad in [
        &assembled[..assembled.len() - 1],
        &assembled[..2],
        &trailing,
        &damaged,
    ] {
        assert_eq!(
            refusal(bad, Mode::Alone),
            "the user data starts like gzip data and cannot be decompressed: expected a complete gzip file with nothing after it"
        );
    }
    // Two files one after the other are one to gzip, and to cloud-init.
    let two = [compress("#!/bin/sh\n"), compress("echo\n")].concat();
    assert_eq!(accepted(two), Format::Gzip(Kind::Script));
    assert_eq!(
        refusal(compress(compress("#!/bin/sh\n")), Mode::Alone),
        "the user data is compressed twice, and cloud-init decompresses it once: compress it once"
    );
}

/// Text that is easily compressed, and much less so in base64.
fn foreign(lines: usize) -> String {
    let mut text = "#!/bin/sh\n".to_owned();
    let mut state = 7_usize;
    for _ in 0..lines {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let word = char::from_u32(0xe0 + u32::try_from((state >> 33) % 64).unwrap()).unwrap();
        text += &format!("echo {}\n", word.to_string().repeat(2 + (state >> 40) % 31));
    }
    text
}

#[test]
fn user_data_that_would_be_too_large_once_assembled_is_refused_by_check() {
    let lines = (1000..16000)
        .step_by(500)
        .rfind(|lines| compress(foreign(*lines)).len() <= MAX_BYTES)
        .unwrap();
    let user_data = compress(foreign(lines));
    assert_eq!(
        check(&user_data, Mode::Alone),
        Ok(Format::Gzip(Kind::Script))
    );
    let message = refusal(&user_data, Mode::Merged);
    assert!(
        message.starts_with("the user data would have "),
        "{message}"
    );
    assert!(message.ends_with(
        " bytes with the added cloud-config, compressed: expected at most 57344; include the rest from a URL"
    ), "{message}");
}

#[test]
fn cloud_config_must_be_a_mapping_or_empty() {
    for text in [
        "#cloud-config",
        "#cloud-config\n# only a comment\n",
        "#cloud-config\n---\nruncmd: []\n",
        "#cloud-config\n{}\n",
        "#cloud-config\na: &x [1]\nruncmd: *x\nb: {runcmd: ~}\n? [c]\n: d\n",
        "#cloud-config\nruncmd:\nruncmd: [ls]\n",
    ] {
        assert_eq!(accepted(text), Format::Plain(Kind::CloudConfig), "{text}");
    }
    let message = "the cloud-config is not a YAML mapping, and cloud-init would ignore it: expected lines of the form \"key: value\"";
    for text in [
        "#cloud-config\n- hunter2\n",
        "#cloud-config\nhunter2\n",
        "#cloud-config\n!!str ~\n",
        "#cloud-config\n'hunter2: 1'",
    ] {
        assert_eq!(refusal(text, Mode::Alone), message);
    }
    assert_eq!(
        refusal("#cloud-config\na: 1\nb: [hunter2\nc: 2\n", Mode::Alone),
        "the cloud-config is not valid YAML at line 4, and cloud-init would ignore all of it: fix that line, or the one before it"
    );
    assert_eq!(
        refusal("#cloud-config\na: 1\n---\nb: 1\n", Mode::Alone),
        "the cloud-config has several YAML documents, and cloud-init would ignore all of them: expected one, without \"---\" lines after its beginning"
    );
    assert_eq!(
        refusal("#cloud-config-archive\na: hunter2\n", Mode::Alone),
        "the cloud-config-archive is not a YAML list, and cloud-init would ignore it: expected its entries to begin with \"- \""
    );
    let message = "the cloud-config-jsonp is not a JSON patch, and cloud-init would ignore it: expected a JSON list of operations after its first line";
    for text in ["hunter2", "{}", "[1]", "[{\"op\": \"add\"}]", "[] []"] {
        assert_eq!(
            refusal(format!("#cloud-config-jsonp\n{text}"), Mode::Alone),
            message
        );
    }
}

#[test]
fn settings_that_are_appended_to_must_be_lists() {
    for key in ["ssh_authorized_keys", "write_files", "runcmd"] {
        for value in ["", "~", "null", "hunter2", "{a: 1}"] {
            let text = format!("#cloud-config\na: {{b: [c]}}\n{key}: {value}\npackages: [b]\n");
            assert_eq!(
                check(text.as_bytes(), Mode::Alone),
                Ok(Format::Plain(Kind::CloudConfig))
            );
            assert_eq!(
                refusal(text, Mode::Merged),
                format!(
                    "{key} of the cloud-config is not a list, and cloud-init could not append the added entries to it: expected a list, or no {key} at all"
                )
            );
        }
    }
}
