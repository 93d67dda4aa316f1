//! Where things go wrong, and how: data, so that a history can be shrunk.

use std::fmt;

mod site;

pub use site::Site;

/// What goes wrong with a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// The process dies before the step.
    CrashBefore,
    /// The process dies after the step, and nobody learns its answer.
    CrashAfter,
    /// It is refused, without effect.
    Error,
    /// Its request is lost: no effect, and nobody knows.
    LostRequest,
    /// Its reply is lost: it had its effect, and nobody knows.
    LostReply,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 5] = [
        Self::CrashBefore,
        Self::CrashAfter,
        Self::Error,
        Self::LostRequest,
        Self::LostReply,
    ];
}

/// How many pairs of a step and a kind there are.
pub const PAIRS: usize = Site::ALL.len() * Kind::ALL.len();

/// The pair with this number, counted over and over.
pub fn pair(number: u64) -> (Site, Kind) {
    let sites = Site::ALL.len() as u64;
    let (round, site) = (number / sites, number % sites);
    let kind = round % Kind::ALL.len() as u64;
    // Both are within their arrays.
    (Site::ALL[site as usize], Kind::ALL[kind as usize])
}

/// The seeds whose first fault is at this step, in order.
pub fn aimed_at(site: Site) -> impl Iterator<Item = u64> {
    (0..).filter(move |seed| pair(*seed).0 == site)
}

/// One thing that goes wrong: the `nth` time that a step is made, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// At which step.
    pub site: Site,
    /// Which time.
    pub nth: u64,
    /// How.
    pub kind: Kind,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {:?} #{}", self.kind, self.site, self.nth)
    }
}
