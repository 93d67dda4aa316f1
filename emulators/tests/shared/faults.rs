//! Emulators with one fault, and calls that hang.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    thread,
};

use fleetwright_emulators::{Cloud, Emulator, Fault, FaultRule, Phase};

use super::http::open;

/// Both phases of a fault, each with the number of instances that a launch creates.
pub(crate) const PHASES: [(Phase, usize); 2] = [(Phase::Before, 0), (Phase::After, 1)];

/// Starts an emulator with a fault in the first call of an operation.
pub(crate) fn start_with_fault<C: Cloud<Knobs: Default>>(
    fault: Fault,
    operation: C::Operation,
) -> Emulator<C> {
    let emulator = Emulator::start(C::Knobs::default()).unwrap();
    emulator.add_fault(FaultRule::nth(operation, 1, fault));
    emulator
}

/// Sends a request whose call hangs, and returns as soon as the emulator has recorded the call.
pub(crate) fn send_hanging<C: Cloud>(emulator: &Emulator<C>, request: &str) -> TcpStream {
    let mut stream = open(emulator.address()).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    while emulator.calls().is_empty() {
        thread::yield_now();
    }
    stream
}

/// Drops the emulator, which ends the hanging call, and checks that the call gets no byte.
pub(crate) fn check_no_response<C: Cloud>(emulator: Emulator<C>, mut stream: TcpStream) {
    drop(emulator);
    let mut received = Vec::new();
    let _ = stream.read_to_end(&mut received);
    assert!(received.is_empty());
}
