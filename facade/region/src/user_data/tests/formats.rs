use super::*;

#[test]
fn every_sort_is_told_by_its_first_line_and_has_its_type() {
    // What begins like another is not taken for it: the archive and the patch of settings, and the include that is fetched once.
    let sorts = [
        (
            "#cloud-config\nruncmd: [ls]\n",
            Sort::CloudConfig,
            "text/cloud-config",
        ),
        (
            "#cloud-config-archive\n- hello\n",
            Sort::CloudConfigArchive,
            "text/cloud-config-archive",
        ),
        (
            "#cloud-config-jsonp\n[{\"op\": \"add\", \"path\": \"/a\", \"value\": 1}]\n",
            Sort::CloudConfigJsonp,
            "text/cloud-config-jsonp",
        ),
        (
            "## template: jinja\n#cloud-config\n{% if %}",
            Sort::Jinja,
            "text/jinja2",
        ),
        ("#!/bin/sh\necho\n", Sort::Script, "text/x-shellscript"),
        (
            "#cloud-boothook\n#!/bin/sh\n",
            Sort::Boothook,
            "text/cloud-boothook",
        ),
        (
            "#include\nhttp://localhost/\n",
            Sort::Include,
            "text/x-include-url",
        ),
        (
            "#include-once\nhttp://localhost/\n",
            Sort::IncludeOnce,
            "text/x-include-once-url",
        ),
        (
            "#part-handler\nimport os\n",
            Sort::PartHandler,
            "text/part-handler",
        ),
    ];
    for (text, sort, of) in sorts {
        assert_eq!(taken(text), Format::Plain(sort));
        assert_eq!(sort.content_type(), of);
        assert_eq!(taken(packed(text)), Format::Gzip(sort));
        let crlf = text.replace('\n', "\r\n");
        assert_eq!(taken(crlf), Format::Plain(sort));
    }
    assert_eq!(taken(""), Format::Empty);
}

#[test]
fn blanks_and_case_count_only_where_they_do_for_cloud_init() {
    for text in ["\n \t#cloud-config\n", "#Cloud-Config\n"] {
        assert_eq!(taken(text), Format::Plain(Sort::CloudConfig), "{text:?}");
    }
    let handler = "\x1c\u{a0}#PART-HANDLER";
    assert_eq!(taken(handler), Format::Plain(Sort::PartHandler));
    assert_eq!(taken(" #Include\n"), Format::Plain(Sort::Include));
    let mentions = "#!/bin/sh\necho MIME-Version: 1.0 Content-Type: multipart/mixed\n";
    assert_eq!(taken(mentions), Format::Plain(Sort::Script));
    for text in [
        "\n#!/bin/sh\n",
        " #cloud-boothook\n",
        "#Cloud-Boothook\n",
        "\t## template: jinja\n",
    ] {
        let said = refused(text, Mode::Alone);
        assert!(
            said.ends_with("in this very case, with nothing before it"),
            "{said}"
        );
    }
    assert_eq!(
        refused("\n#!/bin/hunter2", Mode::Merged),
        "the first line of a script is not found where it has to be: want the user data to begin with \"#!\" in this very case, with nothing before it"
    );
}

#[test]
fn what_is_of_no_format_is_told_what_would_be() {
    let said = "the user data are in no format of cloud-init: want them to begin with #cloud-config, #!, #include or another of its first \
                lines, or to be a MIME archive, as they are or compressed by gzip";
    for text in [
        "hunter2",
        "\n",
        "# cloud-config\n",
        "cloud-config\n",
        "\u{feff}#cloud-config\n",
        "MZ\0",
    ] {
        for mode in [Mode::Alone, Mode::Merged] {
            assert_eq!(refused(text, mode), said);
            assert_eq!(refused(packed(text), mode), said);
        }
    }
    let said = "the user data are not text in UTF-8, and cloud-init would not run them: want UTF-8, as it is or compressed by gzip";
    assert_eq!(refused(b"#!/bin/sh\necho \xe9 hunter2", Mode::Alone), said);
    assert_eq!(refused(packed(b"#!/bin/sh\n\xff"), Mode::Merged), said);
}

