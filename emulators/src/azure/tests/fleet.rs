//! A large fleet: the cost of a call does not grow with it.

use super::*;
use crate::azure::engine::external_action::ExternalAction;

#[test]
fn fifty_thousand_machines_are_listed_by_pages_and_found_by_name() {
    let mut fixture = Fixture::new();
    let action = json!({ "action": "create_external", "count": 50_000, "subscription": "s" });
    let action: ExternalAction = serde_json::from_value(action).unwrap();
    let last = fixture.engine.perform(action).unwrap().pop().unwrap();
    fixture.clock.advance(Duration::from_millis(100));
    fixture.engine.catch_up();
    let mut execute = |text: &str| {
        let before = fixture.engine.core.records_read;
        let request = request(text, Value::Null);
        let response =
            actions::execute(&request, &mut fixture.engine, &CallContext::default()).unwrap();
        (response, fixture.engine.core.records_read - before)
    };
    let mut next = VMS.to_owned();
    // The remaining pages are like the first three.
    for _ in 0..3 {
        let (response, records_read) = execute(&format!("GET {next}"));
        let page: Value = serde_json::from_str(&response.body).unwrap();
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
        assert_eq!(execute(&text).1, 1, "{text}");
    }
}
