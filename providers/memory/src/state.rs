//! The native states of the simulated cloud, and what they are in the shared words. Pure.
//!
//! The cloud has a vocabulary of its own, as real ones do, so that normalizing is exercised and a
//! state that nobody knows can be simulated.

use fleetwright::CloudInstanceState;

/// A state as the simulated cloud keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NativeState {
    Provisioning,
    Active,
    Reimaging,
    Halting,
    Halted,
    Deleting,
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

    /// The cloud's word for it.
    pub(crate) const fn word(self) -> &'static str {
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

    /// Whether the instance is destroyed or about to be.
    pub(crate) const fn is_ending(self) -> bool {
        matches!(self, Self::Deleting | Self::Deleted)
    }
}

/// What a native word means. A word that nobody knows is pending: never running, never terminated.
pub(crate) fn normalize(word: &str) -> CloudInstanceState {
    match word {
        "ACTIVE" => CloudInstanceState::Running,
        "HALTING" => CloudInstanceState::Stopping,
        "HALTED" => CloudInstanceState::Stopped,
        "DELETING" => CloudInstanceState::Terminating,
        "DELETED" => CloudInstanceState::Terminated,
        // "PROVISIONING", "REIMAGING" and whatever a later cloud may say.
        _ => CloudInstanceState::Pending,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_has_its_meaning() {
        let meanings = NativeState::ALL.map(|state| normalize(state.word()).as_str());
        assert_eq!(
            meanings.join(" "),
            "pending running pending stopping stopped terminating terminated"
        );
        let ending: Vec<_> = NativeState::ALL
            .into_iter()
            .filter(|s| s.is_ending())
            .map(NativeState::word)
            .collect();
        assert_eq!(ending, ["DELETING", "DELETED"]);
    }

    #[test]
    fn an_unknown_word_is_pending() {
        for word in ["", "active", "DEFROSTING"] {
            assert_eq!(normalize(word), CloudInstanceState::Pending);
        }
    }
}
