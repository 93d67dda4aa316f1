//! Every fault over real sockets: the response to the client, and the effect of the call.

use std::time::Duration;

use crate::client::{AUTHORIZATION, LAUNCH, Response, post, request};
use crate::shared::faults::{PHASES, check_no_response, send_hanging, start_with_fault};
use fleetwright_emulators::ec2::{Action, Ec2, Ec2Emulator, Fault, FaultRule, Knobs, Phase};

/// Launches an instance with a fault injected. Returns the response, and how many instances exist.
fn launch_with_fault(fault: Fault) -> (std::io::Result<Response>, usize) {
    let emulator = start_with_fault::<Ec2>(fault, Action::RunInstances);
    let response = post(&emulator, LAUNCH);
    assert!(emulator.unused_faults().is_empty());
    assert_eq!(emulator.oracle().calls["RunInstances"], 1);
    let created = emulator.oracle().instances.len();
    // The fault does not apply to the next call.
    assert_eq!(post(&emulator, LAUNCH).unwrap().status, 200);
    (response, created)
}

#[test]
fn lost_call_gets_no_byte_and_phase_decides_the_effect() {
    for (phase, created) in PHASES {
        let (response, found) = launch_with_fault(Fault::Lost { phase });
        assert!(response.is_err());
        assert_eq!(found, created);
    }
}

#[test]
fn lost_call_is_recorded_with_its_parameters() {
    for (phase, created) in PHASES {
        let emulator = start_with_fault::<Ec2>(Fault::Lost { phase }, Action::RunInstances);
        let form = format!("{LAUNCH}&ClientToken=kept");
        assert!(post(&emulator, &form).is_err());
        assert_eq!(post(&emulator, &form).unwrap().status, 200);
        let calls = emulator.calls();
        let tokens: Vec<_> = calls
            .iter()
            .map(|call| &call.parameters["ClientToken"])
            .collect();
        assert_eq!(tokens, ["kept", "kept"]);
        assert_eq!(calls[0].status.is_some(), created == 1);
        assert!(calls[0].fault.is_some() && calls[1].fault.is_none());
        assert_eq!(emulator.oracle().instances.len(), 1);
    }
}

#[test]
fn response_is_reset_in_the_middle() {
    let (response, created) = launch_with_fault(Fault::Reset);
    assert!(response.is_err());
    assert_eq!(created, 1);
    let (response, created) = launch_with_fault(Fault::Truncated);
    let body = response.unwrap().body;
    assert!(body.contains("<RunInstancesResponse") && !body.contains("</RunInstancesResponse>"));
    assert_eq!(created, 1);
    let (response, created) = launch_with_fault(Fault::Malformed);
    let response = response.unwrap();
    assert!(response.status == 200 && response.body.starts_with("<html>"));
    assert_eq!(created, 1);
}

#[test]
fn refusals_have_their_codes_and_no_effect() {
    let other = Fault::Refused {
        status: 400,
        code: "PendingVerification".to_owned(),
        message: "wait".to_owned(),
    };
    for (fault, status, code) in [
        (
            Fault::Throttled {
                retry_after_secs: None,
            },
            503,
            "RequestLimitExceeded",
        ),
        (
            Fault::ServerError {
                phase: Phase::Before,
            },
            500,
            "InternalError",
        ),
        (Fault::ExpiredCredentials, 400, "RequestExpired"),
        (Fault::Forbidden, 403, "UnauthorizedOperation"),
        (Fault::Capacity, 500, "InsufficientInstanceCapacity"),
        (Fault::Quota, 400, "VcpuLimitExceeded"),
        (other, 400, "PendingVerification"),
    ] {
        let (response, created) = launch_with_fault(fault);
        let response = response.unwrap();
        assert_eq!(
            (response.status, response.code().as_str(), created),
            (status, code, 0)
        );
    }
}

#[test]
fn internal_error_can_come_after_the_effect() {
    let (response, created) = launch_with_fault(Fault::ServerError {
        phase: Phase::After,
    });
    assert_eq!(
        (response.unwrap().code().as_str(), created),
        ("InternalError", 1)
    );
}

#[test]
fn delayed_call_is_executed_and_delivered() {
    for (phase, _) in PHASES {
        let by = Duration::from_millis(20);
        let (response, created) = launch_with_fault(Fault::Delay { phase, by });
        assert_eq!((response.unwrap().status, created), (200, 1));
    }
}

