use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{
    merge::{Lists, Skipped},
    *,
};
use crate::Revision;

fn merge(raw: &Value, known: &Value, new: Value) -> Value {
    let skipped = Skipped::new();
    let lists = Lists {
        inert: &[],
        skipped: &skipped,
    };
    merge::merge(raw, known, new, lists)
}

/// JSON of any shape, small enough that equal parts are common.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..4_u8).prop_map(Value::from),
        "[a-c]".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 48, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map("[a-e]", inner, 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Adds an unknown member to every object, named after its place.
fn with_unknown(value: &Value, place: &str) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| {
                (
                    name.clone(),
                    with_unknown(value, &format!("{place}/{name}")),
                )
            });
            let mut members: Map<_, _> = members.collect();
            members.insert("unknown".to_owned(), place.into());
            Value::Object(members)
        }
        Value::Array(items) => {
            let items = items.iter().enumerate();
            let items = items.map(|(at, item)| with_unknown(item, &format!("{place}/{at}")));
            Value::Array(items.collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// Removes the unknown members.
fn without_unknown(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let known = members.iter().filter(|(name, _)| *name != "unknown");
            let known = known.map(|(name, value)| (name.clone(), without_unknown(value)));
            Value::Object(known.collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_unknown).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// Checks that every object that is at the same place before and after has its unknown member.
fn is_kept(before: &Value, after: &Value) -> bool {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            before.get("unknown") == after.get("unknown")
                && before
                    .iter()
                    .all(|(name, value)| after.get(name).is_none_or(|after| is_kept(value, after)))
        }
        // Items move, so their places say nothing.
        _ => true,
    }
}

proptest! {
    #[test]
    fn reading_what_was_merged_returns_what_was_written(known in any_json(), new in any_json()) {
        let raw = with_unknown(&known, "");
        let merged = merge(&raw, &known, new.clone());
        prop_assert_eq!(without_unknown(&merged), new);
    }

    #[test]
    fn unknown_members_stay_where_their_objects_stay(known in any_json(), new in any_json()) {
        let raw = with_unknown(&known, "");
        let merged = merge(&raw, &known, new);
        prop_assert!(is_kept(&raw, &merged), "{raw} became {merged}");
    }

    #[test]
    fn nothing_changes_if_nothing_is_changed(raw in any_json(), known in any_json()) {
        prop_assert_eq!(merge(&raw, &known, known.clone()), raw);
    }

    #[test]
    fn without_unknown_parts_the_new_value_is_written(known in any_json(), new in any_json()) {
        prop_assert_eq!(merge(&known, &known, new.clone()), new);
    }

    #[test]
    fn unknown_members_of_items_move_with_their_items(
        ids in prop::collection::btree_set(0..20_u8, 0..8),
        order in any::<prop::sample::Index>(),
        added in prop::collection::btree_set(20..30_u8, 0..4),
        dropped in 0..8_usize,
    ) {
        let item = |id: &u8, state: u8| json!({"id": id, "state": state});
        let known: Vec<_> = ids.iter().map(|id| item(id, 0)).collect();
        let raw: Vec<_> = ids.iter().map(|id| json!({"id": id, "state": 0, "unknown": id})).collect();
        let mut new: Vec<_> = ids.iter().skip(dropped).map(|id| item(id, id % 2)).collect();
        if !new.is_empty() {
            let middle = order.index(new.len());
            new.rotate_left(middle);
        }
        new.extend(added.iter().map(|id| item(id, 1)));
        let merged = merge(&json!(raw), &json!(known), json!(new));
        prop_assert_eq!(without_unknown(&merged), json!(new));
        for item in merged.as_array().unwrap() {
            let is_old = item["id"].as_u64().unwrap() < 20;
            prop_assert_eq!(item.get("unknown"), is_old.then(|| &item["id"]));
        }
    }

    #[test]
    fn items_that_are_not_understood_stay_in_order(
        kinds in prop::collection::vec(any::<bool>(), 0..12),
        dropped in 0..6_usize,
        added in 0..3_u64,
    ) {
        let event = |at: usize, is_known: bool| {
            json!({"at": at, "kind": if is_known { "created" } else { "migrated" }})
        };
        let stored: Vec<_> = kinds.iter().enumerate().map(|(at, known)| event(at, *known)).collect();
        let stored = json!({"events": stored, "color": "red"});
        let understood = understand::<Log>(&stored).ok().unwrap();
        let known: Vec<_> = kinds.iter().enumerate().filter(|(_, known)| **known).collect();
        prop_assert_eq!(understood.value.events.len(), known.len());
        let mut log = understood.value;
        log.events.drain(..dropped.min(log.events.len()));
        log.events.extend((0..added).map(|at| Event { at: 100 + at, kind: EventKind::Created }));
        let merged = written(&stored, &log);
        prop_assert_eq!(&merged["color"], "red");
        let kept: Vec<_> = merged["events"].as_array().unwrap().iter().collect();
        let unknown = |events: &[&Value]| -> Vec<Value> {
            events.iter().filter(|event| event["kind"] == "migrated").map(|event| (*event).clone()).collect()
        };
        let before: Vec<_> = stored["events"].as_array().unwrap().iter().collect();
        prop_assert_eq!(unknown(&kept), unknown(&before));
        prop_assert_eq!(understand::<Log>(&merged).ok().unwrap().value, log);
        // Events stay in the order of their dates, apart from dropped ones.
        let dates: Vec<_> = kept.iter().map(|event| event["at"].as_u64().unwrap()).collect();
        prop_assert!(dates.is_sorted(), "{dates:?}");
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Log {
    events: Vec<Event>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    power: Option<Power>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Event {
    at: u64,
    kind: EventKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum EventKind {
    Created,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Power {
    Running,
}

impl Document for Log {
    const KIND: &'static str = "log";
    const VERSION: u64 = 2;
    const INERT: &'static [&'static str] = &["/events"];
}

fn table() -> Table<Log> {
    let schema = crate::Schema::builder().kind("log").build().unwrap();
    Table::new(Arc::new(crate::MemoryStore::new(schema))).unwrap()
}

fn written(stored: &Value, log: &Log) -> Value {
    let base = Base::new(Revision(1), stored.clone());
    let key = Key::new("a").unwrap();
    table().stored_form(&key, &base, log).unwrap().into_value()
}

fn read(value: Value) -> Result<Versioned<Log>, Damaged> {
    Table::read(Record {
        id: table().id(&Key::new("a").unwrap()),
        revision: Revision(7),
        value: value.into(),
    })
}

#[test]
fn value_changed_in_place_is_written_with_its_unknown_parts() {
    let mut log = read(json!({"events": [], "power": "running", "owner": "ada"})).unwrap();
    log.value.power = None;
    let stored = table()
        .stored_form(&log.key, &log.base(), &log.value)
        .unwrap();
    assert_eq!(stored, json!({"events": [], "owner": "ada", "version": 2}));
}

#[test]
fn version_grows_and_the_requirements_of_a_newer_version_stay() {
    let log = Log {
        events: Vec::new(),
        power: None,
    };
    let stamp = |stored: Value| {
        let stored = written(&stored, &log);
        (stored["version"].clone(), stored.get("min_reader").cloned())
    };
    assert_eq!(stamp(json!({"events": []})), (json!(2), None));
    assert_eq!(stamp(json!({"events": [], "version": 9})), (json!(9), None));
    let newer = json!({"events": [], "version": 9, "min_reader": 2});
    assert_eq!(stamp(newer), (json!(9), Some(json!(2))));
    let older = json!({"events": [], "version": 1, "min_reader": 1});
    assert_eq!(stamp(older), (json!(2), None));
}

#[test]
fn record_that_needs_a_newer_reader_is_refused_with_what_to_do() {
    let damaged = read(json!({"events": [], "version": 9, "min_reader": 3})).unwrap_err();
    assert!(damaged.is_newer);
    assert_eq!(
        StoreError::from(damaged).to_string(),
        "store incompatible: log/a at revision 7: it needs a program that knows version 3 of its form, \
         and this one knows version 2: upgrade this program"
    );
    assert!(read(json!({"events": [], "version": 9, "min_reader": 2})).is_ok());
}

#[test]
fn unknown_variant_outside_inert_lists_is_of_a_newer_version() {
    let damaged = read(json!({"events": [], "power": "hibernated"})).unwrap_err();
    assert!(damaged.is_newer);
    assert_eq!(
        damaged.reason,
        "it has a value that this program does not know, as a newer version may write it: \
         upgrade this program; /power: unknown variant `hibernated`, expected `running`"
    );
    let mismatched = read(json!({"events": 1})).unwrap_err();
    assert!(!mismatched.is_newer);
    let newer = read(json!({"events": 1, "version": 3})).unwrap_err();
    assert!(newer.is_newer);
    let reason = "a newer version wrote it, in version 3 of its form, and this program knows version 2: \
                  upgrade this program; /events: ";
    assert!(newer.reason.starts_with(reason), "{}", newer.reason);
}

#[test]
fn parts_that_are_not_understood_are_named_and_the_others_shown() {
    let partial = |value: Value| {
        let id = table().id(&Key::new("a").unwrap());
        let revision = Revision(7);
        let shown = Table::<Log>::partial(&Record {
            id,
            revision,
            value: value.into(),
        })?;
        Some((shown.value, shown.unknown))
    };
    let event = |kind: &str| json!({"at": 1, "kind": kind});
    let stored = json!({
        "events": [event("migrated"), event("created"), event("moved")],
        "power": "hibernated",
        "version": 9,
    });
    let (log, unknown) = partial(stored).unwrap();
    assert_eq!((log.events.len(), log.power), (1, Some(Power::Running)));
    assert_eq!(unknown, ["/events", "/power"]);
    // Nothing can be shown of a record that needs a newer reader, or that has nothing of the type.
    let unreadable = json!({"events": [], "version": 9, "min_reader": 9});
    assert!(partial(unreadable).is_none());
    assert!(partial(json!(["events"])).is_none());
    assert!(partial(json!({"events": 1})).is_none());
}

#[tokio::test]
async fn newer_records_are_shown_beside_the_others_and_damaged_ones_are_not() {
    let table = table();
    let stored = [
        ("damaged", json!({"events": 1, "power": "running"})),
        ("newer", json!({"events": [], "power": "hibernated"})),
        ("unreadable", json!({"events": [], "min_reader": 9})),
        ("whole", json!({"events": [], "power": "running"})),
    ];
    let mut put = Transaction::new();
    for (key, value) in stored {
        put = put.put(table.id(&Key::new(key).unwrap()), value);
    }
    table.store.commit(&put).await.unwrap();
    let mut page = table.list_all(&table.all()).await.unwrap();
    let keys = |page: &TypedPage<Log>| {
        let damaged = page.damaged.iter();
        let keys: Vec<_> = damaged.map(|one| one.id.key.to_string()).collect();
        keys
    };
    // What decides counts all that are damaged.
    assert_eq!(keys(&page), ["damaged", "newer", "unreadable"]);
    let newer = page.take_newer();
    assert_eq!(keys(&page), ["damaged", "unreadable"]);
    assert_eq!((newer.len(), newer[0].key.as_str()), (1, "newer"));
    assert!(newer[0].shows("events") && !newer[0].shows("power"));
    assert!(newer[0].shows("pow"), "only a part of the name");

    let show = async |key: &str| table.show(&Key::new(key).unwrap()).await;
    assert_eq!(show("none").await.unwrap(), None);
    assert_eq!(show("whole").await.unwrap().unwrap().unknown, [""; 0]);
    let shown = show("newer").await.unwrap().unwrap();
    assert_eq!(shown, newer[0]);
    assert_eq!(shown.map(|log| log.events.len()).unknown, ["/power"]);
    let error = show("damaged").await.unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
    let error = show("unreadable").await.unwrap_err();
    assert!(matches!(error, StoreError::Incompatible { .. }), "{error}");
}

#[test]
fn debug_output_does_not_contain_the_stored_form() {
    let log = read(json!({"events": [], "unknown": "secret"})).unwrap();
    assert!(!format!("{log:?} {:?}", log.base()).contains("secret"));
}

#[derive(Clone, Serialize, Deserialize)]
struct Reserved {
    version: u64,
}

impl Document for Reserved {
    const KIND: &'static str = "log";
}

#[test]
fn type_with_a_reserved_member_is_refused() {
    let schema = crate::Schema::builder().kind("log").build().unwrap();
    let table = Table::new(Arc::new(crate::MemoryStore::new(schema))).unwrap();
    let key = Key::new("a").unwrap();
    let created = table.create(Transaction::new(), &key, &Reserved { version: 1 });
    assert_eq!(
        created.unwrap_err().to_string(),
        "invalid request: log/a: its type has the member version, which every record has already"
    );
}
