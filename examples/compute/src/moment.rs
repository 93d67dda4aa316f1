//! The moments of a replacement at which the fleet process is killed, recognized by the state of cloud and store.

use std::time::Duration;

use fleetwright_emulators::ec2::{Action, Ec2Emulator, Fault, FaultRule, OracleInstance, Phase};
use fleetwright_region::server::Server;

use crate::cloud;

/// Longer than any fleet process of the example runs.
const LONG: Duration = Duration::from_secs(600);

/// A moment in the middle of a replacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// The termination of the old machine was sent, and the cloud did not receive it.
    TerminationLost,
    /// The old machine is terminating, and the response was lost.
    TerminationResponseLost,
    /// The launch of the new machine is recorded and was sent, and the cloud did not receive it.
    LaunchLost,
    /// The new machine exists, and the response was lost.
    LaunchResponseLost,
    /// The new machine exists, its id is recorded, and it boots.
    Booting,
}

impl Moment {
    pub(crate) const ALL: [Self; 5] = [
        Self::TerminationLost,
        Self::TerminationResponseLost,
        Self::LaunchLost,
        Self::LaunchResponseLost,
        Self::Booting,
    ];

    /// A description of the moment that follows "while".
    pub(crate) fn description(self) -> &'static str {
        match self {
            Self::TerminationLost => "the termination of its machine is sent and not received",
            Self::TerminationResponseLost => "its machine is terminating and the response is lost",
            Self::LaunchLost => "the launch of its new machine is recorded, sent and not received",
            Self::LaunchResponseLost => "its new machine is launched and the response is lost",
            Self::Booting => "its new machine is recorded and boots",
        }
    }

    /// Makes the cloud stay at the moment: the call hangs, or the boot takes long.
    pub(crate) fn hold(self, emulator: &Ec2Emulator) {
        let (action, phase) = match self {
            Self::TerminationLost => (Action::TerminateInstances, Phase::Before),
            Self::TerminationResponseLost => (Action::TerminateInstances, Phase::After),
            Self::LaunchLost => (Action::RunInstances, Phase::Before),
            Self::LaunchResponseLost => (Action::RunInstances, Phase::After),
            Self::Booting => return cloud::boot_within(emulator, Some(LONG)),
        };
        emulator.add_fault(FaultRule::nth(action, 1, Fault::Hang { phase }));
    }

    /// Lets the cloud continue. A call that hung is lost with the process that sent it.
    pub(crate) fn release(self, emulator: &Ec2Emulator) {
        match self {
            Self::TerminationLost
            | Self::TerminationResponseLost
            | Self::LaunchLost
            | Self::LaunchResponseLost => emulator.clear_faults(),
            Self::Booting => {
                cloud::boot_within(emulator, None);
                emulator.advance(LONG);
            }
        }
    }

    /// Whether the moment is reached, by the machines that the cloud has launched for a server, oldest first, and the server's record.
    pub(crate) fn is_now(
        self,
        emulator: &Ec2Emulator,
        machines: &[OracleInstance],
        server: &Server,
    ) -> bool {
        let fault_injected = emulator.unused_faults().is_empty();
        let termination_is_recorded = server
            .machine
            .as_ref()
            .is_some_and(|machine| machine.incarnation == 1 && machine.termination.is_some());
        let launch = server.launch.as_ref();
        let launch_is_recorded = launch.is_some_and(|launch| launch.incarnation == 2);
        let new_machine_is_recorded = server
            .machine
            .as_ref()
            .is_some_and(|machine| machine.incarnation == 2);
        let states: Vec<_> = machines
            .iter()
            .map(|machine| machine.state.as_str())
            .collect();
        match self {
            Self::TerminationLost => {
                fault_injected && termination_is_recorded && states == ["running"]
            }
            Self::TerminationResponseLost => {
                fault_injected
                    && termination_is_recorded
                    && states.len() == 1
                    && states != ["running"]
            }
            Self::LaunchLost => fault_injected && launch_is_recorded && states == ["terminated"],
            Self::LaunchResponseLost => {
                fault_injected
                    && launch_is_recorded
                    && !new_machine_is_recorded
                    && states.len() == 2
            }
            Self::Booting => new_machine_is_recorded && states == ["terminated", "pending"],
        }
    }
}
