//! Mistakes made on purpose, at the seams between the façade and what it runs on.
//!
//! A mistake proves that the simulation finds one kind of bug. It is made outside the code under
//! test: by a store that changes what one part reads or writes, a cloud that misreports, a
//! dependency checker that does not check, or a wrong configuration. The code under test has no
//! hooks for it. Bugs that cannot be made here are patches, in `facade/simulation/mistakes`, which
//! `scripts/simulation-mistakes` applies to a copy of the sources.

use crate::fault::FaultPoint;

mod cloud;
mod dependencies;
mod store;

pub use cloud::MistakenCloud;
pub use dependencies::MistakenDependencies;
pub use store::MistakenStore;

macro_rules! mistakes {
    ($($(#[$docs:meta])* $name:ident = $text:literal,)*) => {
        /// A mistake at a seam.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Mistake {
            $($(#[$docs])* $name,)*
        }

        impl Mistake {
            /// Every mistake.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The name on the command line.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

mistakes! {
    /// Store: the commit of a new launch reports success to the server controller, but stores nothing.
    TokenNotStored = "token-not-stored",
    /// Cloud: a launch is looked up by the server's tag instead of its token, so that a machine of
    /// another region can match.
    AdoptByTag = "adopt-by-tag",
    /// Store: the server controller reads that a replaced server must run, whatever was requested.
    StopLostOnReplace = "stop-lost-on-replace",
    /// Configuration: the server controller repeats a failed call without a delay.
    BackoffIgnored = "backoff-ignored",
    /// Cloud: the capabilities declare that reads are never stale.
    MissingInWindow = "missing-in-window",
    /// Cloud: the monitor gets an incomplete list as a complete one, and "not found" for what
    /// cannot be reached.
    MissingOnIncompleteList = "missing-on-incomplete-list",
    /// Cloud: the monitor gets an incomplete list as a complete one.
    TerminateOnIncompleteList = "terminate-on-incomplete-list",
    /// Store and configuration: the monitor reads that a pending launch has a successor, and takes a
    /// machine for an orphan at any age.
    TerminatePendingLaunches = "terminate-pending-launches",
    /// Cloud: every listed machine carries the region's tag.
    TerminateForeign = "terminate-foreign",
    /// Cloud: a list that fails is returned as a complete list of what was read before.
    ScanWithoutList = "scan-without-list",
    /// Store: a change without consent keeps the consent that was given to the change before it.
    ConsentKept = "consent-kept",
    /// Store: every instance that the instance controller reads has consent.
    ConsentAssumed = "consent-assumed",
    /// Store: the charge for a new instance is committed in a transaction of its own, before the
    /// instance.
    ChargeOutsideTransaction = "charge-outside-transaction",
    /// Store: a change of flavor or address is not charged.
    RechargeForgotten = "recharge-forgotten",
    /// Store: a deleted instance stays charged.
    ReleaseForgotten = "release-forgotten",
    /// Store: a change leaves no event.
    EventLost = "event-lost",
    /// Store: a change does not raise the generation.
    GenerationNotRaised = "generation-not-raised",
    /// Dependency checker: the network of a new instance is not checked.
    NetworkNotChecked = "network-not-checked",
    /// Store: the request to stop an instance is not stored.
    StopNotStored = "stop-not-stored",
    /// Store: the commit of a server's changed desired state reports success to the instance controller,
    /// but stores nothing.
    DesiredStateNotApplied = "desired-state-not-applied",
    /// Store: an instance's generation counts as observed as soon as it is stored in the server.
    ObservedEarly = "observed-early",
    /// Store: if a server is missing, its instance reads as if it never had one, so that the instance
    /// controller creates another.
    MissingServerRecreated = "missing-server-recreated",
    /// Cloud: a launch gets a larger type than it requests.
    LaunchLarger = "launch-larger",
    /// Cloud: a deletion of an image is reported as done and is not.
    ImageNotDeleted = "image-not-deleted",
    /// Store: a new image is not charged.
    ImageNotCharged = "image-not-charged",
    /// Store: a deleted network stays charged.
    NetworkReleaseForgotten = "network-release-forgotten",
    /// Configuration: the user data of launches is not sealed.
    UserDataInClear = "user-data-in-clear",
    /// Store: the instances of a network that is being deleted are not marked for deletion.
    NetworkInstancesKept = "network-instances-kept",
}

impl Mistake {
    /// Returns the fault point whose seeds are tried first, because they show the mistake soonest.
    /// `None` if any seeds show it soon.
    pub const fn target(self) -> Option<FaultPoint> {
        match self {
            Self::AdoptByTag => Some(FaultPoint::FindLaunch),
            Self::StopLostOnReplace => Some(FaultPoint::Start),
            Self::BackoffIgnored => Some(FaultPoint::RecordResult),
            Self::MissingInWindow => Some(FaultPoint::RecordMachine),
            Self::MissingOnIncompleteList
            | Self::TerminateOnIncompleteList
            | Self::TerminateForeign => Some(FaultPoint::TerminateOrphan),
            Self::TerminatePendingLaunches => Some(FaultPoint::Launch),
            Self::ScanWithoutList => Some(FaultPoint::List),
            Self::ConsentKept | Self::ConsentAssumed => Some(FaultPoint::ApplyToServer),
            Self::RechargeForgotten => Some(FaultPoint::Recharge),
            Self::ReleaseForgotten => Some(FaultPoint::MarkDeleted),
            Self::NetworkNotChecked
            | Self::NetworkInstancesKept
            | Self::NetworkReleaseForgotten => Some(FaultPoint::DeleteNetwork),
            Self::ImageNotDeleted => Some(FaultPoint::DeleteImage),
            Self::ImageNotCharged => Some(FaultPoint::RequestImage),
            Self::StopNotStored => Some(FaultPoint::Stop),
            Self::MissingServerRecreated => Some(FaultPoint::OperatorWrite),
            Self::TokenNotStored
            | Self::ChargeOutsideTransaction
            | Self::LaunchLarger
            | Self::EventLost
            | Self::GenerationNotRaised
            | Self::DesiredStateNotApplied
            | Self::UserDataInClear
            | Self::ObservedEarly => None,
        }
    }
}
