mod archives;
mod assembled;
mod formats;
mod property;

use super::*;

/// Returns the message of the error, after checking that it is one line and shows nothing of the user data.
fn refusal(bytes: impl AsRef<[u8]>, mode: Mode) -> String {
    let error = check(bytes.as_ref(), mode).unwrap_err();
    let message = error.to_string();
    assert!(
        !message.contains('\n') && message.contains(": "),
        "{message}"
    );
    assert!(!message.contains("hunter2") && !format!("{error:?}").contains("hunter2"));
    message
}

/// Returns the format of user data that is accepted in both modes.
fn accepted(bytes: impl AsRef<[u8]>) -> Format {
    let [alone, merged] = [Mode::Alone, Mode::Merged].map(|mode| check(bytes.as_ref(), mode));
    assert_eq!(alone, merged);
    alone.unwrap()
}

fn compress(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    gzip::deflate(bytes.as_ref()).unwrap()
}
