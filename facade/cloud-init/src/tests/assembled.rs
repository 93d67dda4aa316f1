use uuid::Uuid;

use super::*;

pub(super) const KEY: &str = "ssh-ed25519 AAAA server-1";
const AUTHORITY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAy6fJc6yBCQTw1DopXqb20HM2tM0UvQcjhH2mQNCtjX";

fn nothing() -> ManagedConfig {
    ManagedConfig::new(Uuid::from_u128(1))
}

pub(super) fn key() -> ManagedConfig {
    nothing().with_public_key(KEY)
}

pub(super) fn authority(managed: ManagedConfig) -> ManagedConfig {
    managed.with_authority(AUTHORITY, &Uuid::from_u128(7).to_string())
}

fn text(user_data: Option<&str>, managed: &ManagedConfig) -> String {
    let user_data = user_data.unwrap_or_default().as_bytes();
    let assembled = assemble(user_data, managed).unwrap();
    assert_eq!(assemble(user_data, managed), Ok(assembled.clone()));
    String::from_utf8(assembled).unwrap()
}

#[test]
fn user_data_is_unchanged_if_nothing_is_added() {
    assert_eq!(assemble(b"", &nothing()), Ok(Vec::new()));
    for user_data in [
        &b"#!/bin/sh\n"[..],
        &compress("#!/bin/sh\n"),
        b"whatever it is",
    ] {
        assert_eq!(assemble(user_data, &nothing()), Ok(user_data.to_vec()));
    }
}

const MERGE: &str = "#cloud-config
merge_how:
  - name: list
    settings: [append]
  - name: dict
    settings: [no_replace, recurse_list]
";
const TRUST: &str = "write_files:
  - path: /etc/ssh/fleetwright_user_ca.pub
    owner: root:root
    permissions: '0644'
    content: |
      ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAy6fJc6yBCQTw1DopXqb20HM2tM0UvQcjhH2mQNCtjX 00000000-0000-0000-0000-000000000007
  - path: /etc/ssh/sshd_config.d/00-fleetwright-user-ca.conf
    owner: root:root
    permissions: '0644'
    content: |
      TrustedUserCAKeys /etc/ssh/fleetwright_user_ca.pub
runcmd:
  - - sh
    - -c
    - |
";

#[test]
fn managed_config_alone_is_a_cloud_config() {
    let list = "ssh_authorized_keys:\n  - ssh-ed25519 AAAA server-1\n";
    assert_eq!(text(None, &key()), format!("{MERGE}{list}"));
    let trusts = text(None, &authority(nothing()));
    assert!(trusts.starts_with(&format!("{MERGE}{TRUST}")), "{trusts}");
    assert!(trusts.contains("try-reload-or-restart"), "{trusts}");
    let both = text(None, &authority(key()));
    assert_eq!(
        both,
        trusts.replace("write_files:", &format!("{list}write_files:"))
    );
    assert_eq!(accepted(&both), Format::Plain(Kind::CloudConfig));
}

#[test]
fn user_data_is_a_part_of_its_type_followed_by_the_managed_config_with_a_merge_directive() {
    for (user_data, content_type) in [
        ("#cloud-config\nruncmd: [ls]\n", "text/cloud-config"),
        ("#cloud-config-archive\n- a\n", "text/cloud-config-archive"),
        ("#cloud-config-jsonp\n[]", "text/cloud-config-jsonp"),
        ("## template: jinja\n#cloud-config\n", "text/jinja2"),
        ("#!/bin/sh\necho\n", "text/x-shellscript"),
        ("#include-once\nfile:///a\n", "text/x-include-once-url"),
    ] {
        let assembled = text(Some(user_data), &authority(key()));
        let boundary = assembled.split('"').nth(1).unwrap();
        let head = format!(
            "Content-Type: multipart/mixed; boundary=\"{boundary}\"\nMIME-Version: 1.0\n\n"
        );
        let theirs = format!("--{boundary}\nContent-Type: {content_type}\n\n{user_data}\n");
        let ours = format!("--{boundary}\nContent-Type: text/cloud-config\n\n{MERGE}");
        assert!(
            assembled.starts_with(&format!("{head}{theirs}{ours}")),
            "{assembled}"
        );
        assert!(
            assembled.ends_with(&format!("\n--{boundary}--\n")),
            "{assembled}"
        );
        assert_eq!(accepted(&assembled), Format::Plain(Kind::Mime));
    }
}

#[test]
fn mime_archive_is_nested_unchanged() {
    let user_data =
        "Content-Type: multipart/mixed; boundary=\"x\"\nMIME-version: 1.0\n\n--x\n\nhello\n--x--\n";
    let assembled = text(Some(user_data), &key());
    assert!(
        assembled.contains(&format!("\n{user_data}\n--")),
        "{assembled}"
    );
    assert_eq!(accepted(&assembled), Format::Plain(Kind::Mime));
}

#[test]
fn compressed_user_data_becomes_a_compressed_archive() {
    let user_data = "#cloud-config\nruncmd: [ls]\n";
    let data = compress(user_data);
    let assembled = assemble(&data, &key()).unwrap();
    assert_eq!(accepted(&assembled), Format::Gzip(Kind::Mime));
    let inflated = gzip::inflate(&assembled).unwrap();
    assert_eq!(inflated, text(Some(user_data), &key()).into_bytes());
    assert_eq!(assemble(&data, &key()), Ok(assembled));
}

#[test]
fn bytes_that_a_mime_parser_would_change_are_encoded() {
    // A MIME parser drops the line end before a boundary, including a carriage return.
    for user_data in [
        "#!/bin/sh\r",
        "#!/bin/sh\n\u{e9}",
        "#!/bin/sh\n\0",
        "#!/bin/sh\n\x7f",
    ] {
        let assembled = text(Some(user_data), &key());
        let head =
            "\nContent-Type: text/x-shellscript\nContent-Transfer-Encoding: base64\n\nIyEvYmluL3No";
        assert!(assembled.contains(head), "{assembled}");
    }
}

#[test]
fn plain_text_grows_only_by_what_is_added() {
    let user_data = format!("#!/bin/sh\n{}", "echo hello\n".repeat(1000));
    assert!(text(Some(&user_data), &key()).len() < user_data.len() + 600);
    assert!(text(Some(&user_data), &authority(key())).len() < user_data.len() + 1600);
}

#[test]
fn largest_accepted_user_data_is_assembled_within_the_limit() {
    let plain = format!("{:\u{e9}<1$}", "#!/bin/sh\n", MAX_BYTES / 2 + 5);
    assert_eq!(plain.len(), MAX_BYTES);
    let assembled = assemble(plain.as_bytes(), &ManagedConfig::largest()).unwrap();
    assert!(assembled.len() <= MAX_ASSEMBLED_BYTES);
    assert!(authority(key()).cloud_config().len() < ManagedConfig::largest().cloud_config().len());
}

#[test]
fn refused_user_data_is_not_assembled() {
    let user_data = b"#cloud-config\nruncmd:\n";
    let error = assemble(user_data, &key()).unwrap_err();
    assert_eq!(Err(error), check(user_data, Mode::Merged));
    assert!(matches!(
        error,
        UserDataError::NotAppendable { key: "runcmd" }
    ));
    let large = vec![b'#'; MAX_BYTES + 1];
    let error = assemble(&large, &key()).unwrap_err();
    assert_eq!(Err(error), check(&large, Mode::Merged));
}

#[test]
fn debug_output_shows_no_keys() {
    let shown = format!("{:?}", authority(key()));
    assert!(
        shown.contains("Merged") && !shown.contains("AAAA"),
        "{shown}"
    );
}
