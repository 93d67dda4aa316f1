//! Long-running operations, and their URLs.

use super::*;

#[test]
fn operation_is_polled_by_status_and_location() {
    let mut fixture = Fixture::new();
    let created = fixture.put("a", vm_body());
    assert!(header_of(&created, "location").is_none());
    assert_eq!(header_of(&created, "retry-after").as_deref(), Some("0"));
    let status = fixture.status(&created);
    assert_eq!(status["status"], "InProgress");
    assert!(status["endTime"].is_null());
    fixture.advance(100);
    let status = fixture.status(&created);
    assert_eq!(status["status"], "Succeeded");
    assert!(status["endTime"].is_string() && status["error"].is_null());
    for (text, end) in [("POST {}/deallocate", 200), ("DELETE {}", 204)] {
        let text = text.replace("{}", &format!("{VMS}/a"));
        let response = fixture.call(&text, Value::Null).unwrap();
        assert_eq!((response.status, response.body.as_str()), (202, ""));
        let waiting = fixture.follow(&response, "location").unwrap();
        assert_eq!(waiting.status, 202);
        assert!(header_of(&waiting, "location").is_some());
        fixture.advance(100);
        assert_eq!(fixture.follow(&response, "location").unwrap().status, end);
        assert_eq!(fixture.status(&response)["status"], "Succeeded");
    }
}

#[test]
fn operation_expires() {
    let mut fixture = Fixture::with(|knobs| {
        knobs.timing.operation_retention = Duration::from_secs(1);
    });
    let created = fixture.put("a", vm_body());
    fixture.advance(1000);
    assert_eq!(fixture.status(&created)["status"], "Succeeded");
    fixture.advance(100);
    let expired = fixture
        .follow(&created, "azure-asyncoperation")
        .unwrap_err();
    assert_eq!((expired.status, &*expired.code), (404, "NotFound"));
    assert_eq!(fixture.oracle().operations_in_progress, 0);
}

#[test]
fn operation_expires_by_a_fault() {
    let mut fixture = Fixture::new();
    let created = fixture.put("a", vm_body());
    let url = header_of(&created, "azure-asyncoperation").unwrap();
    let path = url.strip_prefix("http://here").unwrap();
    let context = CallContext {
        operation_expired: true,
        ..CallContext::default()
    };
    let expired = fixture.call_as(&format!("GET {path}"), Value::Null, &context);
    assert_eq!(expired.unwrap_err().status, 404);
    assert_eq!(fixture.status(&created)["status"], "InProgress");
}

#[test]
fn operation_belongs_to_its_subscription_and_provider() {
    let mut fixture = Fixture::new();
    let created = fixture.put("a", vm_body());
    let url = header_of(&created, "azure-asyncoperation").unwrap();
    let path = url.strip_prefix("http://here").unwrap();
    for other in [
        path.replace("/subscriptions/s/", "/subscriptions/t/"),
        path.replace("Microsoft.Compute", "Microsoft.Network"),
    ] {
        assert_eq!(fixture.refused(&format!("GET {other}"), Value::Null).0, 404);
    }
}

#[test]
fn operation_urls_follow_the_knobs() {
    let mut fixture = Fixture::with(|knobs| {
        knobs.polling_origin = Some("https://elsewhere.example".to_owned());
        knobs.poll_after_secs = Some(7);
    });
    let created = fixture.put("a", vm_body());
    let url = header_of(&created, "azure-asyncoperation").unwrap();
    assert!(url.starts_with("https://elsewhere.example/subscriptions/s/providers/Microsoft.Compute/locations/eastus/operations/"));
    assert!(url.contains("&api-version=2024-11-01&t="));
    assert_eq!(header_of(&created, "retry-after").as_deref(), Some("7"));
    fixture.engine.core.knobs.poll_after_secs = None;
    let created = fixture.put("b", vm_body());
    assert_eq!(header_of(&created, "retry-after"), None);
}
