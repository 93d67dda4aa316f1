//! Checks that a MIME archive is complete, including the archives nested in it, as the MIME parser of cloud-init sees it.
//!
//! Owns the recognition of messages, their headers and their boundaries. It never changes the text and does not check the content of
//! parts: cloud-init ignores a part that it does not support, and applies the others.

use crate::UserDataError;

/// How many bytes cloud-init searches for the header that makes a text a message.
const SEARCHED_BYTES: usize = 4096;
/// How deep archives may be nested.
const MAX_DEPTH: usize = 8;

/// Returns whether a text starts with headers that make it a message: cloud-init treats it as one if it has a MIME-Version, and a
/// text with the content type of an archive was meant to be one.
pub(crate) fn is_message(text: &str) -> bool {
    let first = Lines(text).next().unwrap_or_default();
    if has_mime_version(text) {
        // A MIME parser reads a first line with leading white space as the rest of a header.
        return is_header(first) || first.starts_with([' ', '\t']);
    }
    let headers = Headers::read(&mut Lines(text));
    let content_type = headers.value("content-type");
    content_type.is_some_and(|content_type| is_multipart(&content_type))
}

/// Checks that a message is a complete archive that cloud-init opens.
///
/// # Errors
///
/// It has no MIME-Version, has characters beyond ASCII (cloud-init changes them), is not a multipart message, or one of its archives has
/// no boundary, no part or no end, or is nested too deeply.
pub(crate) fn check(text: &str) -> Result<(), UserDataError> {
    if !has_mime_version(text) {
        return Err(UserDataError::NoMimeVersion);
    }
    if !text.is_ascii() {
        return Err(UserDataError::NotAscii);
    }
    let mut lines = Lines(text);
    let headers = Headers::read(&mut lines);
    let content_type = headers.value("content-type").unwrap_or_default();
    if !is_multipart(&content_type) {
        return Err(UserDataError::NotMultipart);
    }
    check_archive(&content_type, &mut lines, &mut Vec::new())
}

/// Reads an archive to its end.
///
/// `outer` has the boundaries of the archives that it is nested in: a delimiter of one of them ends the inner archive early, which is an
/// error.
fn check_archive(
    content_type: &str,
    lines: &mut Lines<'_>,
    outer: &mut Vec<String>,
) -> Result<(), UserDataError> {
    if outer.len() >= MAX_DEPTH {
        return Err(UserDataError::TooDeep { limit: MAX_DEPTH });
    }
    let boundary = boundary(content_type).ok_or(UserDataError::NoBoundary)?;
    let mut parts = 0_usize;
    while let Some(line) = lines.peek() {
        match Delimiter::of(line, &boundary) {
            // A delimiter of an outer archive: this archive has no end.
            None if outer
                .iter()
                .any(|other| Delimiter::of(line, other).is_some()) =>
            {
                break;
            }
            None => lines.skip(),
            Some(Delimiter::End) if parts == 0 => return Err(UserDataError::NoPart),
            Some(Delimiter::End) => {
                lines.skip();
                return Ok(());
            }
            Some(Delimiter::Part) => {
                lines.skip();
                parts += 1;
                let headers = Headers::read(lines);
                let content_type = headers.value("content-type").unwrap_or_default();
                if is_multipart(&content_type) {
                    outer.push(boundary.clone());
                    check_archive(&content_type, lines, outer)?;
                    outer.pop();
                }
            }
        }
    }
    Err(if parts == 0 {
        UserDataError::NoPart
    } else {
        UserDataError::CutOff
    })
}

/// The meaning of a line that starts with a boundary.
enum Delimiter {
    /// `--boundary`: a part starts.
    Part,
    /// `--boundary--`: the archive ends.
    End,
}

impl Delimiter {
    /// Returns what the line delimits, or `None` if it is not a delimiter of this boundary. Trailing blanks are allowed.
    fn of(line: &str, boundary: &str) -> Option<Self> {
        let rest = line.strip_prefix("--")?.strip_prefix(boundary)?;
        let rest = rest.trim_end_matches([' ', '\t']);
        match rest {
            "" => Some(Self::Part),
            "--" => Some(Self::End),
            _ => None,
        }
    }
}

