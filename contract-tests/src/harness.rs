//! What a backend's author gives the kit.
//!
//! A [`Harness`] is one account, fresh for each clause. Four methods are required; what else a test
//! environment can do (tell the truth, inject faults, change things from outside) is optional, and a
//! clause that needs it is reported as not run where it is missing, never as passed.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use fleetwright::{
    InstanceConfig, InstanceId, InstanceInfo, InstanceProvisioner, Scope, Tags, Zone,
};

use crate::waiver::Peer;

/// One account of a backend, made anew for each clause.
///
/// In an account that is shared, for instance a real one, clauses stay apart by their tags: all that
/// the kit launches carries [`SCOPE_TAG`](crate::SCOPE_TAG) with a value of its own.
#[async_trait]
pub trait Harness: Send + Sync {
    /// The backend's name, as reports show it.
    fn name(&self) -> String;

    /// A new handle on the account, as a process that has just started would open it.
    async fn open(&self) -> Arc<dyn InstanceProvisioner>;

    /// A config that launches here: an image and a type that exist. The kit adds tags and tokens.
    fn config(&self) -> InstanceConfig;

    /// A well-formed id that no instance has or ever had.
    fn unknown_id(&self) -> InstanceId;

    /// How time passes.
    fn time(&self) -> Time {
        Time::Real
    }

    /// How long anything may take: a call, a transition. In virtual time, be generous.
    fn budget(&self) -> Duration {
        Duration::from_secs(300)
    }

    /// An image that does not exist here, if the backend checks images when it launches.
    fn unknown_image(&self) -> Option<fleetwright::ImageId> {
        None
    }

    /// A second image, for reimaging.
    fn other_image(&self) -> Option<fleetwright::ImageId> {
        None
    }

    /// A second type of machine, for resizing and for "same token, other config".
    fn other_type(&self) -> Option<fleetwright::InstanceType> {
        None
    }

    /// A zone that launches can name.
    fn zone(&self) -> Option<Zone> {
        None
    }

    /// The truth, out of band.
    fn oracle(&self) -> Option<Arc<dyn Oracle>> {
        None
    }

    /// What goes wrong on the wire.
    fn faults(&self) -> Option<Arc<dyn Faults>> {
        None
    }

    /// Changes from outside.
    fn outsider(&self) -> Option<Arc<dyn Outsider>> {
        None
    }

    /// What the backend is tested against, where that is not the real thing: waivers go by it.
    fn peer(&self) -> Option<Peer> {
        None
    }

    /// The text of the file of waivers, as `include_str!` brings it; see [`waiver`](crate::waiver).
    fn waivers(&self) -> String {
        String::new()
    }

    /// What to do about a clause that needs what this harness does not offer.
    fn when_missing(&self) -> Missing {
        Missing::Fails
    }

    /// How a program waits for a state: the core's way, unless a mutant of it is under test.
    fn waiter(&self) -> Arc<dyn Waiter> {
        Arc::new(CoreWaiter)
    }
}

/// How time passes under a harness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    /// Real time and real sockets: transitions should be fast, and polls are a few milliseconds.
    Real,
    /// Tokio's paused clock: hours pass in no time. Never with sockets.
    Virtual,
}

/// What becomes of a clause that needs what a harness does not offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Its test fails and says what to offer: nothing is skipped in silence.
    Fails,
    /// It is reported as not run, and the backend as not conformant. For a live account, or while
    /// a harness is being written.
    StaysNotRun,
}

/// The truth about an instance, as the cloud itself knows it.
#[derive(Clone, Debug)]
pub struct Truth {
    /// As a read without lag would show it.
    pub info: InstanceInfo,
    /// What it was given to run, to the byte.
    pub user_data: Option<Vec<u8>>,
    /// The size of its root disk, while that exists.
    pub disk_size_gb: Option<u32>,
    /// Whether it occupies a machine that is paid for.
    pub holds_machine: bool,
    /// How often it has booted, where the cloud counts that.
    pub boots: Option<u32>,
}

/// The truth out of band: it never lags, and looking changes nothing.
#[async_trait]
pub trait Oracle: Send + Sync {
    /// Every instance with `tags` that the cloud has a record of, terminated ones too.
    async fn instances(&self, tags: &Tags) -> Vec<Truth>;

    /// What exists of the instances with `tags` and costs money, in words: instances that are not
    /// terminated, disks, network cards, addresses.
    async fn leftovers(&self, tags: &Tags) -> Vec<String>;

    /// How many calls the cloud has been sent.
    async fn calls(&self) -> u64;
}