#[test]
fn there_is_a_limit_and_what_is_compressed_cannot_evade_it() {
    let of = |bytes: usize| format!("#!/bin/sh\n{}", "x".repeat(bytes - 10));
    taken(of(MAX_USER_DATA_BYTES));
    assert_eq!(
        refused(of(MAX_USER_DATA_BYTES + 1), Mode::Alone),
        "the user data have 32769 bytes: want at most 32768, compressed by gzip or not; the rest can be included from an address"
    );
    taken(packed(of(MAX_INFLATED_BYTES)));
    let bomb = packed(of(32 * MAX_INFLATED_BYTES));
    assert!(bomb.len() < MAX_USER_DATA_BYTES);
    for bomb in [bomb, packed(of(MAX_INFLATED_BYTES + 1))] {
        assert_eq!(
            refused(bomb, Mode::Alone),
            "the compressed user data become more than 524288 bytes: want less, or have them include the rest from an address"
        );
    }
    let whole = packed("#!/bin/sh\n");
    let mut trailing = whole.clone();
    trailing.extend_from_slice(b"hunter2");
    let mut damaged = whole.clone();
    damaged[12] ^= 1;
    for bad in [&whole[..whole.len() - 1], &whole[..2], &trailing, &damaged] {
        assert_eq!(
            refused(bad, Mode::Alone),
            "the user data begin as if compressed by gzip and cannot be read: want all of a gzip file, and nothing after it"
        );
    }
    // Two files one after the other are one to gzip, and to cloud-init.
    let two = [packed("#!/bin/sh\n"), packed("echo\n")].concat();
    assert_eq!(taken(two), Format::Gzip(Sort::Script));
    assert_eq!(
        refused(packed(packed("#!/bin/sh\n")), Mode::Alone),
        "the user data are compressed twice, and cloud-init undoes it once: want them compressed once"
    );
}

/// Text that is easily compressed, and much less so in base64.
fn foreign(lines: usize) -> String {
    let mut text = "#!/bin/sh\n".to_owned();
    let mut dice = 7_usize;
    for _ in 0..lines {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let word = char::from_u32(0xe0 + u32::try_from((dice >> 33) % 64).unwrap()).unwrap();
        text += &format!("echo {}\n", word.to_string().repeat(2 + (dice >> 40) % 31));
    }
    text
}

#[test]
fn what_would_be_too_large_in_the_end_is_refused_at_once() {
    let lines = (1000..16000)
        .step_by(500)
        .rfind(|lines| packed(foreign(*lines)).len() <= MAX_USER_DATA_BYTES)
        .unwrap();
    let own = packed(foreign(lines));
    assert_eq!(check(&own, Mode::Alone), Ok(Format::Gzip(Sort::Script)));
    let said = refused(&own, Mode::Merged);
    assert!(said.starts_with("the user data would have "), "{said}");
    assert!(said.ends_with(
        " bytes with what the region adds, compressed: want at most 57344; have them include the rest from an address"
    ), "{said}");
}

#[test]
fn a_cloud_config_is_a_mapping_or_nothing() {
    for text in [
        "#cloud-config",
        "#cloud-config\n# only a comment\n",
        "#cloud-config\n---\nruncmd: []\n",
        "#cloud-config\n{}\n",
        "#cloud-config\na: &x [1]\nruncmd: *x\nb: {runcmd: ~}\n? [c]\n: d\n",
        "#cloud-config\nruncmd:\nruncmd: [ls]\n",
    ] {
        assert_eq!(taken(text), Format::Plain(Sort::CloudConfig), "{text}");
    }
    let said = "the cloud-config is not a YAML mapping, and cloud-init would ignore it: want lines of the form \"key: value\"";
    for text in [
        "#cloud-config\n- hunter2\n",
        "#cloud-config\nhunter2\n",
        "#cloud-config\n'hunter2: 1'",
    ] {
        assert_eq!(refused(text, Mode::Alone), said);
    }
    assert_eq!(
        refused("#cloud-config\na: 1\nb: [hunter2\nc: 2\n", Mode::Alone),
        "the cloud-config is no YAML from its line 4 on, and cloud-init would ignore all of it: mend that line, or the one before it"
    );
    assert_eq!(
        refused("#cloud-config\na: 1\n---\nb: 1\n", Mode::Alone),
        "the cloud-config is several YAML documents, and cloud-init would ignore all of them: want one, without \"---\" lines after its beginning"
    );
    assert_eq!(
        refused("#cloud-config-archive\na: hunter2\n", Mode::Alone),
        "the cloud-config-archive is not a YAML list, and cloud-init would ignore it: want its entries to begin with \"- \""
    );
    let said = "the cloud-config-jsonp is no JSON patch, and cloud-init would ignore it: want a JSON list of operations after its first line";
    for text in ["hunter2", "{}", "[1]", "[{\"op\": \"add\"}]", "[] []"] {
        assert_eq!(
            refused(format!("#cloud-config-jsonp\n{text}"), Mode::Alone),
            said
        );
    }
}

#[test]
fn what_is_added_to_must_be_a_list() {
    for key in ["ssh_authorized_keys", "write_files", "runcmd"] {
        for value in ["", "~", "null", "hunter2", "{a: 1}"] {
            let text = format!("#cloud-config\nhostname: a\n{key}: {value}\npackages: [b]\n");
            assert_eq!(
                check(text.as_bytes(), Mode::Alone),
                Ok(Format::Plain(Sort::CloudConfig))
            );
            assert_eq!(
                refused(text, Mode::Merged),
                format!(
                    "{key} of the cloud-config is not a list, and cloud-init could not add to it what the server needs: want a list, or no {key} at all"
                )
            );
        }
    }
}
