//! How errors read, and what they carry.

use std::{error::Error as _, io, time::Duration};

use super::*;
use crate::{
    CloudInstanceState, InstanceId, InstanceType, LaunchFailure, LaunchToken, Market, NetworkId,
    Problem, Zone,
};

fn call(operation: Operation) -> Call {
    Call::new("x", operation)
}

fn launch() -> Call {
    call(Operation::LaunchInstance)
}

fn id() -> InstanceId {
    InstanceId::new("i-1").unwrap()
}

/// One error of each kind, in the order of `ErrorKind::ALL`, with its text.
fn one_of_each() -> Vec<(ProvisionError, &'static str)> {
    let token = LaunchToken::new("t-1").unwrap();
    let minute = Duration::from_secs(60);
    let zone = Scope::zone(Zone::new("a").unwrap());
    vec![
        (
            launch().invalid(InvalidValue::new("disk size", Problem::Zero)),
            "x launch_instance: invalid: disk size: is zero; give at least 1 or leave the field out [no effect, do not retry]",
        ),
        (
            launch().not_found(&id()),
            "x launch_instance: not found: there is no instance i-1; check the id and the account [no effect, do not retry, instance i-1]",
        ),
        (
            launch().conflict("busy", RetryAdvice::After(minute)),
            "x launch_instance: conflict: busy [no effect, retry after 60s]",
        ),
        (
            launch().wrong_state(&id(), CloudInstanceState::Running, "stopped"),
            "x launch_instance: wrong state: instance i-1 is running; it must be stopped [no effect, do not retry, instance i-1]",
        ),
        (
            launch().token_conflict(&token),
            "x launch_instance: token conflict: launch token t-1 was used with another config or count; use the original config or a new token [no effect, do not retry]",
        ),
        (
            launch().token_spent(&token),
            "x launch_instance: token spent: the instances of launch token t-1 are terminating or terminated; use a new token to launch again [no effect, do not retry]",
        ),
        (
            launch().capacity(zone.clone(), "none left"),
            "x launch_instance: capacity: none left [no effect, do not retry, zone a]",
        ),
        (
            launch().quota(Scope::Account, "5 of 5"),
            "x launch_instance: quota: 5 of 5 [no effect, do not retry, account]",
        ),
        (
            launch().throttled(minute),
            "x launch_instance: throttled: too many calls; slow down [no effect, retry after 60s]",
        ),
        (
            launch().unauthenticated("expired"),
            "x launch_instance: unauthenticated: expired [no effect, do not retry]",
        ),
        (
            launch().forbidden("no"),
            "x launch_instance: forbidden: no [no effect, do not retry]",
        ),
        (
            launch().unsupported(),
            "x launch_instance: unsupported: this backend does not support the call; see its capabilities [no effect, do not retry]",
        ),
        (
            launch().incomplete([zone, Scope::Region]),
            "x launch_instance: incomplete: the list is incomplete; instances in the missing parts may still exist [no effect, retry with the same token, zone a, region]",
        ),
        (
            launch().timeout(Effect::Unknown),
            "x launch_instance: timeout: no response within the timeout [effect unknown, retry with the same token]",
        ),
        (
            launch().unavailable(Effect::Done, "down"),
            "x launch_instance: unavailable: down [effect done, retry with the same token]",
        ),
        (
            launch().unexpected(Effect::None, "what?"),
            "x launch_instance: unexpected: what? [no effect, retry with the same token]",
        ),
    ]
}

#[test]
fn every_kind_reads_as_one_line() {
    let errors = one_of_each();
    let kinds: Vec<_> = errors.iter().map(|(error, _)| error.kind()).collect();
    assert_eq!(kinds, ErrorKind::ALL);
    for (error, text) in errors {
        assert_eq!(error.to_string(), text);
        assert_eq!(
            (error.provider(), error.operation()),
            ("x", Operation::LaunchInstance)
        );
        let kind = error.kind();
        assert_eq!(
            serde_json::to_value(kind).unwrap(),
            kind.as_str().replace(' ', "_")
        );
        assert_eq!(error.invalid_value().is_some(), kind == ErrorKind::Invalid);
    }
}

#[test]
fn late_failure_keeps_kind_scopes_and_native_code() {
    let refused = launch()
        .quota(Scope::Account, "5 of 5")
        .with_native_code("Limit");
    let failure = LaunchFailure::from(&refused);
    assert_eq!(failure.native_code.as_deref(), Some("Limit"));
    let error = launch().launch_failed(&failure, Some("Limit: 5 of 5"));
    assert_eq!(
        error.to_string(),
        "x launch_instance: quota: Limit: 5 of 5 [no effect, do not retry, account, code Limit]"
    );
    let failure = LaunchFailure::new(ErrorKind::Capacity, []);
    let error = launch().launch_failed(&failure, None);
    assert_eq!((error.native_code(), error.scopes()), (None, &[][..]));
}

