use fleetwright::UserData;
use uuid::Uuid;

use super::*;
use crate::{ids::SshAuthorityId, network::AuthorityKey};

pub(super) const KEY: &str = "ssh-ed25519 AAAA server-1";
const AUTHORITY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAy6fJc6yBCQTw1DopXqb20HM2tM0UvQcjhH2mQNCtjX";

fn nothing() -> Managed {
    Managed::nothing(Uuid::from_u128(1))
}

pub(super) fn key() -> Managed {
    nothing().with_public_key(KEY)
}

pub(super) fn authority(managed: Managed) -> Managed {
    // A comment may hold anything that is no control character, and goes nowhere.
    let key = AuthorityKey::new(&format!("{AUTHORITY} it's: [\"\u{e9}\u{fffe}\"] #")).unwrap();
    managed.with_authority(SshAuthorityId::from_uuid(Uuid::from_u128(7)), &key)
}

fn text(own: Option<&str>, managed: &Managed) -> String {
    let own = own.map(|own| UserData::new(own).unwrap());
    let whole = assemble(own.as_ref(), managed).unwrap().unwrap();
    assert_eq!(assemble(own.as_ref(), managed), Ok(Some(whole.clone())));
    String::from_utf8(whole.as_bytes().to_vec()).unwrap()
}

#[test]
fn with_nothing_to_add_user_data_are_as_they_came() {
    assert_eq!(assemble(None, &nothing()), Ok(None));
    for own in [
        &b"#!/bin/sh\n"[..],
        &packed("#!/bin/sh\n"),
        b"whatever it is",
    ] {
        let own = UserData::new(own).unwrap();
        assert_eq!(assemble(Some(&own), &nothing()), Ok(Some(own)));
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
fn what_is_added_alone_is_a_cloud_config() {
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
    assert_eq!(taken(&both), Format::Plain(Sort::CloudConfig));
}

#[test]
fn each_sort_is_a_part_of_its_own_type_and_ours_comes_after_it_with_a_merge_directive() {
    for (own, of) in [
        ("#cloud-config\nruncmd: [ls]\n", "text/cloud-config"),
        ("#cloud-config-archive\n- a\n", "text/cloud-config-archive"),
        ("#cloud-config-jsonp\n[]", "text/cloud-config-jsonp"),
        ("## template: jinja\n#cloud-config\n", "text/jinja2"),
        ("#!/bin/sh\necho\n", "text/x-shellscript"),
        ("#include-once\nfile:///a\n", "text/x-include-once-url"),
    ] {
        let whole = text(Some(own), &authority(key()));
        let boundary = whole.split('"').nth(1).unwrap();
        let head = format!(
            "Content-Type: multipart/mixed; boundary=\"{boundary}\"\nMIME-Version: 1.0\n\n"
        );
        let theirs = format!("--{boundary}\nContent-Type: {of}\n\n{own}\n");
        let ours = format!("--{boundary}\nContent-Type: text/cloud-config\n\n{MERGE}");
        assert!(
            whole.starts_with(&format!("{head}{theirs}{ours}")),
            "{whole}"
        );
        assert!(whole.ends_with(&format!("\n--{boundary}--\n")), "{whole}");
        assert_eq!(taken(&whole), Format::Plain(Sort::Mime));
    }
}

#[test]
fn an_archive_is_a_part_as_it_stands() {
    let own =
        "Content-Type: multipart/mixed; boundary=\"x\"\nMIME-version: 1.0\n\n--x\n\nhello\n--x--\n";
    let whole = text(Some(own), &key());
    assert!(whole.contains(&format!("\n{own}\n--")), "{whole}");
    assert_eq!(taken(&whole), Format::Plain(Sort::Mime));
}

#[test]
fn what_came_compressed_is_opened_and_goes_compressed() {
    let own = "#cloud-config\nruncmd: [ls]\n";
    let data = UserData::new(packed(own)).unwrap();
    let whole = assemble(Some(&data), &key()).unwrap().unwrap();
    assert_eq!(taken(whole.as_bytes()), Format::Gzip(Sort::Mime));
    let inflated = gzip::inflate(whole.as_bytes()).unwrap();
    assert_eq!(inflated, text(Some(own), &key()).into_bytes());
    assert_eq!(assemble(Some(&data), &key()), Ok(Some(whole)));
}

#[test]
fn what_a_reader_of_mail_would_change_is_encoded() {
    // The end of the line before a boundary goes with the boundary, and a carriage return with it.
    for own in [
        "#!/bin/sh\r",
        "#!/bin/sh\n\u{e9}",
        "#!/bin/sh\n\0",
        "#!/bin/sh\n\x7f",
    ] {
        let whole = text(Some(own), &key());
        let head =
            "\nContent-Type: text/x-shellscript\nContent-Transfer-Encoding: base64\n\nIyEvYmluL3No";
        assert!(whole.contains(head), "{whole}");
    }
}

#[test]
fn plain_text_grows_by_no_more_than_what_is_added() {
    let own = format!("#!/bin/sh\n{}", "echo hello\n".repeat(1000));
    assert!(text(Some(&own), &key()).len() < own.len() + 600);
    assert!(text(Some(&own), &authority(key())).len() < own.len() + 1600);
}

#[test]
fn the_most_that_is_taken_is_assembled_within_the_limit() {
    let plain = format!("{:\u{e9}<1$}", "#!/bin/sh\n", MAX_USER_DATA_BYTES / 2 + 5);
    assert_eq!(plain.len(), MAX_USER_DATA_BYTES);
    let own = UserData::new(plain).unwrap();
    let whole = assemble(Some(&own), &Managed::largest()).unwrap().unwrap();
    assert!(whole.as_bytes().len() <= MAX_ASSEMBLED_BYTES);
    assert!(authority(key()).cloud_config().len() < Managed::largest().cloud_config().len());
}

#[test]
fn what_is_not_taken_is_not_assembled() {
    let own = UserData::new("#cloud-config\nruncmd:\n").unwrap();
    let error = assemble(Some(&own), &key()).unwrap_err();
    assert_eq!(Err(error), check(own.as_bytes(), Mode::Merged));
    assert!(matches!(
        error,
        BadUserData::NotAppendable { key: "runcmd" }
    ));
    let large = UserData::new(vec![b'#'; MAX_USER_DATA_BYTES + 1]).unwrap();
    let error = assemble(Some(&large), &key()).unwrap_err();
    assert_eq!(Err(error), check(large.as_bytes(), Mode::Merged));
}

#[test]
fn nothing_is_shown() {
    let shown = format!("{:?}", authority(key()));
    assert!(
        shown.contains("Merged") && !shown.contains("AAAA"),
        "{shown}"
    );
}
