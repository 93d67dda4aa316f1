//! The tokens of a filter.

/// A word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Open,
    Close,
    Minus,
    /// `=`, `!=`, `<`, `<=`, `>`, `>=`, `:`
    Operator(&'static str),
    Plain(String),
    Quoted(String),
}

const OPERATORS: [&str; 7] = ["!=", "<=", ">=", "=", "<", ">", ":"];

/// Takes a filter apart.
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

/// Whether a minus here would stand before a comparison, and not in a value.
fn is_term_start(tokens: &[Token]) -> bool {
    match tokens.last() {
        None | Some(Token::Open | Token::Minus) => true,
        Some(Token::Plain(token)) => !is_regex_operator(token),
        Some(Token::Close | Token::Quoted(_)) => true,
        Some(Token::Operator(_)) => false,
    }
}

/// Whether a word is one of the two after which a regular expression comes.
pub(super) fn is_regex_operator(token: &str) -> bool {
    matches!(token, "eq" | "ne")
}

/// Whether a regular expression comes next.
fn expects_regex(tokens: &[Token]) -> bool {
    matches!(tokens.last(), Some(Token::Plain(token)) if is_regex_operator(token))
}

/// A word in quotation marks. A backslash makes the next character plain; in a regular expression
/// it is the expression's own, but before a quotation mark.
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

/// A word without quotation marks. A regular expression goes on over signs, and over brackets that
/// it opened itself.
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
