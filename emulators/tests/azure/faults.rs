//! Every fault over real sockets: the response to the client, and the effect of the call.

use std::time::Duration;

use crate::client::{AUTHORIZATION, Response, VERSION, VMS, follow, get, put, send};
use crate::shared::faults::{PHASES, check_no_response, send_hanging, start_with_fault};
use fleetwright_emulators::azure::{
    Azure, AzureEmulator, Failure, Fault, FaultRule, Knobs, Operation, Phase, RetryAfter, Throttle,
};
use serde_json::Value;

const PUT: Operation = Operation::VirtualMachinesCreateOrUpdate;

/// Creates a virtual machine with a fault injected. Returns the response, and how many machines exist.
fn put_with_fault(fault: Fault) -> (std::io::Result<Response>, usize) {
    let emulator = start_with_fault::<Azure>(fault, PUT);
    let response = put(&emulator, "vm");
    assert!(emulator.unused_faults().is_empty());
    assert_eq!(emulator.oracle().calls[PUT.name()], 1);
    let created = emulator.oracle().vms.len();
    // The fault does not apply to the next call.
    assert_eq!(put(&emulator, "other").unwrap().status, 201);
    (response, created)
}

#[test]
fn lost_call_gets_no_byte_and_phase_decides_the_effect() {
    for (phase, created) in PHASES {
        let (response, found) = put_with_fault(Fault::Lost { phase });
        assert_eq!((response.is_err(), found), (true, created));
    }
    let (response, created) = put_with_fault(Fault::Reset);
    assert_eq!((response.is_err(), created), (true, 1));
}

#[test]
fn truncated_and_malformed_documents_are_sent() {
    for (fault, first_char) in [(Fault::Truncated, '{'), (Fault::Malformed, '<')] {
        let (response, created) = put_with_fault(fault);
        let body = response.unwrap().body;
        assert!(body.starts_with(first_char) && serde_json::from_str::<Value>(&body).is_err());
        assert_eq!(created, 1);
    }
}

#[test]
fn refusals_have_their_codes_and_no_effect() {
    let throttled = |retry_after_secs| Fault::Throttled { retry_after_secs };
    let phase = Phase::Before;
    let other = Fault::Refused {
        status: 429,
        code: "RetryableErrorDueToAnotherOperation".to_owned(),
        message: "wait".to_owned(),
    };
    for (fault, status, code) in [
        (throttled(None), 429, "TooManyRequests"),
        (throttled(Some(7)), 429, "TooManyRequests"),
        (Fault::ServerError { phase }, 500, "InternalExecutionError"),
        (Fault::ExpiredCredentials, 401, "ExpiredAuthenticationToken"),
        (Fault::Forbidden, 403, "AuthorizationFailed"),
        (Fault::Capacity, 409, "SkuNotAvailable"),
        (Fault::Quota, 409, "OperationNotAllowed"),
        (other, 429, "RetryableErrorDueToAnotherOperation"),
    ] {
        let after = (fault == throttled(Some(7))).then_some("7");
        let (response, created) = put_with_fault(fault);
        let response = response.unwrap();
        assert_eq!(
            (response.status, response.code().as_str(), created),
            (status, code, 0)
        );
        assert_eq!(response.header("retry-after"), after);
        let budget = response.header("x-ms-ratelimit-remaining-resource");
        assert_eq!(budget.is_some(), status == 429);
        assert_eq!(response.header("www-authenticate").is_some(), status == 401);
    }
    let phase = Phase::After;
    let (response, created) = put_with_fault(Fault::ServerError { phase });
    assert_eq!((response.unwrap().status, created), (500, 1));
}

#[test]
fn retry_after_can_be_a_date() {
    let emulator = AzureEmulator::start(Knobs::default()).unwrap();
    let mut knobs = emulator.knobs();
    knobs.retry_after = RetryAfter::Date;
    let mut bucket = Throttle::new(Duration::from_secs(3600), std::num::NonZeroU32::MIN);
    bucket.retry_after = true;
    knobs.throttle = [("VirtualMachines_List".to_owned(), bucket)].into();
    emulator.set_knobs(knobs);
    assert_eq!(get(&emulator, VMS).unwrap().status, 200);
    let throttled = get(&emulator, VMS).unwrap();
    assert_eq!(
        (throttled.status, throttled.code().as_str()),
        (429, "TooManyRequests")
    );
    let after = throttled.header("retry-after").unwrap();
    assert!(after.ends_with(" gmt") && after.contains(", "), "{after}");
    emulator.advance(Duration::from_secs(3600));
    assert_eq!(get(&emulator, VMS).unwrap().status, 200);
}

