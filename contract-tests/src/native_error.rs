//! The errors that a cloud really sends, each with what it means.
//!
//! Owns the vocabulary of a table: a harness lists its cloud's errors, and ERRORS-15 and ERRORS-16 judge what a
//! backend makes of each. A fault of the kit, such as [`WireFault::Quota`](crate::WireFault::Quota), is one error of
//! several that mean the same; with such a table, the others are judged, too.

use std::fmt;

use fleetwright::{ErrorKind, InstanceConfig, Operation, Placement};

/// An error of a cloud's API, as the cloud sends it, and what it means.
///
/// ```
/// use fleetwright::{InstanceConfig, Operation, Placement, Zone};
/// use fleetwright_contract_tests::{Meaning, NativeError};
///
/// let mut here = InstanceConfig::builder("image", "small").build()?;
/// here.placement.zone = Some(Zone::new("zone-a")?);
/// let mut elsewhere = here.clone();
/// elsewhere.placement.zone = Some(Zone::new("zone-b")?);
///
/// let sold_out = NativeError::new("SoldOut", Meaning::Capacity)
///     .with_status(409)
///     .with_message("no machine is free in zone-a")
///     .launched_in(here.placement.clone())
///     .concerning([here])
///     .sparing([elsewhere]);
/// assert_eq!(sold_out.calls, [Operation::LaunchInstance, Operation::LaunchInstances]);
/// # Ok::<(), fleetwright::InvalidValue>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NativeError {
    /// The cloud's code. Empty if the error has none.
    pub code: String,
    /// The HTTP status, if it comes with a response that has one.
    pub status: Option<u16>,
    /// The cloud's message.
    pub message: String,
    /// What it means.
    pub meaning: Meaning,
    /// The calls that can fail with it. Each is made once.
    pub calls: Vec<Operation>,
    /// The placement of the launch that fails with it, if that is not the one of [`Harness::config`](crate::Harness::config).
    pub placement: Option<Placement>,
    /// Launches that would fail, too: the scope of the error must cover each.
    pub concerns: Vec<InstanceConfig>,
    /// Launches that could succeed: the scope of the error must cover none.
    pub spares: Vec<InstanceConfig>,
}

impl NativeError {
    /// Creates an error of the calls that can have this meaning: launches, or each of the seven calls that every backend has.
    pub fn new(code: impl Into<String>, meaning: Meaning) -> Self {
        Self {
            code: code.into(),
            status: None,
            message: String::new(),
            calls: meaning.calls(),
            meaning,
            placement: None,
            concerns: Vec::new(),
            spares: Vec::new(),
        }
    }

    /// Sets the HTTP status.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    /// Sets the message.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }

    /// Sets the calls that can fail with it.
    #[must_use]
    pub fn of_calls(mut self, calls: impl IntoIterator<Item = Operation>) -> Self {
        self.calls = calls.into_iter().collect();
        self
    }

    /// Sets the placement of the launch that fails with it.
    #[must_use]
    pub fn launched_in(mut self, placement: Placement) -> Self {
        self.placement = Some(placement);
        self
    }

    /// Adds launches that would fail, too.
    #[must_use]
    pub fn concerning(mut self, configs: impl IntoIterator<Item = InstanceConfig>) -> Self {
        self.concerns.extend(configs);
        self
    }

    /// Adds launches that could succeed.
    #[must_use]
    pub fn sparing(mut self, configs: impl IntoIterator<Item = InstanceConfig>) -> Self {
        self.spares.extend(configs);
        self
    }
}

impl fmt::Display for NativeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = if self.code.is_empty() {
            "no code"
        } else {
            &self.code
        };
        f.write_str(code)?;
        if let Some(status) = self.status {
            write!(f, " with status {status}")?;
        }
        if self.message.is_empty() {
            Ok(())
        } else {
            write!(f, " ({})", self.message)
        }
    }
}

/// What an error of a cloud means. Each but [`Outage`](Self::Outage) is a refusal, which has changed nothing.
///
/// ```
/// use fleetwright::ErrorKind;
/// use fleetwright_contract_tests::Meaning;
///
/// assert_eq!(Meaning::BadCredentials.kind(), ErrorKind::Unauthenticated);
/// assert_eq!(Meaning::invalid("disk size").kind(), ErrorKind::Invalid);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Meaning {
    /// Too many calls: throttled, with a delay.
    Throttled,
    /// The credentials are not, or no longer, valid: unauthenticated.
    BadCredentials,
    /// The credentials are valid and do not allow the call: forbidden.
    Forbidden,
    /// The cloud has no machine, address or the like for the launch: capacity.
    Capacity,
    /// A limit of the account is reached: quota.
    Quota,
    /// A value of the request is refused, and a repetition has the same result: invalid.
    Invalid {
        /// The field that the error must name. `None` if the cloud does not say which one it is.
        field: Option<String>,
    },
    /// The cloud does not offer the call for this instance: unsupported.
    Unsupported,
    /// Another change has to end first: a conflict, with a delay. Name only calls that do not wait for its end by themselves.
    Conflict,
    /// The launch token was used for an instance that is gone: token spent.
    TokenSpent,
    /// The cloud, or something between it and the caller, has broken down: unavailable and retryable, with an unknown effect
    /// of a change.
    Outage,
    /// A refusal by something between the caller and the cloud, which says nothing about the cloud: unexpected.
    NotOfTheCloud,
}

impl Meaning {
    /// A refused value of this field.
    pub fn invalid(field: &str) -> Self {
        Self::Invalid {
            field: Some(field.to_owned()),
        }
    }

    /// Returns the kind of error that the contract requires for it.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Throttled => ErrorKind::Throttled,
            Self::BadCredentials => ErrorKind::Unauthenticated,
            Self::Forbidden => ErrorKind::Forbidden,
            Self::Capacity => ErrorKind::Capacity,
            Self::Quota => ErrorKind::Quota,
            Self::Invalid { .. } => ErrorKind::Invalid,
            Self::Unsupported => ErrorKind::Unsupported,
            Self::Conflict => ErrorKind::Conflict,
            Self::TokenSpent => ErrorKind::TokenSpent,
            Self::Outage => ErrorKind::Unavailable,
            Self::NotOfTheCloud => ErrorKind::Unexpected,
        }
    }

    /// Returns the calls that can have it, unless the harness says otherwise.
    fn calls(&self) -> Vec<Operation> {
        match self {
            Self::Capacity | Self::Quota | Self::Invalid { .. } => {
                vec![Operation::LaunchInstance, Operation::LaunchInstances]
            }
            Self::TokenSpent => vec![Operation::LaunchInstance],
            Self::Unsupported | Self::Conflict => vec![Operation::StopInstance],
            Self::Throttled
            | Self::BadCredentials
            | Self::Forbidden
            | Self::Outage
            | Self::NotOfTheCloud => vec![
                Operation::DescribeInstance,
                Operation::ListInstances,
                Operation::FindLaunch,
                Operation::LaunchInstance,
                Operation::LaunchInstances,
                Operation::StopInstance,
                Operation::StartInstance,
                Operation::TerminateInstance,
            ],
        }
    }
}
