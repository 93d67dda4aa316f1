//! Writing a record without losing what a newer version put into it.
//!
//! Owns the merge of three forms of a record: `raw`, as it is stored; `known`, what this version
//! understands of it; and `new`, what this version wants to store. What `raw` has beyond `known` is
//! unknown and stays. It never interprets a value and never looks at a type.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// The names of members that identify an item of a list, in the order in which they are tried.
const IDENTITIES: [&str; 4] = ["id", "kind", "name", "key"];

/// Items of lists that this version does not understand and that are therefore not in `known`.
///
/// Each is the JSON pointer of the list, and the item's position there.
pub(super) type Skipped = BTreeSet<(String, usize)>;

/// What is known of the lists of a type.
#[derive(Clone, Copy)]
pub(super) struct Lists<'a> {
    /// The JSON pointers of histories. Their items are never changed, so that no item is another one
    /// in a new state.
    pub(super) inert: &'a [&'a str],
    /// The items that are not in `known`.
    pub(super) skipped: &'a Skipped,
}

/// Returns `new` together with everything in `raw` that is not in `known`.
///
/// - A part that is the same in `known` and `new` stays as it is in `raw`.
/// - A member of an object stays if `known` does not have it, and is removed if only `new` does not
///   have it.
/// - An item of a list keeps its unknown members as long as the same item, or one with the same
///   identity, is in `new`. A skipped item stays behind the item that it follows in `raw`.
pub(super) fn merge(raw: &Value, known: &Value, new: Value, lists: Lists<'_>) -> Value {
    merge_at(&mut String::new(), raw, known, new, lists)
}

fn merge_at(path: &mut String, raw: &Value, known: &Value, new: Value, lists: Lists<'_>) -> Value {
    if *known == new {
        return raw.clone();
    }
    match (raw, known, new) {
        (Value::Object(raw), Value::Object(known), Value::Object(new)) => {
            Value::Object(merge_objects(path, raw, known, new, lists))
        }
        (Value::Array(raw), Value::Array(known), Value::Array(new)) => {
            Value::Array(merge_arrays(path, raw, known, new, lists))
        }
        (_, _, new) => new,
    }
}

fn merge_objects(
    path: &mut String,
    raw: &Map<String, Value>,
    known: &Map<String, Value>,
    new: Map<String, Value>,
    lists: Lists<'_>,
) -> Map<String, Value> {
    let is_unknown = |name: &String| !known.contains_key(name) && !new.contains_key(name);
    let unknown = raw.iter().filter(|(name, _)| is_unknown(name));
    let unknown: Vec<_> = unknown
        .map(|(name, kept)| (name.clone(), kept.clone()))
        .collect();
    let mut merged = Map::new();
    for (name, new) in new {
        let value = match (raw.get(&name), known.get(&name)) {
            (Some(raw), Some(known)) => {
                let length = path.len();
                push(path, &name);
                let value = merge_at(path, raw, known, new, lists);
                path.truncate(length);
                value
            }
            // A value that `known` leaves out is absent or empty there: `new` decides.
            (Some(_) | None, Some(_) | None) => new,
        };
        merged.insert(name, value);
    }
    merged.extend(unknown);
    merged
}

/// Adds a member to a JSON pointer.
pub(super) fn push(path: &mut String, name: &str) {
    path.push('/');
    path.push_str(&name.replace('~', "~0").replace('/', "~1"));
}

fn merge_arrays(
    path: &mut String,
    raw: &[Value],
    known: &[Value],
    new: Vec<Value>,
    lists: Lists<'_>,
) -> Vec<Value> {
    let is_skipped = |at: usize| lists.skipped.contains(&(path.clone(), at));
    let unread: Vec<_> = (0..raw.len()).filter(|at| is_skipped(*at)).collect();
    let raw_of = positions(raw, known, &unread);
    let is_history = lists.inert.contains(&path.as_str());
    let sources = sources(known, &new, is_history).into_iter();
    let sources: Vec<_> = sources
        .map(|source| source.and_then(|at| Some((&known[at], raw_of[at]?))))
        .collect();
    let kept: BTreeSet<_> = sources.iter().flatten().map(|(_, at)| *at).collect();
    // A skipped item follows the last item before it that stays, or begins the list.
    let leader = |at: usize| kept.range(..at).next_back().copied();
    let after = |led_by: Option<usize>| {
        let unread = unread.iter().filter(move |at| leader(**at) == led_by);
        unread.map(|at| raw[*at].clone())
    };
    let mut merged: Vec<Value> = after(None).collect();
    for (new, source) in new.into_iter().zip(sources) {
        let Some((known, at)) = source else {
            merged.push(new);
            continue;
        };
        let length = path.len();
        push(path, &at.to_string());
        merged.push(merge_at(path, &raw[at], known, new, lists));
        path.truncate(length);
        merged.extend(after(Some(at)));
    }
    merged
}

/// Returns, for each item of `known`, the position of the item of `raw` that it was read from.
fn positions(raw: &[Value], known: &[Value], unread: &[usize]) -> Vec<Option<usize>> {
    let read = (0..raw.len()).filter(|at| !unread.contains(at));
    let read: Vec<_> = read.collect();
    let is_read_as =
        |at: usize, known: &Value| (raw[at].is_object() && known.is_object()) || raw[at] == *known;
    let mut pairs = read.iter().zip(known);
    if read.len() == known.len() && pairs.all(|(at, known)| is_read_as(*at, known)) {
        return read.into_iter().map(Some).collect();
    }
    // A set that was stored in another order.
    let same = |known: &Value| read.iter().copied().find(|at| raw[*at] == *known);
    known.iter().map(same).collect()
}

/// Returns, for each item of `new`, the position of the item of `known` that it continues: an equal
/// one, or else one with the same identity, except in a history. No item is continued twice.
fn sources(known: &[Value], new: &[Value], is_history: bool) -> Vec<Option<usize>> {
    let mut is_used = vec![false; known.len()];
    let mut find = |from: usize, is_source: &dyn Fn(&Value) -> bool| {
        let order = (from..known.len()).chain(0..from.min(known.len()));
        let mut free = order.filter(|at| !is_used[*at]);
        let found = free.find(|at| is_source(&known[*at]));
        if let Some(at) = found {
            is_used[at] = true;
        }
        found
    };
    let mut from = 0;
    let mut sources = Vec::with_capacity(new.len());
    for item in new {
        let found = find(from, &|known| known == item);
        from = found.map_or(from, |at| at + 1);
        sources.push(found);
    }
    for (item, source) in new.iter().zip(&mut sources) {
        if source.is_none() && !is_history {
            *source = find(0, &|known| has_same_identity(known, item));
        }
    }
    sources
}

/// Returns whether two items of a list are the same thing in two states.
fn has_same_identity(one: &Value, other: &Value) -> bool {
    let (Value::Object(one), Value::Object(other)) = (one, other) else {
        return false;
    };
    let identity = IDENTITIES.iter().find(|name| one.contains_key(**name));
    identity.is_some_and(|name| one.get(*name) == other.get(*name))
}
