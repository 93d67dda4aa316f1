//! Messages are in plain words: they contain no debug output of Rust values, which people who implement a
//! backend in another language cannot read.

/// Returns the debug output in a message, from its begin to the end of the line.
///
/// It is recognized by what plain text does not contain: a name in capitals and small letters directly
/// before a parenthesis or before the brace of a struct, `None`, and brackets that begin with a string or
/// a name. A quoted string alone is no debug output.
pub(crate) fn debug_output(message: &str) -> Option<&str> {
    message.lines().find_map(|line| {
        let mut begins = line.char_indices().map(|(at, _)| at);
        let at = begins.find(|at| begins_debug_output(&line[..*at], &line[*at..]))?;
        Some(&line[at..])
    })
}

fn begins_debug_output(before: &str, rest: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    if before.ends_with(part) {
        return ["(\"", "({", "(["].iter().any(|one| rest.starts_with(one));
    }
    if let Some(inner) = rest.strip_prefix(['[', '{', '(']) {
        let (first, after) = inner.split_at(inner.find(|c| !part(c)).unwrap_or(inner.len()));
        // A native code in parentheses is plain text.
        let is_tuple = rest.starts_with('(');
        return is_name(first) && (!is_tuple || after.starts_with(", "))
            || !is_tuple && inner.starts_with(['"', '(']);
    }
    let (name, after) = rest.split_at(rest.find(|c| !part(c)).unwrap_or(rest.len()));
    name == "None" || is_name(name) && (after.starts_with('(') || after.starts_with(" { "))
}

/// Returns whether a word is written as Rust writes the names of types and variants.
fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_uppercase())
        && word.contains(|c: char| c.is_ascii_lowercase())
}

#[test]
fn debug_output_is_recognized() {
    for (text, found) in [
        ("got Some(7)", Some("Some(7)")),
        ("it has None since", Some("None since")),
        ("a\nfound InstanceId(\"i-1\")", Some("InstanceId(\"i-1\")")),
        ("tags Tags({})", Some("Tags({})")),
        ("with Placement { zone: x }", Some("Placement { zone: x }")),
        ("in [Running, Stopped]", Some("[Running, Stopped]")),
        ("as (Stopped, 7)", Some("(Stopped, 7)")),
        ("names [\"a\"]", Some("[\"a\"]")),
        ("fails late(\"Code\")", Some("(\"Code\")")),
        ("the value \"a b\" (\"c\") is none", None),
        ("list(of this) fails [no effect, request req-1]", None),
        ("fails late (NoMachine), as {scope}", None),
        ("Nonetheless, it is TERMINATE-01 (seed 7)", None),
    ] {
        assert_eq!(debug_output(text), found, "{text}");
    }
}