#[test]
fn hang_phase_decides_the_effect() {
    for (phase, created) in PHASES {
        let emulator = start_with_fault::<Ec2>(Fault::Hang { phase }, Action::RunInstances);
        let body = format!("Version=2016-11-15&{LAUNCH}");
        let request = format!(
            "POST / HTTP/1.1\r\nHost: x\r\nAuthorization: {AUTHORIZATION}\r\nX-Amz-Date: 20260101T000000Z\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let stream = send_hanging(&emulator, &request);
        // Another connection is served meanwhile.
        assert_eq!(
            post(&emulator, "Action=DescribeInstances").unwrap().status,
            200
        );
        assert_eq!(emulator.oracle().instances.len(), created);
        check_no_response(emulator, stream);
    }
}

#[test]
fn launch_fails_late() {
    let fault = Fault::LateFailure {
        code: "Server.InsufficientInstanceCapacity".to_owned(),
        message: "Insufficient capacity".to_owned(),
    };
    let emulator = start_with_fault::<Ec2>(fault, Action::RunInstances);
    assert_eq!(post(&emulator, LAUNCH).unwrap().all("name"), ["pending"]);
    emulator.advance(Duration::from_secs(1));
    let instance = &emulator.oracle().instances[0];
    assert_eq!(instance.state, "terminated");
    assert_eq!(
        instance.reason.as_deref(),
        Some("Server.InsufficientInstanceCapacity")
    );
    assert!(emulator.oracle().volumes.is_empty());
}

#[test]
fn unknown_state_is_returned_and_not_stored() {
    let fault = Fault::UnknownState {
        state: "hibernating".to_owned(),
    };
    let emulator = start_with_fault::<Ec2>(fault, Action::DescribeInstances);
    post(&emulator, LAUNCH).unwrap();
    emulator.advance(Duration::from_secs(1));
    let names = || {
        post(&emulator, "Action=DescribeInstances")
            .unwrap()
            .all("name")
    };
    assert_eq!(names(), ["hibernating"]);
    assert_eq!(names(), ["running"]);
}

#[test]
fn stale_read_returns_the_past() {
    let emulator = start_with_fault::<Ec2>(Fault::StaleRead, Action::DescribeInstances);
    let mut knobs = emulator.knobs();
    knobs.lag.reads = Duration::from_secs(3600);
    emulator.set_knobs(knobs);
    emulator.advance(Duration::from_secs(7200));
    post(&emulator, LAUNCH).unwrap();
    let response = post(&emulator, "Action=DescribeInstances").unwrap();
    assert!(response.all("instanceId").is_empty());
    emulator.advance(Duration::from_secs(3600));
    let response = post(&emulator, "Action=DescribeInstances").unwrap();
    assert_eq!(response.all("instanceId").len(), 1);
}

#[test]
fn page_faults_apply() {
    let emulator = start_with_fault::<Ec2>(Fault::EmptyPage, Action::DescribeInstances);
    let form = LAUNCH.replace("MinCount=1&MaxCount=1", "MinCount=7&MaxCount=7");
    post(&emulator, &form).unwrap();
    let page = |token: &str| {
        let form = format!("Action=DescribeInstances&MaxResults=5{token}");
        let response = post(&emulator, &form).unwrap();
        let token = response
            .all("nextToken")
            .first()
            .map(|token| format!("&NextToken={token}"));
        (response.all("amiLaunchIndex").len(), token)
    };
    let (count, token) = page("");
    assert_eq!(count, 0);
    let (count, second) = page(&token.unwrap());
    assert_eq!(count, 5);
    emulator.add_fault(FaultRule::nth_of_any(1, Fault::RepeatedToken));
    let (count, repeated) = page(second.as_deref().unwrap());
    assert_eq!((count, &repeated), (2, &second));
    assert_eq!(page(&repeated.unwrap()), (2, None));
}

#[test]
fn rule_without_number_applies_to_every_call() {
    let emulator = Ec2Emulator::start(Knobs::default()).unwrap();
    emulator.add_fault(FaultRule::always_any(Fault::Throttled {
        retry_after_secs: None,
    }));
    for form in [LAUNCH, "Action=DescribeInstances", LAUNCH] {
        assert_eq!(post(&emulator, form).unwrap().status, 503);
    }
    emulator.clear_faults();
    assert_eq!(post(&emulator, LAUNCH).unwrap().status, 200);
}

#[test]
fn throttling_can_send_retry_after() {
    for (retry_after_secs, header) in [(None, false), (Some(7), true)] {
        let (response, created) = launch_with_fault(Fault::Throttled { retry_after_secs });
        let response = response.unwrap();
        assert_eq!((response.status, created), (503, 0));
        let has_header = response.head.contains("\r\nretry-after: 7");
        assert_eq!(has_header, header, "{}", response.head);
    }
}

#[test]
fn operation_faults_are_not_supported() {
    let emulator = start_with_fault::<Ec2>(Fault::OperationExpired, Action::RunInstances);
    assert_eq!(post(&emulator, LAUNCH).unwrap().status, 200);
    assert_eq!(emulator.unused_faults().len(), 1);
    emulator.clear_faults();
    assert!(emulator.unused_faults().is_empty());
    let rule = br#"{"fault":{"kind":"operation_error","errors":[]}}"#;
    let response = request(&emulator, "POST", "/_emulator/faults", "", rule).unwrap();
    assert_eq!(response.status, 400);
}