#[test]
fn added_details_are_displayed_and_returned() {
    let survivor = InstanceInfo::new(id(), CloudInstanceState::Pending);
    let error = launch()
        .quota(Scope::Account, "5 of 5")
        .with_native_code("Instance\nLimit")
        .with_request_id("req 1")
        .with_survivors(vec![survivor.clone()])
        .retry_after(Duration::from_secs(1));
    assert_eq!(
        error.to_string(),
        "x launch_instance: quota: 5 of 5 [effect done, retry after 1s, account, code Instance Limit, request req 1, 1 instances exist]"
    );
    assert_eq!(error.native_code(), Some("Instance Limit"));
    assert_eq!(error.request_id(), Some("req 1"));
    assert_eq!(error.message(), "5 of 5");
    assert_eq!(error.survivors(), [survivor]);
    assert_eq!(error.scopes(), [Scope::Account]);
}

#[test]
fn survivors_make_no_effect_done_and_keep_unknown() {
    let survivor = || vec![InstanceInfo::new(id(), CloudInstanceState::Pending)];
    let quota = || launch().quota(Scope::Account, "5 of 5");
    assert_eq!(quota().with_survivors(vec![]).effect(), Effect::None);
    assert_eq!(quota().with_survivors(survivor()).effect(), Effect::Done);
    let lost = launch().timeout(Effect::Unknown);
    assert_eq!(lost.with_survivors(survivor()).effect(), Effect::Unknown);
}

#[test]
fn read_never_has_an_effect() {
    for operation in Operation::ALL {
        let error = call(operation).timeout(Effect::Unknown);
        assert_eq!(
            error.effect() == Effect::None,
            operation.is_read(),
            "{operation}"
        );
    }
}

#[test]
fn clones_share_data_until_one_is_changed() {
    let error = launch().forbidden("no");
    let copy = error.clone();
    assert!(Arc::ptr_eq(&error.0, &copy.0));
    let changed = error.with_native_code("E1");
    assert_eq!(
        (changed.native_code(), copy.native_code()),
        (Some("E1"), None)
    );
}

#[test]
fn source_is_returned_and_never_displayed() {
    let error = launch()
        .forbidden("no")
        .with_source(io::Error::other("Bearer hunter2"));
    let shown = format!("{error} {error:?} {error:#?}");
    assert!(!shown.contains("hunter2"), "{shown}");
    assert!(shown.contains("has_source: true"), "{shown}");
    assert_eq!(error.source().unwrap().to_string(), "Bearer hunter2");
    assert!(launch().forbidden("no").source().is_none());
}

#[test]
fn debug_names_survivors_by_id_only() {
    let mut info = InstanceInfo::new(id(), CloudInstanceState::Pending);
    info.tags = crate::Tags::new().with("note", "private").unwrap();
    let shown = format!("{:?}", launch().forbidden("no").with_survivors(vec![info]));
    assert!(
        shown.contains("survivors: [InstanceId(\"i-1\")]") && !shown.contains("private"),
        "{shown}"
    );
}

#[test]
fn messages_are_one_line_of_limited_length() {
    let error = launch().forbidden(" a\r\n\tb  c\u{0} ");
    assert_eq!(error.message(), "a b c");
    assert_eq!(
        launch()
            .forbidden(&"é".repeat(600))
            .message()
            .chars()
            .count(),
        600
    );
    let long = launch().forbidden(&"é".repeat(601));
    assert_eq!(long.message(), format!("{}…", "é".repeat(600)));
}

#[test]
fn scopes_have_a_text() {
    let offering = |market| Scope::Offering {
        instance_type: Some(InstanceType::new("big").unwrap()),
        zone: Some(Zone::new("a").unwrap()),
        market,
    };
    let everything = Scope::Offering {
        instance_type: None,
        zone: None,
        market: None,
    };
    let cases = [
        (Scope::Instance(id()), "instance i-1"),
        (offering(Some(Market::Spot)), "type big zone a spot"),
        (
            offering(Some(Market::OnDemand)),
            "type big zone a on demand",
        ),
        (offering(None), "type big zone a"),
        (everything, "every offering"),
        (Scope::Network(NetworkId::new("n").unwrap()), "network n"),
        (Scope::Region, "region"),
        (Scope::Account, "account"),
    ];
    for (scope, text) in cases {
        assert_eq!(scope.to_string(), text);
        let json = serde_json::to_string(&scope).unwrap();
        assert_eq!(serde_json::from_str::<Scope>(&json).unwrap(), scope);
    }
}

#[test]
fn advice_has_a_delay() {
    let minute = Duration::from_secs(60);
    assert_eq!(RetryAdvice::Never.delay(), None);
    assert_eq!(RetryAdvice::SameToken.delay(), Some(Duration::ZERO));
    assert_eq!(RetryAdvice::After(minute).delay(), Some(minute));
}
