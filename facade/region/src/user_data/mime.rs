//! The shape of MIME archives, as cloud-init's reader of mail sees it: that they are whole, down to the last archive in them.

use super::BadUserData;

/// How far cloud-init looks for the header that makes a text a message.
const LOOKED_AT: usize = 4096;
/// How many archives may be in each other.
const MAX_DEPTH: usize = 8;

/// Whether a text begins with headers that make it a message rather than what it says below them: cloud-init takes it for one if it names
/// its version of MIME, and whoever wrote the type of an archive meant one.
pub(super) fn is_message(text: &str) -> bool {
    let first = Lines(text).next().unwrap_or_default();
    if says_version(text) {
        // A first line that begins with a blank is the rest of a header to a reader of mail.
        return is_header(first) || first.starts_with([' ', '\t']);
    }
    let headers = Headers::read(&mut Lines(text));
    let of = headers.value("content-type");
    of.is_some_and(|of| is_multipart(&of))
}

/// That a message is an archive that cloud-init opens, and all of it is there.
pub(super) fn check(text: &str) -> Result<(), BadUserData> {
    if !says_version(text) {
        return Err(BadUserData::NoMimeVersion);
    }
    if !text.is_ascii() {
        return Err(BadUserData::NotAscii);
    }
    let mut lines = Lines(text);
    let headers = Headers::read(&mut lines);
    let of = headers.value("content-type").unwrap_or_default();
    if !is_multipart(&of) {
        return Err(BadUserData::NotMultipart);
    }
    archive(&of, &mut lines, &mut Vec::new())
}

/// Reads an archive to the end that its type speaks of. `around` has the boundaries of the archives that it is in.
fn archive(of: &str, lines: &mut Lines<'_>, around: &mut Vec<String>) -> Result<(), BadUserData> {
    if around.len() >= MAX_DEPTH {
        return Err(BadUserData::TooDeep { limit: MAX_DEPTH });
    }
    let boundary = boundary(of).ok_or(BadUserData::NoBoundary)?;
    let mut parts = 0_usize;
    while let Some(line) = lines.peek() {
        match Mark::of(line, &boundary) {
            // The end of the one around it: this one was not finished.
            None if around.iter().any(|other| Mark::of(line, other).is_some()) => break,
            None => lines.skip(),
            Some(Mark::End) if parts == 0 => return Err(BadUserData::NoPart),
            Some(Mark::End) => {
                lines.skip();
                return Ok(());
            }
            Some(Mark::Part) => {
                lines.skip();
                parts += 1;
                let headers = Headers::read(lines);
                let of = headers.value("content-type").unwrap_or_default();
                if is_multipart(&of) {
                    around.push(boundary.clone());
                    archive(&of, lines, around)?;
                    around.pop();
                }
            }
        }
    }
    Err(if parts == 0 {
        BadUserData::NoPart
    } else {
        BadUserData::CutOff
    })
}

/// What a line that begins with a boundary means.
enum Mark {
    Part,
    End,
}

impl Mark {
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

/// The lines that are left of a text, whichever way they end, without their ends.
struct Lines<'a>(&'a str);

impl<'a> Lines<'a> {
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

    fn peek(&self) -> Option<&'a str> {
        self.split().map(|(line, _)| line)
    }

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

/// The headers of a message or a part: names in lower case, values unfolded.
struct Headers(Vec<(String, String)>);

impl Headers {
    /// Reads headers, and the empty line after them. What is no header ends them and is left.
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

    /// The value of the first header of this name, which is the one that counts.
    fn value(&self, name: &str) -> Option<String> {
        let found = self.0.iter().find(|(found, _)| found == name);
        found.map(|(_, value)| value.clone())
    }
}

/// Whether a line begins as a header does: with a name without blanks, and a colon.
fn is_header(line: &str) -> bool {
    line.split_once(':')
        .is_some_and(|(name, _)| name.bytes().all(|byte| byte.is_ascii_graphic()))
}

fn says_version(text: &str) -> bool {
    let looked_at = text.as_bytes();
    let looked_at = looked_at.get(..LOOKED_AT).unwrap_or(looked_at);
    let header = b"mime-version:";
    looked_at
        .windows(header.len())
        .any(|found| found.eq_ignore_ascii_case(header))
}

fn is_multipart(of: &str) -> bool {
    let kind = of.split(';').next().unwrap_or_default().trim();
    let main = kind.split_once('/').map(|(main, _)| main.trim());
    main.is_some_and(|main| main.eq_ignore_ascii_case("multipart"))
}

/// The boundary in the type of an archive.
fn boundary(of: &str) -> Option<String> {
    let boundary = parameters(of).into_iter().find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let is_it = name.trim().eq_ignore_ascii_case("boundary");
        is_it.then(|| unquoted(value.trim()))
    })?;
    let boundary = boundary.trim_end();
    (!boundary.is_empty()).then(|| boundary.to_owned())
}

/// What stands between the semicolons that are not in quotes.
fn parameters(of: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let (mut quoted, mut escaped) = (false, false);
    for c in of.chars() {
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

fn unquoted(value: &str) -> String {
    let inner = value
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    match inner {
        Some(inner) => inner.replace("\\\\", "\\").replace("\\\"", "\""),
        None => value.to_owned(),
    }
}
