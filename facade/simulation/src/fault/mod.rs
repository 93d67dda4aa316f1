//! Faults as data (where, when, what), so that a failing scenario can be shrunk.

use std::fmt;

mod point;

pub use point::FaultPoint;

/// What an injected fault does to a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaultKind {
    /// The process crashes before the step.
    CrashBefore,
    /// The process crashes after the step, so that its result is lost.
    CrashAfter,
    /// The step fails without effect, and the caller knows that.
    Error,
    /// The request is lost: no effect, and the caller gets an unknown outcome.
    LostRequest,
    /// The response is lost: the step took effect, and the caller gets an unknown outcome.
    LostResponse,
}

impl FaultKind {
    /// Every kind.
    pub const ALL: [Self; 5] = [
        Self::CrashBefore,
        Self::CrashAfter,
        Self::Error,
        Self::LostRequest,
        Self::LostResponse,
    ];

    /// The name in the summary.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CrashBefore => "crash-before",
            Self::CrashAfter => "crash-after",
            Self::Error => "error",
            Self::LostRequest => "lost-request",
            Self::LostResponse => "lost-response",
        }
    }
}

/// The number of pairs of fault point and fault kind.
pub const PAIRS: usize = FaultPoint::ALL.len() * FaultKind::ALL.len();

/// Returns the pair with this number, modulo [`PAIRS`].
pub fn pair(number: u64) -> (FaultPoint, FaultKind) {
    let points = FaultPoint::ALL.len() as u64;
    let (round, point) = (number / points, number % points);
    let kind = round % FaultKind::ALL.len() as u64;
    // Both indices are below the lengths of their arrays.
    (
        FaultPoint::ALL[point as usize],
        FaultKind::ALL[kind as usize],
    )
}

/// Returns the seeds whose first fault is at this point, in ascending order.
pub fn seeds_targeting(point: FaultPoint) -> impl Iterator<Item = u64> {
    (0..).filter(move |seed| pair(*seed).0 == point)
}

/// One fault: it is injected the `nth` time that a step runs, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The step.
    pub point: FaultPoint,
    /// Which run of the step, counted from 1.
    pub nth: u64,
    /// What happens.
    pub kind: FaultKind,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {:?} #{}", self.kind, self.point, self.nth)
    }
}