/// The remaining lines of a text, without their line ends, which may be of any style.
struct Lines<'a>(&'a str);

impl<'a> Lines<'a> {
    /// Splits off the first line. The rest starts after its line end: `\n`, `\r\n` or `\r`.
    fn split(&self) -> Option<(&'a str, &'a str)> {
        if self.0.is_empty() {
            return None;
        }
        let Some(end) = self.0.find(['\r', '\n']) else {
            return Some((self.0, ""));
        };
        let (line, rest) = self.0.split_at(end);
        let rest = rest.strip_prefix("\r\n").unwrap_or(rest.get(1..)?);
        Some((line, rest))
    }

    /// Returns the next line without consuming it.
    fn peek(&self) -> Option<&'a str> {
        self.split().map(|(line, _)| line)
    }

    /// Consumes the next line.
    fn skip(&mut self) {
        self.next();
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = &'a str;
    fn next(&mut self) -> Option<&'a str> {
        let (line, rest) = self.split()?;
        self.0 = rest;
        Some(line)
    }
}

/// The headers of a message or a part, with lower-case names and unfolded values.
struct Headers(Vec<(String, String)>);

impl Headers {
    /// Reads headers and the empty line after them. A line that is not a header ends them and is not consumed.
    fn read(lines: &mut Lines<'_>) -> Self {
        let mut found: Vec<(String, String)> = Vec::new();
        while let Some(line) = lines.peek() {
            if line.is_empty() {
                lines.skip();
                break;
            }
            if line.starts_with([' ', '\t']) {
                let Some((_, value)) = found.last_mut() else {
                    break;
                };
                value.push(' ');
                value.push_str(line.trim());
            } else if let (true, Some((name, value))) = (is_header(line), line.split_once(':')) {
                found.push((name.to_ascii_lowercase(), value.trim().to_owned()));
            } else {
                break;
            }
            lines.skip();
        }
        Self(found)
    }

    /// Returns the value of the first header of this name. Parsers use the first one.
    fn value(&self, name: &str) -> Option<String> {
        let found = self.0.iter().find(|(found, _)| found == name);
        found.map(|(_, value)| value.clone())
    }
}

/// Returns whether a line starts like a header: with a name without white space, and a colon.
fn is_header(line: &str) -> bool {
    line.split_once(':')
        .is_some_and(|(name, _)| name.bytes().all(|byte| byte.is_ascii_graphic()))
}

/// Returns whether the header `MIME-Version` is in the part of the text that cloud-init searches, in any case.
fn has_mime_version(text: &str) -> bool {
    let searched = text.as_bytes();
    let searched = searched.get(..SEARCHED_BYTES).unwrap_or(searched);
    let header = b"mime-version:";
    searched
        .windows(header.len())
        .any(|found| found.eq_ignore_ascii_case(header))
}

/// Returns whether a content type is `multipart/…`.
fn is_multipart(content_type: &str) -> bool {
    let kind = content_type.split(';').next().unwrap_or_default().trim();
    let main = kind.split_once('/').map(|(main, _)| main.trim());
    main.is_some_and(|main| main.eq_ignore_ascii_case("multipart"))
}

/// Returns the boundary in the content type of an archive.
fn boundary(content_type: &str) -> Option<String> {
    let boundary = parameters(content_type).into_iter().find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let is_boundary = name.trim().eq_ignore_ascii_case("boundary");
        is_boundary.then(|| unquote(value.trim()))
    })?;
    let boundary = boundary.trim_end();
    (!boundary.is_empty()).then(|| boundary.to_owned())
}

/// Splits a content type at the semicolons that are not in quotes.
fn parameters(content_type: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let (mut quoted, mut escaped) = (false, false);
    for c in content_type.chars() {
        if c == ';' && !quoted {
            found.push(String::new());
            continue;
        }
        quoted ^= c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        if let Some(last) = found.last_mut() {
            last.push(c);
        }
    }
    found
}

/// Removes the quotes of a parameter value and resolves its escapes.
fn unquote(value: &str) -> String {
    let inner = value
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    match inner {
        Some(inner) => inner.replace("\\\\", "\\").replace("\\\"", "\""),
        None => value.to_owned(),
    }
}
