//! What a scenario has to have for a step to come about.

use std::time::Duration;

use super::{Change, Op, Word};
use crate::{fault::Site, names::FIRST};

/// An operation, and how long after the one before, if that matters.
pub(super) type Timed = (Option<Duration>, Op);

/// What must be so, or be asked for, before all instances are.
pub(super) fn before(site: Site) -> Vec<Timed> {
    let soon = |millis, op| (Some(Duration::from_millis(millis)), op);
    let kept = |change| Op::Update(0, change, Word::Keep);
    let agreed = |change| Op::Update(0, change, Word::Agreed);
    if matches!(site, Site::Resend | Site::Note) {
        vec![(None, Op::Capacity(0))]
    } else if site == Site::FindLaunch {
        // What looks like the machine that is looked for must not be taken for it.
        (0..FIRST).map(|slot| (None, Op::Decoy(slot))).collect()
    } else if site == Site::Status {
        // While nothing is known of its server yet.
        vec![(None, Op::Create(0)), soon(100, Op::Delete(0))]
    } else if site == Site::PassOn {
        // While there is no machine and none can come; then one comes before its server has heard.
        vec![
            (None, Op::Capacity(0)),
            (None, Op::Create(0)),
            soon(2_000, agreed(Change::Tag(1))),
            soon(1_000, kept(Change::Bsd)),
            soon(100, Op::Recover),
        ]
    } else if site == Site::ReadInstances {
        // While there is a server, and no machine yet.
        vec![
            (None, Op::Create(0)),
            soon(15, agreed(Change::Tag(1))),
            soon(15, kept(Change::Bsd)),
        ]
    } else if matches!(site, Site::MakeServer | Site::Launch | Site::Record) {
        vec![(None, Op::Create(0)), soon(60, kept(Change::Bsd))]
    } else {
        Vec::new()
    }
}

/// What must be asked for.
pub(super) fn wishes(site: Site) -> Vec<Timed> {
    let agreed = |slot, change| Op::Update(slot, change, Word::Agreed);
    let kept = |slot, change| Op::Update(slot, change, Word::Keep);
    let ops = match site {
        Site::Resend | Site::Note => vec![Op::Recover],
        Site::Ending | Site::Ended | Site::Forget | Site::Terminate | Site::Describe => {
            vec![Op::Delete(0)]
        }
        Site::Mark | Site::EndServer | Site::ForgetInstance => {
            vec![Op::Delete(0), Op::Delete(3), Op::Delete(0)]
        }
        Site::Stop | Site::Change => vec![Op::Stop(0)],
        Site::Start => vec![Op::Stop(0), Op::Start(0)],
        Site::Reboot => vec![Op::Reboot(0), Op::Reboot(1)],
        Site::Resize => vec![agreed(0, Change::Large), agreed(1, Change::Gpu)],
        Site::Reimage | Site::Attempt => vec![agreed(0, Change::Bsd), agreed(1, Change::Bsd)],
        Site::Retag => vec![agreed(0, Change::Tag(1)), agreed(1, Change::Tag(2))],
        Site::Sweep => {
            let long = Some(Duration::from_secs(40));
            return vec![
                (None, Op::Orphan),
                (None, Op::CutOff),
                (None, Op::Orphan),
                (long, Op::Recover),
            ];
        }
        Site::Recharge => vec![
            kept(0, Change::Gpu),
            agreed(1, Change::Gpu),
            agreed(0, Change::Public),
            agreed(3, Change::Public),
        ],
        Site::Condemn | Site::MarkByNetwork | Site::NetworkGone => {
            // When there is room for another one, in a network that is going.
            return vec![
                (None, Op::Delete(2)),
                (Some(Duration::from_secs(45)), Op::Condemn(0)),
                (Some(Duration::from_millis(200)), Op::Create(4)),
                (None, Op::Condemn(2)),
                (None, Op::Create(3)),
            ];
        }
        Site::ReadNetworks | Site::WatchNetworks => vec![Op::Condemn(0), Op::Create(4)],
        Site::Snapshot | Site::ImageAsk | Site::ImageNote => {
            return vec![
                (Some(Duration::from_secs(50)), Op::Snapshot(0)),
                (None, Op::Snapshot(1)),
                (None, Op::Snapshot(3)),
            ];
        }
        Site::Access | Site::Console => {
            return vec![
                (Some(Duration::from_secs(50)), Op::Look(0)),
                (None, Op::Look(1)),
                (None, Op::Look(3)),
            ];
        }
        Site::Reload => vec![Op::Retire, agreed(0, Change::Large), Op::Offer],
        Site::Order => vec![Op::Order(0), Op::Order(1), Op::Replace(0)],
        Site::PassOn => vec![
            kept(1, Change::Linux),
            kept(1, Change::Group),
            agreed(1, Change::Bsd),
        ],
        Site::ReadService => vec![Op::Probe(0), Op::Probe(3), Op::Race(1)],
        Site::Create => vec![Op::Create(4), Op::Create(0), Op::Crowd],
        Site::Update => vec![kept(0, Change::Large), kept(0, Change::Bsd), Op::Stop(1)],
        Site::MakeServer
        | Site::Begin
        | Site::Record
        | Site::Observe
        | Site::Beat
        | Site::Launch
        | Site::FindLaunch
        | Site::List
        | Site::Status
        | Site::ReadInstances
        | Site::WatchInstances
        | Site::ReadRegion
        | Site::WatchRegion => Vec::new(),
    };
    ops.into_iter().map(|op| (None, op)).collect()
}
