//! Mistakes that a controller or a monitor could make, to be made on purpose.
//!
//! The simulation proves with them that it would find such mistakes. Without the feature `mutants` none can be chosen, and
//! the questions below are constants.

/// A mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mutant {
    /// A launch is sent before its token is stored.
    TokenNotStored,
    /// A new launch takes the incarnation, and with it the token, of the one before.
    IncarnationNotRaised,
    /// What may be an earlier launch is looked up by the server's tag, whoever owns the machine.
    AdoptByTag,
    /// A machine that had booted and is gone is launched again.
    AttemptAfterBoot,
    /// A record is deleted when the cloud was asked, whatever it answered.
    ForgetEarly,
    /// A server that was replaced runs, whatever was asked for.
    StopLostOnReplace,
    /// The successor is launched without waiting for the end of the machine it replaces.
    ReplaceBeforeEnd,
    /// A call that failed is repeated at once.
    BackoffIgnored,
    /// An absent machine is missing, also within the consistency window.
    MissingInWindow,
    /// An absent machine is missing, also when the list has gaps.
    MissingOnIncompleteList,
    /// Orphans are swept, also when the list has gaps.
    SweepOnIncompleteList,
    /// A machine whose launch is not settled yet counts as an orphan.
    SweepUnsettled,
    /// A machine without the region's tag counts as an orphan.
    SweepForeign,
    /// The pulse goes on although nothing was seen.
    PulseWithoutLook,
}

impl Mutant {
    /// Every mistake.
    pub const ALL: [Self; 14] = [
        Self::TokenNotStored,
        Self::IncarnationNotRaised,
        Self::AdoptByTag,
        Self::AttemptAfterBoot,
        Self::ForgetEarly,
        Self::StopLostOnReplace,
        Self::ReplaceBeforeEnd,
        Self::BackoffIgnored,
        Self::MissingInWindow,
        Self::MissingOnIncompleteList,
        Self::SweepOnIncompleteList,
        Self::SweepUnsettled,
        Self::SweepForeign,
        Self::PulseWithoutLook,
    ];

    /// What it is called on a command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TokenNotStored => "token-not-stored",
            Self::IncarnationNotRaised => "incarnation-not-raised",
            Self::AdoptByTag => "adopt-by-tag",
            Self::AttemptAfterBoot => "attempt-after-boot",
            Self::ForgetEarly => "forget-early",
            Self::StopLostOnReplace => "stop-lost-on-replace",
            Self::ReplaceBeforeEnd => "replace-before-end",
            Self::BackoffIgnored => "backoff-ignored",
            Self::MissingInWindow => "missing-in-window",
            Self::MissingOnIncompleteList => "missing-on-incomplete-list",
            Self::SweepOnIncompleteList => "sweep-on-incomplete-list",
            Self::SweepUnsettled => "sweep-unsettled",
            Self::SweepForeign => "sweep-foreign",
            Self::PulseWithoutLook => "pulse-without-look",
        }
    }
}

/// Which mistake is made, if any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chosen {
    #[cfg(feature = "mutants")]
    mutant: Option<Mutant>,
}

impl Chosen {
    /// Makes this mistake.
    #[cfg(feature = "mutants")]
    pub const fn new(mutant: Mutant) -> Self {
        Self {
            mutant: Some(mutant),
        }
    }

    /// Whether this mistake is made.
    #[cfg(feature = "mutants")]
    pub(crate) fn is(self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }

    /// Without the feature, none is.
    #[cfg(not(feature = "mutants"))]
    pub(crate) fn is(self, _: Mutant) -> bool {
        false
    }
}
