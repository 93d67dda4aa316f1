//! The tokens of a filter: brackets, operators, words, quoted texts.
//!
//! Which characters belong to a word depends on the token before it, because regular expressions
//! contain brackets and operators.

/// A token of a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// `(`
    Open,
    /// `)`
    Close,
    /// `-` before a term, which negates it.
    Minus,
    /// `=`, `!=`, `<`, `<=`, `>`, `>=` or `:`.
    Operator(&'static str),
    /// A word without quotation marks: a field, a keyword or a value.
    Plain(String),
    /// A text in single or double quotation marks, without them.
    Quoted(String),
}

/// The operators, longer ones before their prefixes.
const OPERATORS: [&str; 7] = ["!=", "<=", ">=", "=", "<", ">", ":"];

/// Splits a filter into tokens.
///
/// # Errors
///
/// A quotation mark that is not closed.
pub(super) fn tokenize(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (token, length) = match first {
            '(' => (Token::Open, 1),
            ')' => (Token::Close, 1),
            '-' if is_term_start(&tokens) => (Token::Minus, 1),
            '"' | '\'' => quoted(rest, first, expects_regex(&tokens))?,
            _ => match OPERATORS
                .into_iter()
                .find(|operator| rest.starts_with(operator))
            {
                Some(operator) => (Token::Operator(operator), operator.len()),
                None => plain(rest, &tokens),
            },
        };
        tokens.push(token);
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

/// Returns whether a minus here negates a term, instead of being part of a value.
fn is_term_start(tokens: &[Token]) -> bool {
    match tokens.last() {
        None | Some(Token::Open | Token::Minus) => true,
        Some(Token::Plain(token)) => !is_regex_operator(token),
        Some(Token::Close | Token::Quoted(_)) => true,
        Some(Token::Operator(_)) => false,
    }
}

/// Returns whether a word is `eq` or `ne`, after which a regular expression comes.
pub(super) fn is_regex_operator(token: &str) -> bool {
    matches!(token, "eq" | "ne")
}

/// Returns whether a regular expression comes next.
fn expects_regex(tokens: &[Token]) -> bool {
    matches!(tokens.last(), Some(Token::Plain(token)) if is_regex_operator(token))
}

/// Returns a text in quotation marks and its length in bytes with the marks.
///
/// A backslash makes the next character plain. In a regular expression the backslash stays, except
/// before a quotation mark.
///
/// # Errors
///
/// The closing mark is missing.
fn quoted(rest: &str, quote: char, regular: bool) -> Result<(Token, usize), String> {
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
            c if c == quote => return Ok((Token::Quoted(text), at + c.len_utf8())),
            c => text.push(c),
        }
    }
    Err("A quotation mark is missing.".to_owned())
}

/// Returns a word without quotation marks and its length in bytes.
///
/// A regular expression continues over operators, and over brackets that it opened itself.
fn plain(rest: &str, tokens: &[Token]) -> (Token, usize) {
    let regular = expects_regex(tokens);
    let value = matches!(tokens.last(), Some(Token::Operator(_)));
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
    (Token::Plain(rest[..length].to_owned()), length)
}
