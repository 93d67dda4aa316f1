//! The words of a filter.

/// A word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Word {
    Open,
    Close,
    Minus,
    /// `=`, `!=`, `<`, `<=`, `>`, `>=`, `:`
    Sign(&'static str),
    Plain(String),
    Quoted(String),
}

const SIGNS: [&str; 7] = ["!=", "<=", ">=", "=", "<", ">", ":"];

/// Takes a filter apart.
pub(super) fn words(text: &str) -> Result<Vec<Word>, String> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (word, length) = match first {
            '(' => (Word::Open, 1),
            ')' => (Word::Close, 1),
            '-' if begins_term(&words) => (Word::Minus, 1),
            '"' | '\'' => quoted(rest, first, comes_regular(&words))?,
            _ => match SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
                Some(sign) => (Word::Sign(sign), sign.len()),
                None => plain(rest, &words),
            },
        };
        words.push(word);
        rest = rest[length..].trim_start();
    }
    Ok(words)
}

/// Whether a minus here would stand before a comparison, and not in a value.
fn begins_term(words: &[Word]) -> bool {
    match words.last() {
        None | Some(Word::Open | Word::Minus) => true,
        Some(Word::Plain(word)) => !is_regular(word),
        Some(Word::Close | Word::Quoted(_)) => true,
        Some(Word::Sign(_)) => false,
    }
}

/// Whether a word is one of the two after which a regular expression comes.
pub(super) fn is_regular(word: &str) -> bool {
    matches!(word, "eq" | "ne")
}

/// Whether a regular expression comes next.
fn comes_regular(words: &[Word]) -> bool {
    matches!(words.last(), Some(Word::Plain(word)) if is_regular(word))
}

/// A word in quotation marks. A backslash makes the next character plain; in a regular expression
/// it is the expression's own, but before a quotation mark.
fn quoted(rest: &str, quote: char, regular: bool) -> Result<(Word, usize), String> {
    let mut text = String::new();
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            c if escaped => {
                if regular && c != quote {
                    text.push('\\');
                }
                text.push(c);
                escaped = false;
            }
            '\\' => escaped = true,
            c if c == quote => return Ok((Word::Quoted(text), at + c.len_utf8())),
            c => text.push(c),
        }
    }
    Err("A quotation mark is missing.".to_owned())
}

/// A word without quotation marks. A regular expression goes on over signs, and over brackets that
/// it opened itself.
fn plain(rest: &str, words: &[Word]) -> (Word, usize) {
    let regular = comes_regular(words);
    let value = matches!(words.last(), Some(Word::Sign(_)));
    let mut depth = 0_u32;
    let ends = |c: char| {
        if c.is_whitespace() {
            return true;
        }
        match c {
            '(' if regular => depth += 1,
            ')' if regular && depth > 0 => depth -= 1,
            '(' | ')' => return true,
            '=' | '!' | '<' | '>' | ':' => return !(regular || value && c == ':'),
            _ => {}
        }
        false
    };
    let first = rest.chars().next().map_or(0, char::len_utf8);
    let length = rest.find(ends).unwrap_or(rest.len()).max(first);
    (Word::Plain(rest[..length].to_owned()), length)
}
