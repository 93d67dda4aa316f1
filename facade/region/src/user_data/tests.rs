mod any;
mod archives;
mod assembled;
mod formats;

use super::*;

/// What a message says of what is not taken. One line, without a word of what was sent.
fn refused(bytes: impl AsRef<[u8]>, mode: Mode) -> String {
    let error = check(bytes.as_ref(), mode).unwrap_err();
    let said = error.to_string();
    assert!(!said.contains('\n') && said.contains(": "), "{said}");
    assert!(!said.contains("hunter2") && !format!("{error:?}").contains("hunter2"));
    said
}

/// What is taken, in both modes.
fn taken(bytes: impl AsRef<[u8]>) -> Format {
    let [alone, merged] = [Mode::Alone, Mode::Merged].map(|mode| check(bytes.as_ref(), mode));
    assert_eq!(alone, merged);
    alone.unwrap()
}

fn packed(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    gzip::deflate(bytes.as_ref()).unwrap()
}
