//! A large fleet: what a call costs does not grow with it.

use super::*;
use crate::azure::engine::operator::ExternalAction;

#[test]
fn fifty_thousand_machines_are_listed_by_pages_and_found_by_name() {
    let mut lab = Lab::new();
    let act = json!({ "action": "create_external", "count": 50_000, "subscription": "s" });
    let act: ExternalAction = serde_json::from_value(act).unwrap();
    let last = lab.engine.perform(act).unwrap().pop().unwrap();
    lab.clock.advance(Duration::from_millis(100));
    lab.engine.catch_up();
    let mut ask = |text: &str| {
        let before = lab.engine.core.records_read;
        let request = request(text, Value::Null);
        let answer = actions::execute(&request, &mut lab.engine, &CallContext::default()).unwrap();
        (answer, lab.engine.core.records_read - before)
    };
    let mut next = VMS.to_owned();
    // The rest is like the first.
    for _ in 0..3 {
        let (answer, records_read) = ask(&format!("GET {next}"));
        let page: Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(page["value"].as_array().unwrap().len(), 500);
        assert_eq!(records_read, 500);
        let link = page["nextLink"].as_str().unwrap();
        next = link.replace("http://here", "");
    }
    for text in [
        format!("GET {last}"),
        format!("GET {last}/instanceView"),
        format!("POST {last}/deallocate"),
        format!("DELETE {last}"),
    ] {
        assert_eq!(ask(&text).1, 1, "{text}");
    }
}
