//! The steps of a change of labels, and the address of the console.

use super::*;
use google_cloud_compute_v1::model::Metadata;

fn tags(pairs: &[(&str, &str)]) -> Tags {
    let with = |tags: Tags, (key, value): &(&str, &str)| tags.with(*key, *value).unwrap();
    pairs.iter().fold(Tags::new(), with)
}

fn instance(tags: &Tags) -> Instance {
    let encoded = labels::encode(tags);
    let items = encoded
        .originals
        .map(|text| metadata::item(metadata::TAGS, &text));
    Instance::new()
        .set_labels(encoded.labels)
        .set_metadata(Metadata::new().set_items(items))
}

#[test]
fn valid_labels_change_in_one_step() {
    let (before, after) = (
        tags(&[("a", "1"), ("b", "2")]),
        tags(&[("a", "3"), ("c", "4")]),
    );
    let steps = Steps::new(&instance(&before), &before, &after).unwrap();
    assert_eq!(steps.originals, None);
    let mut last: Vec<_> = steps.last.into_iter().collect();
    last.sort();
    let expected = [("a", "3"), ("c", "4")].map(|(key, value)| (key.to_owned(), value.to_owned()));
    assert_eq!(last, expected);
    assert_eq!(Steps::new(&instance(&before), &before, &before), None);
}

#[test]
fn instance_is_found_by_its_tags_after_every_step() {
    let (before, after) = (
        tags(&[("Team", "Blue"), ("a", "1")]),
        tags(&[("Team", "Red")]),
    );
    let native = instance(&before);
    let steps = Steps::new(&native, &before, &after).unwrap();
    let originals = steps.originals.clone().flatten();
    for labels in [&steps.first, &steps.last] {
        assert_eq!(
            labels::decode(labels, originals.as_deref()).get("Team"),
            Some("Red")
        );
    }
    for value in ["Blue", "Red"] {
        let (key, value) = labels::label("Team", value);
        assert_eq!(steps.first.get(&key), Some(&value));
    }
    assert_eq!(labels::decode(&steps.last, originals.as_deref()), after);
    let none_left = Steps::new(&native, &before, &Tags::new()).unwrap();
    assert_eq!((none_left.last.len(), none_left.originals), (0, Some(None)));
}

#[test]
fn labels_of_other_actors_are_kept() {
    let native = instance(&tags(&[("a", "1")]));
    let native = native.set_labels([("a", "1"), ("goog-x", "y")]);
    let before = labels::decode(&native.labels, None);
    let steps = Steps::new(&native, &before, &tags(&[("b", "2")])).unwrap();
    assert_eq!(steps.last.get("goog-x").map(String::as_str), Some("y"));
    assert_eq!(steps.last.len(), 2);
}

#[test]
fn console_url_names_the_instance() {
    let at = Address::parse(&InstanceId::new("gce://p/us-central1-a/fw-1/42").unwrap()).unwrap();
    assert!(GcpProvisioner::console_url(&at).contains("/projects/p/zones/us-central1-a/"));
}
