//! How the public half of a server's key comes onto its machine: with the launch, in its user data.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use fleetwright::{InvalidValue, UserData};
use uuid::Uuid;

/// What compressed data begin with.
const GZIP: &[u8] = &[0x1f, 0x8b];
/// How far cloud-init looks for the header of an archive.
const SNIFFED: usize = 4096;
/// How long a line of an encoded part is.
const LINE: usize = 76;

/// The user data of a launch that puts a public key onto the machine of a server, and beside it does what the tenant's own user
/// data asks for. Understood by cloud-init, in whose formats it is written. The same arguments give the same bytes.
///
/// Without user data of the tenant it is a cloud-config. Otherwise it is a MIME archive of the tenant's part, of whatever
/// sort it is, and a cloud-config whose keys are added to those that the tenant's own may list. One sort is lost on
/// cloud-init: a MIME archive of the tenant's that is compressed, which must come uncompressed.
pub fn with_public_key(
    server: Uuid,
    public_key: &str,
    own: Option<&UserData>,
) -> Result<UserData, InvalidValue> {
    let config = format!("#cloud-config\nssh_authorized_keys:\n  - {public_key}\n");
    let Some(own) = own else {
        return UserData::new(config);
    };
    let boundary = Uuid::new_v5(&server, own.as_bytes()).simple();
    let mut whole = format!(
        "Content-Type: multipart/mixed; boundary=\"{boundary}\"\nMIME-Version: 1.0\n\n--{boundary}\n"
    )
    .into_bytes();
    let bytes = own.as_bytes();
    // Of these types cloud-init finds out itself what it is, as it does for user data that come alone.
    let sort = if bytes.starts_with(GZIP) {
        "application/gzip"
    } else {
        "text/plain"
    };
    if is_mime(bytes) {
        // It has its own headers, and is a part as it stands.
        whole.extend_from_slice(bytes);
    } else if bytes.iter().all(is_plain) {
        // As it is: clouds take little user data, and an encoding makes it longer by a third.
        whole.extend_from_slice(format!("Content-Type: {sort}\n\n").as_bytes());
        whole.extend_from_slice(bytes);
    } else {
        let headers = format!("Content-Type: {sort}\nContent-Transfer-Encoding: base64\n\n");
        whole.extend_from_slice(headers.as_bytes());
        for line in STANDARD.encode(bytes).as_bytes().chunks(LINE) {
            whole.extend_from_slice(line);
            whole.push(b'\n');
        }
    }
    let merge = "merge_how:\n  - name: list\n    settings: [append]\n  - name: dict\n    settings: [no_replace, recurse_list]\n";
    let last = format!(
        "\n--{boundary}\nContent-Type: text/cloud-config\n\n{config}{merge}\n--{boundary}--\n"
    );
    whole.extend_from_slice(last.as_bytes());
    UserData::new(whole)
}

/// Whether a byte comes through a reader of mail as it is.
fn is_plain(byte: &u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\n' | b'\t')
}

/// Whether data is a MIME archive: text that begins with a header, and says so where cloud-init looks for it.
fn is_mime(data: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(data) else {
        return false;
    };
    let first = text.split(':').next().unwrap_or_default();
    let is_header = first.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    let looked_at = data.get(..SNIFFED).unwrap_or(data).to_ascii_lowercase();
    let says_so = b"mime-version:";
    is_header
        && looked_at
            .windows(says_so.len())
            .any(|found| found == says_so)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KEY: &str = "ssh-ed25519 AAAA server-1";

    fn text(own: Option<&str>) -> String {
        let own = own.map(|own| UserData::new(own).unwrap());
        let made = with_public_key(Uuid::from_u128(1), KEY, own.as_ref()).unwrap();
        String::from_utf8(made.as_bytes().to_vec()).unwrap()
    }

    #[test]
    fn a_key_alone_is_a_cloud_config() {
        assert_eq!(
            text(None),
            "#cloud-config\nssh_authorized_keys:\n  - ssh-ed25519 AAAA server-1\n"
        );
    }

    /// The tenant's part, as a reader of mail takes it out.
    fn own_part(whole: &str) -> Vec<u8> {
        let boundary = whole.split('"').nth(1).unwrap();
        let parts: Vec<_> = whole.split(&format!("--{boundary}")).collect();
        assert_eq!((parts.len(), parts[3]), (4, "--\n"));
        assert!(parts[2].contains(KEY));
        // The line's end before a boundary is the boundary's.
        let part = parts[1].strip_suffix('\n').unwrap();
        let (headers, body) = part.split_once("\n\n").unwrap();
        if headers.contains("base64") {
            let body: String = body.split_whitespace().collect();
            return STANDARD.decode(body).unwrap();
        }
        body.as_bytes().to_vec()
    }

    #[test]
    fn the_tenants_user_data_comes_first_and_as_it_was() {
        for own in ["#!/bin/sh\necho hello\n", "#!/bin/sh\necho h\u{e9}\r\n"] {
            let both = text(Some(own));
            assert!(both.starts_with("Content-Type: multipart/mixed; boundary=\""));
            assert_eq!(own_part(&both), own.as_bytes());
            let ours = both.find(KEY).unwrap();
            assert!(both.find("Content-Type: text/plain\n").unwrap() < ours);
            assert!(both.contains("merge_how:"), "{both}");
        }
        let nested = "Content-Type: multipart/mixed; boundary=\"x\"\nMIME-version: 1.0\n\n--x\n\nhello\n--x--\n";
        let both = text(Some(nested));
        assert!(both.contains(&format!("\n{nested}\n--")), "{both}");
        let mentions = "#!/bin/sh\necho MIME-Version: 1.0\n";
        assert_eq!(own_part(&text(Some(mentions))), mentions.as_bytes());
    }

    #[test]
    fn plain_text_grows_by_no_more_than_what_is_added() {
        let own = format!("#!/bin/sh\n{}", "echo hello\n".repeat(1000));
        assert!(text(Some(&own)).len() < own.len() + 600);
    }

    #[test]
    fn what_is_compressed_says_so() {
        let own = UserData::new([0x1f, 0x8b, 8, 0]).unwrap();
        let made = with_public_key(Uuid::from_u128(1), KEY, Some(&own)).unwrap();
        let made = std::str::from_utf8(made.as_bytes()).unwrap();
        assert!(made.contains("Content-Type: application/gzip\n"), "{made}");
        assert_eq!(own_part(made), own.as_bytes());
    }

    proptest! {
        #[test]
        fn any_user_data_is_found_again_in_the_archive(
            own in prop_oneof![
                prop::collection::vec(any::<u8>(), 1..2000),
                "[ -~\t\n]{1,400}".prop_map(String::into_bytes),
            ],
        ) {
            prop_assume!(!is_mime(&own));
            let data = UserData::new(&own).unwrap();
            let made = with_public_key(Uuid::from_u128(1), KEY, Some(&data)).unwrap();
            let made = std::str::from_utf8(made.as_bytes()).unwrap();
            prop_assert_eq!(own_part(made), own);
        }
    }
}
