//! Consent to what loses data: asked for on a terminal, required as an argument elsewhere.

use std::io::{self, BufRead, IsTerminal as _, Write as _};

use crate::failure::{Code, Failure};

/// Returns if the caller agrees: by `given`, or by an answer on the terminal. `flag` is the argument that agrees.
pub(crate) fn agreed(
    given: bool,
    question: &str,
    flag: &str,
    without: Code,
) -> Result<(), Failure> {
    if given {
        return Ok(());
    }
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        let message =
            format!("{question}: nobody can be asked without a terminal, and nothing was changed");
        return Err(
            Failure::new(without, message).advice(format!("repeat the command with {flag}"))
        );
    }
    let question = crate::output::printable(question);
    let mut out = io::stderr().lock();
    write!(out, "{question}? [y/N] ").and_then(|()| out.flush())?;
    answer(&mut io::stdin().lock())
}

fn answer(input: &mut impl BufRead) -> Result<(), Failure> {
    let mut line = String::new();
    let read = input.read_line(&mut line);
    read.map_err(|error| Failure::other(format!("the answer cannot be read: {error}")))?;
    match line.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::other("not confirmed, and nothing was changed")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_yes_is_yes() {
        for (text, expected) in [
            ("y\n", true),
            (" YES \n", true),
            ("n\n", false),
            ("\n", false),
            ("", false),
            ("yeah\n", false),
        ] {
            assert_eq!(answer(&mut text.as_bytes()).is_ok(), expected, "{text:?}");
        }
        assert!(agreed(true, "delete", "--yes", Code::Usage).is_ok());
    }
}
