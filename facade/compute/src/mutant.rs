//! Mistakes that a service or a controller of instances could make, to be made on purpose.
//!
//! The simulation and the table of tenants prove with them that they would find such mistakes. Without the feature `mutants` none
//! can be chosen, and the questions below are constants.

macro_rules! mutants {
    ($($(#[$docs:meta])* $name:ident = $text:literal,)*) => {
        /// A mistake.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Mutant {
            $($(#[$docs])* $name,)*
        }

        impl Mutant {
            /// Every mistake.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// What it is called on a command line.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

mutants! {
    /// A destructive change is taken without consent.
    ConsentSkipped = "consent-skipped",
    /// A change without consent keeps the consent of the one before.
    ConsentKept = "consent-kept",
    /// The server is changed with consent, whatever the tenant agreed to.
    ConsentAssumed = "consent-assumed",
    /// Quota is charged in a transaction of its own, before that of the instance.
    ChargeOutsideTransaction = "charge-outside-transaction",
    /// A change of flavor or address is not charged.
    RechargeForgotten = "recharge-forgotten",
    /// Quota is released when the deletion is asked for, and once more at its end.
    ReleasedTwice = "released-twice",
    /// The instance goes and its payment stays.
    ReleaseForgotten = "release-forgotten",
    /// The instance goes before its server.
    DeleteOrderSwapped = "delete-order-swapped",
    /// A deletion asks for the end of the server only if the status knows of one.
    DeleteGatedOnStatus = "delete-gated-on-status",
    /// Verbs are judged by the permission to read.
    VerbForReader = "verb-for-reader",
    /// What is hidden from a tenant is refused instead of absent.
    HiddenIsRefused = "hidden-is-refused",
    /// A change leaves no event.
    EventLost = "event-lost",
    /// A change does not raise the generation.
    GenerationNotRaised = "generation-not-raised",
    /// A second creation of a name replaces the first.
    CreateOverwrites = "create-overwrites",
    /// A network that is going takes new instances.
    GroundNotChecked = "ground-not-checked",
    /// The wish to be stopped is not in the record.
    StopNotStored = "stop-not-stored",
    /// What is asked after the creation is not passed on to the server.
    WishNotPassedOn = "wish-not-passed-on",
    /// A generation counts as true as soon as it was passed on.
    SettledEarly = "settled-early",
    /// A server that is missing is made anew, by nobody's word.
    MissingMadeAgain = "missing-made-again",
    /// Instances of a network that is going stay.
    NetworkForgotten = "network-forgotten",
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
