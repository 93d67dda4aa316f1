//! Where things go wrong, and how: data, so that a history can be shrunk.

use std::fmt;

/// A step: a commit of the store, or a call of the cloud, by whom and what for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each is what its name says")]
pub enum Site {
    /// The service makes a record.
    Make,
    /// The service writes a wish.
    Ask,
    /// The controller writes down a new launch.
    Begin,
    /// The controller writes down that a launch is sent again.
    Resend,
    /// The controller writes down the machine of a launch.
    Record,
    /// The controller writes down that a machine is to go.
    Ending,
    /// The controller writes down that the cloud accepted that.
    Ended,
    /// The controller writes down that a change in place is about to be sent.
    Attempt,
    /// The controller writes down a change in place.
    Change,
    /// The controller writes down what failed, what is settled, or that all is done.
    Note,
    /// The controller deletes a record.
    Forget,
    /// The monitor writes what it saw.
    Observe,
    /// The monitor writes the pulse.
    Beat,
    Launch,
    FindLaunch,
    Terminate,
    Start,
    Stop,
    Reboot,
    Resize,
    Reimage,
    Retag,
    List,
    Describe,
    /// The monitor destroys an orphan.
    Sweep,
}

impl Site {
    /// Every step.
    pub const ALL: [Self; 25] = [
        Self::Make,
        Self::Ask,
        Self::Begin,
        Self::Resend,
        Self::Record,
        Self::Ending,
        Self::Ended,
        Self::Attempt,
        Self::Change,
        Self::Note,
        Self::Forget,
        Self::Observe,
        Self::Beat,
        Self::Launch,
        Self::FindLaunch,
        Self::Terminate,
        Self::Start,
        Self::Stop,
        Self::Reboot,
        Self::Resize,
        Self::Reimage,
        Self::Retag,
        Self::List,
        Self::Describe,
        Self::Sweep,
    ];
}

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
