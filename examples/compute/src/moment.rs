//! The moments of a replacement at which the fleet process is killed, told by what the cloud and the store show.

use std::time::Duration;

use fleetwright_emulators::ec2::{Action, Ec2Emulator, Fault, FaultRule, OracleInstance, Phase};
use fleetwright_region::server::Server;

use crate::cloud;

/// Longer than a fleet process lives here.
const LONG: Duration = Duration::from_secs(600);

/// A moment in the middle of a replacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// The end of the old machine was sent, and the cloud did not hear of it.
    EndUnheard,
    /// The old machine is ending, and nobody was told.
    EndUnanswered,
    /// The launch of the successor is stored and was sent, and the cloud did not hear of it.
    LaunchUnheard,
    /// The successor is there, and nobody was told.
    LaunchUnanswered,
    /// The successor is there, its id is stored, and it boots.
    Booting,
}

impl Moment {
    pub(crate) const ALL: [Self; 5] = [
        Self::EndUnheard,
        Self::EndUnanswered,
        Self::LaunchUnheard,
        Self::LaunchUnanswered,
        Self::Booting,
    ];

    /// What is true at that moment, as a sentence goes on after "while".
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::EndUnheard => "the end of its machine is sent and unheard",
            Self::EndUnanswered => "its machine is ending and nobody is told",
            Self::LaunchUnheard => "the launch of its successor is stored, sent and unheard",
            Self::LaunchUnanswered => "its successor is launched and nobody is told",
            Self::Booting => "its successor is on record and boots",
        }
    }

    /// Makes the cloud hold the moment still: the call hangs, or the boot takes long.
    pub(crate) fn hold(self, emulator: &Ec2Emulator) {
        let (action, phase) = match self {
            Self::EndUnheard => (Action::TerminateInstances, Phase::Before),
            Self::EndUnanswered => (Action::TerminateInstances, Phase::After),
            Self::LaunchUnheard => (Action::RunInstances, Phase::Before),
            Self::LaunchUnanswered => (Action::RunInstances, Phase::After),
            Self::Booting => return cloud::boot_within(emulator, Some(LONG)),
        };
        emulator.add_fault(FaultRule::nth(action, 1, Fault::Hang { phase }));
    }

    /// Lets the cloud go on. What hung is lost with the process that sent it.
    pub(crate) fn release(self, emulator: &Ec2Emulator) {
        match self {
            Self::EndUnheard
            | Self::EndUnanswered
            | Self::LaunchUnheard
            | Self::LaunchUnanswered => emulator.clear_faults(),
            Self::Booting => {
                cloud::boot_within(emulator, None);
                emulator.advance(LONG);
            }
        }
    }

    /// Whether it is now: by the machines that the cloud has launched for a server, oldest first, and the server's record.
    pub(crate) fn is_now(
        self,
        emulator: &Ec2Emulator,
        machines: &[OracleInstance],
        server: &Server,
    ) -> bool {
        let has_struck = emulator.unused_faults().is_empty();
        let ending_is_stored = server
            .machine
            .as_ref()
            .is_some_and(|machine| machine.incarnation == 1 && machine.termination.is_some());
        let launch = server.launch.as_ref();
        let launch_is_stored = launch.is_some_and(|launch| launch.incarnation == 2);
        let successor_is_stored = server
            .machine
            .as_ref()
            .is_some_and(|machine| machine.incarnation == 2);
        let states: Vec<_> = machines
            .iter()
            .map(|machine| machine.state.as_str())
            .collect();
        match self {
            Self::EndUnheard => has_struck && ending_is_stored && states == ["running"],
            Self::EndUnanswered => {
                has_struck && ending_is_stored && states.len() == 1 && states != ["running"]
            }
            Self::LaunchUnheard => has_struck && launch_is_stored && states == ["terminated"],
            Self::LaunchUnanswered => {
                has_struck && launch_is_stored && !successor_is_stored && states.len() == 2
            }
            Self::Booting => successor_is_stored && states == ["terminated", "pending"],
        }
    }
}
