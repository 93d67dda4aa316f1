//! The native states of the simulated cloud, and their mapping to [`CloudInstanceState`]. Pure.
//!
//! The cloud has its own state names, as real clouds do, so that tests exercise the mapping and can
//! simulate a state that the provider does not know.

use fleetwright::CloudInstanceState;

/// A state in the terms of the simulated cloud.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NativeState {
    /// Booting after a launch or a start.
    Provisioning,
    /// Running.
    Active,
    /// Running, with the new image being installed.
    Reimaging,
    /// Stopping.
    Halting,
    /// Stopped.
    Halted,
    /// Terminating.
    Deleting,
    /// Terminated.
    Deleted,
}

impl NativeState {
    #[cfg(test)]
    const ALL: [Self; 7] = [
        Self::Provisioning,
        Self::Active,
        Self::Reimaging,
        Self::Halting,
        Self::Halted,
        Self::Deleting,
        Self::Deleted,
    ];

    /// Returns the cloud's name of the state.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Provisioning => "PROVISIONING",
            Self::Active => "ACTIVE",
            Self::Reimaging => "REIMAGING",
            Self::Halting => "HALTING",
            Self::Halted => "HALTED",
            Self::Deleting => "DELETING",
            Self::Deleted => "DELETED",
        }
    }

    /// Whether the instance is terminating or terminated.
    pub(crate) const fn is_ending(self) -> bool {
        matches!(self, Self::Deleting | Self::Deleted)
    }
}

/// Maps a native state name. An unknown name is pending: never running, never terminated.
pub(crate) fn normalize(name: &str) -> CloudInstanceState {
    match name {
        "ACTIVE" => CloudInstanceState::Running,
        "HALTING" => CloudInstanceState::Stopping,
        "HALTED" => CloudInstanceState::Stopped,
        "DELETING" => CloudInstanceState::Terminating,
        "DELETED" => CloudInstanceState::Terminated,
        // "PROVISIONING", "REIMAGING" and names that a later version of the cloud may add.
        _ => CloudInstanceState::Pending,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_native_state_maps_to_its_state() {
        let states = NativeState::ALL.map(|state| normalize(state.as_str()).as_str());
        assert_eq!(
            states.join(" "),
            "pending running pending stopping stopped terminating terminated"
        );
        let ending: Vec<_> = NativeState::ALL
            .into_iter()
            .filter(|s| s.is_ending())
            .map(NativeState::as_str)
            .collect();
        assert_eq!(ending, ["DELETING", "DELETED"]);
    }

    #[test]
    fn unknown_native_state_is_pending() {
        for name in ["", "active", "DEFROSTING"] {
            assert_eq!(normalize(name), CloudInstanceState::Pending);
        }
    }
}