#[test]
fn delay_and_hang_faults_apply() {
    for (phase, created) in PHASES {
        let by = Duration::from_millis(30);
        let (response, found) = put_with_fault(Fault::Delay { phase, by });
        assert_eq!((response.unwrap().status, found), (201, 1));
        let emulator =
            start_with_fault::<Azure>(Fault::Hang { phase }, Operation::VirtualMachinesList);
        let head = format!("GET {VMS}?{VERSION} HTTP/1.1\r\nHost: x\r\n{AUTHORIZATION}\r\n");
        let stream = send_hanging(&emulator, &head);
        assert_eq!(emulator.calls()[0].status.is_some(), created == 1);
        check_no_response(emulator, stream);
    }
}

#[test]
fn operation_faults_apply() {
    let throttled = Fault::LateFailure {
        code: "AllocationFailed".to_owned(),
        message: "no machine".to_owned(),
    };
    let errors = vec![Failure::new("AllocationFailed", "no machine")];
    for fault in [throttled, Fault::OperationError { errors }] {
        let emulator = start_with_fault::<Azure>(fault, PUT);
        let response = put(&emulator, "vm").unwrap();
        let url = response.header("azure-asyncoperation").unwrap();
        emulator.advance(Duration::from_secs(1));
        let status = follow(&emulator, url).unwrap().json();
        assert_eq!(status["error"]["code"], "AllocationFailed");
        assert_eq!(emulator.oracle().vms[0].provisioning_state, "Failed");
        let expired = Fault::OperationExpired;
        emulator.add_fault(FaultRule::nth(Operation::OperationsGet, 1, expired));
        assert_eq!(follow(&emulator, url).unwrap().status, 404);
        assert_eq!(follow(&emulator, url).unwrap().status, 200);
    }
    let errors = vec![Failure::new("InternalError", "no luck")];
    let emulator = start_with_fault::<Azure>(
        Fault::OperationError { errors },
        Operation::VirtualMachinesDelete,
    );
    put(&emulator, "vm").unwrap();
    send(&emulator, "DELETE", &format!("{VMS}/vm"), &Value::Null).unwrap();
    emulator.advance(Duration::from_secs(1));
    assert_eq!(emulator.oracle().vms[0].provisioning_state, "Failed");
}

#[test]
fn page_and_read_faults_apply() {
    let emulator = AzureEmulator::start(Knobs::default()).unwrap();
    put(&emulator, "vm").unwrap();
    let list = Operation::VirtualMachinesList;
    let state = "Pondering".to_owned();
    let faults = [
        Fault::EmptyPage,
        Fault::RepeatedToken,
        Fault::UnknownState { state },
        Fault::StaleRead,
    ];
    for (nth, fault) in (1..).zip(faults) {
        emulator.add_fault(FaultRule::nth(list, nth, fault));
    }
    let page = |response: Response| {
        let page = response.json();
        let link = page["nextLink"].as_str().map(str::to_owned);
        (page["value"].as_array().unwrap().clone(), link)
    };
    let (empty, link) = page(get(&emulator, VMS).unwrap());
    assert!(empty.is_empty());
    let (items, repeated_link) = page(follow(&emulator, link.as_ref().unwrap()).unwrap());
    assert_eq!((items.len(), repeated_link), (1, link));
    let (unknown, _) = page(get(&emulator, VMS).unwrap());
    assert_eq!(unknown[0]["properties"]["provisioningState"], "Pondering");
    let mut knobs = emulator.knobs();
    knobs.lag.reads = Duration::from_secs(3600);
    emulator.set_knobs(knobs);
    assert!(page(get(&emulator, VMS).unwrap()).0.is_empty());
    assert!(emulator.unused_faults().is_empty());
}