/// Which calls on the wire a fault strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireOp {
    /// Whatever is called.
    Any,
    /// The call that creates.
    Launch,
    /// The call that destroys.
    Terminate,
    /// The call that stops.
    Stop,
    /// The call that starts.
    Start,
    /// The call that describes by id.
    Describe,
    /// One page of a list.
    List,
    /// The look-up of a launch by its token.
    FindLaunch,
    /// The change of tags.
    UpdateTags,
}

/// Something that goes wrong with one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WireFault {
    /// Refused: too many calls, come back after this time.
    Throttled(Duration),
    /// Refused: the credentials expired.
    BadCredentials,
    /// Refused: the credentials do not allow it.
    Forbidden,
    /// Refused: nothing is free.
    Capacity,
    /// Refused: the account's limit is reached.
    Quota,
    /// The request never arrives.
    RequestLost,
    /// The call is carried out and its reply never arrives.
    ReplyLost,
    /// An internal error, and nothing was done.
    ServerErrorBefore,
    /// An internal error, and the call was carried out all the same.
    ServerErrorAfter,
    /// The call is carried out, and its answer cannot be read.
    Malformed,
    /// A read shows the oldest that the consistency window allows.
    StaleRead,
    /// The answer shows a native state that nobody knows.
    UnknownState(String),
    /// A launch is accepted and then fails, with this code in its reason.
    FailsLate(String),
    /// The call never ends and has no effect.
    Hang,
    /// The calling process dies before the call has its effect: none of the handle's calls ends.
    CrashBefore,
    /// The calling process dies after the call had its effect.
    CrashAfter,
}

impl WireFault {
    /// The faults after which nobody knows what happened, for sweeps.
    pub const AMBIGUOUS: [Self; 5] = [
        Self::RequestLost,
        Self::ReplyLost,
        Self::ServerErrorBefore,
        Self::ServerErrorAfter,
        Self::Malformed,
    ];
}

/// Injects faults between every handle of the account and the cloud.
#[async_trait]
pub trait Faults: Send + Sync {
    /// Whether this fault can be injected here.
    fn offers(&self, fault: &WireFault) -> bool;

    /// Strikes call number `nth` (from 1, counted from now) of `operation`.
    async fn strike(&self, operation: WireOp, nth: u64, fault: WireFault);

    /// Strikes every call of `operation` from now on.
    async fn strike_always(&self, operation: WireOp, fault: WireFault);

    /// Takes all faults away, and tells whether each of them has struck.
    async fn clear(&self) -> bool;
}

/// Changes things past every handle, as other people, other programs and the cloud do.
#[async_trait]
pub trait Outsider: Send + Sync {
    /// Launches an instance with these tags that no handle knows of.
    async fn launch(&self, tags: Tags) -> InstanceId;

    /// Stops an instance.
    async fn stop(&self, id: &InstanceId);

    /// Terminates an instance.
    async fn terminate(&self, id: &InstanceId);

    /// Makes a part unreachable in which `id` lives, and names it as gaps do; nothing where the
    /// cloud has no parts that fail alone.
    async fn cut_off(&self, id: &InstanceId) -> Option<Scope>;

    /// Makes every part reachable again, and takes back [`only_room_for`](Self::only_room_for).
    async fn reconnect(&self);

    /// Leaves machines for only `count` more instances; `false` where that cannot be arranged.
    async fn only_room_for(&self, _count: u64) -> bool {
        false
    }
}

/// Waits for a state, as a program that uses the backend does.
#[async_trait]
pub trait Waiter: Send + Sync {
    /// See [`fleetwright::wait::for_state`].
    async fn for_state(
        &self,
        provisioner: &dyn InstanceProvisioner,
        ids: &[InstanceId],
        goal: fleetwright::CloudInstanceState,
        policy: &fleetwright::wait::WaitPolicy,
    ) -> Result<Vec<fleetwright::InstanceStatus>, fleetwright::wait::WaitError>;
}

/// The core's own way.
#[derive(Clone, Copy, Debug)]
pub struct CoreWaiter;

#[async_trait]
impl Waiter for CoreWaiter {
    async fn for_state(
        &self,
        provisioner: &dyn InstanceProvisioner,
        ids: &[InstanceId],
        goal: fleetwright::CloudInstanceState,
        policy: &fleetwright::wait::WaitPolicy,
    ) -> Result<Vec<fleetwright::InstanceStatus>, fleetwright::wait::WaitError> {
        fleetwright::wait::for_state(provisioner, ids, goal, policy).await
    }
}
