//! Long-running operations, and their URLs.

use super::*;

#[test]
fn operation_is_polled_by_status_and_location() {
    let mut lab = Lab::new();
    let made = lab.put("a", order());
    assert!(header_of(&made, "location").is_none());
    assert_eq!(header_of(&made, "retry-after").as_deref(), Some("0"));
    let status = lab.status(&made);
    assert_eq!(status["status"], "InProgress");
    assert!(status["endTime"].is_null());
    lab.pass(100);
    let status = lab.status(&made);
    assert_eq!(status["status"], "Succeeded");
    assert!(status["endTime"].is_string() && status["error"].is_null());
    for (text, end) in [("POST {}/deallocate", 200), ("DELETE {}", 204)] {
        let text = text.replace("{}", &format!("{VMS}/a"));
        let answer = lab.call(&text, Value::Null).unwrap();
        assert_eq!((answer.status, answer.body.as_str()), (202, ""));
        let waiting = lab.follow(&answer, "location").unwrap();
        assert_eq!(waiting.status, 202);
        assert!(header_of(&waiting, "location").is_some());
        lab.pass(100);
        assert_eq!(lab.follow(&answer, "location").unwrap().status, end);
        assert_eq!(lab.status(&answer)["status"], "Succeeded");
    }
}

#[test]
fn operation_expires() {
    let mut lab = Lab::with(|knobs| {
        knobs.timing.operation_retention = Duration::from_secs(1);
    });
    let made = lab.put("a", order());
    lab.pass(1000);
    assert_eq!(lab.status(&made)["status"], "Succeeded");
    lab.pass(100);
    let gone = lab.follow(&made, "azure-asyncoperation").unwrap_err();
    assert_eq!((gone.status, &*gone.code), (404, "NotFound"));
    assert_eq!(lab.oracle().operations_in_progress, 0);
}

#[test]
fn operation_expires_by_a_fault() {
    let mut lab = Lab::new();
    let made = lab.put("a", order());
    let url = header_of(&made, "azure-asyncoperation").unwrap();
    let path = url.strip_prefix("http://here").unwrap();
    let context = CallContext {
        operation_expired: true,
        ..CallContext::default()
    };
    let gone = lab.call_as(&format!("GET {path}"), Value::Null, &context);
    assert_eq!(gone.unwrap_err().status, 404);
    assert_eq!(lab.status(&made)["status"], "InProgress");
}

#[test]
fn an_operation_is_of_a_subscription_and_a_provider() {
    let mut lab = Lab::new();
    let made = lab.put("a", order());
    let url = header_of(&made, "azure-asyncoperation").unwrap();
    let path = url.strip_prefix("http://here").unwrap();
    for other in [
        path.replace("/subscriptions/s/", "/subscriptions/t/"),
        path.replace("Microsoft.Compute", "Microsoft.Network"),
    ] {
        assert_eq!(lab.refused(&format!("GET {other}"), Value::Null).0, 404);
    }
}

#[test]
fn operation_urls_follow_the_knobs() {
    let mut lab = Lab::with(|knobs| {
        knobs.polling_origin = Some("https://elsewhere.example".to_owned());
        knobs.poll_after_secs = Some(7);
    });
    let made = lab.put("a", order());
    let url = header_of(&made, "azure-asyncoperation").unwrap();
    assert!(url.starts_with("https://elsewhere.example/subscriptions/s/providers/Microsoft.Compute/locations/eastus/operations/"));
    assert!(url.ends_with("&api-version=2024-11-01"));
    assert_eq!(header_of(&made, "retry-after").as_deref(), Some("7"));
    lab.engine.core.knobs.poll_after_secs = None;
    let made = lab.put("b", order());
    assert_eq!(header_of(&made, "retry-after"), None);
}
