//! Operations that make a certain step happen.

use std::time::Duration;

use super::{Change, Op, UpdateMode};
use crate::{constants::FIRST_SLOTS, fault::FaultPoint};

/// An operation, and its delay after the one before if that matters.
pub(super) type TimedOp = (Option<Duration>, Op);

/// Returns the operations that must come before the instances are created.
pub(super) fn setup_ops(point: FaultPoint) -> Vec<TimedOp> {
    let soon = |millis, op| (Some(Duration::from_millis(millis)), op);
    let without_consent = |change| Op::Update(0, change, UpdateMode::WithoutConsent);
    let with_consent = |change| Op::Update(0, change, UpdateMode::WithConsent);
    if matches!(point, FaultPoint::ResendLaunch | FaultPoint::RecordResult) {
        vec![(None, Op::Capacity(0))]
    } else if point == FaultPoint::FindLaunch {
        // A machine with the same tag must not be adopted.
        (0..FIRST_SLOTS)
            .map(|slot| (None, Op::ForeignWithServerTag(slot)))
            .collect()
    } else if point == FaultPoint::WriteStatus {
        // The deletion comes before the status names the server.
        vec![(None, Op::Create(0)), soon(100, Op::Delete(0))]
    } else if point == FaultPoint::ApplyToServer {
        // The updates come while no machine can be launched; then one is launched before the server
        // has the update.
        vec![
            (None, Op::Capacity(0)),
            (None, Op::Create(0)),
            soon(2_000, with_consent(Change::Tag(1))),
            soon(1_000, without_consent(Change::Rocky)),
            soon(100, Op::Recover),
        ]
    } else if point == FaultPoint::ReadInstances {
        // The updates come while there is a server but no machine.
        vec![
            (None, Op::Create(0)),
            soon(15, with_consent(Change::Tag(1))),
            soon(15, without_consent(Change::Rocky)),
        ]
    } else if matches!(
        point,
        FaultPoint::CreateServer | FaultPoint::Launch | FaultPoint::RecordMachine
    ) {
        vec![
            (None, Op::Create(0)),
            soon(60, without_consent(Change::Rocky)),
        ]
    } else {
        Vec::new()
    }
}

/// Returns the operations that reach the step.
pub(super) fn target_ops(point: FaultPoint) -> Vec<TimedOp> {
    let with_consent = |slot, change| Op::Update(slot, change, UpdateMode::WithConsent);
    let without_consent = |slot, change| Op::Update(slot, change, UpdateMode::WithoutConsent);
    let ops = match point {
        FaultPoint::ResendLaunch | FaultPoint::RecordResult => vec![Op::Recover],
        FaultPoint::BeginTermination
        | FaultPoint::TerminationAccepted
        | FaultPoint::RemoveServer
        | FaultPoint::Terminate
        | FaultPoint::Describe => {
            vec![Op::Delete(0)]
        }
        FaultPoint::MarkDeleted | FaultPoint::DeleteServer | FaultPoint::RemoveInstance => {
            vec![Op::Delete(0), Op::Delete(3), Op::Delete(0)]
        }
        FaultPoint::Stop | FaultPoint::RecordChange => vec![Op::Stop(0)],
        FaultPoint::Start => vec![Op::Stop(0), Op::Start(0)],
        FaultPoint::Reboot => vec![Op::Reboot(0), Op::Reboot(1)],
        FaultPoint::Resize => vec![with_consent(0, Change::Large), with_consent(1, Change::Gpu)],
        FaultPoint::Reimage | FaultPoint::BeginChange => {
            vec![
                with_consent(0, Change::Rocky),
                with_consent(1, Change::Rocky),
            ]
        }
        FaultPoint::Retag => vec![
            with_consent(0, Change::Tag(1)),
            with_consent(1, Change::Tag(2)),
        ],
        FaultPoint::TerminateOrphan => {
            let long = Some(Duration::from_secs(40));
            return vec![
                (None, Op::Orphan),
                (None, Op::DisconnectZone),
                (None, Op::Orphan),
                (long, Op::Recover),
            ];
        }
        FaultPoint::Recharge => vec![
            without_consent(0, Change::Gpu),
            with_consent(1, Change::Gpu),
            with_consent(0, Change::Public),
            with_consent(3, Change::Public),
            with_consent(1, Change::Small),
            with_consent(3, Change::Private),
        ],
        FaultPoint::DeleteNetwork | FaultPoint::MarkByNetwork | FaultPoint::RemoveNetwork => {
            // An instance is created, within quota, in a network that is being deleted.
            return vec![
                (None, Op::Delete(2)),
                (Some(Duration::from_secs(45)), Op::DeleteNetwork(0)),
                (Some(Duration::from_millis(200)), Op::Create(4)),
                (None, Op::DeleteNetwork(2)),
                (None, Op::Create(3)),
            ];
        }
        FaultPoint::ReadNetworks | FaultPoint::WatchNetworks => {
            vec![Op::DeleteNetwork(0), Op::Create(4)]
        }
        FaultPoint::Snapshot | FaultPoint::RequestImage | FaultPoint::UpdateImage => {
            return vec![
                (Some(Duration::from_secs(50)), Op::Snapshot(0)),
                (None, Op::Snapshot(1)),
                (None, Op::Snapshot(3)),
            ];
        }
        FaultPoint::RemoveImage | FaultPoint::DeleteImage => {
            let later = Some(Duration::from_secs(25));
            return vec![
                (Some(Duration::from_secs(50)), Op::Snapshot(0)),
                (None, Op::Snapshot(3)),
                (later, Op::DeleteImage(0)),
                (None, Op::DeleteImage(3)),
                (None, Op::Snapshot(0)),
                (later, Op::DeleteImage(0)),
            ];
        }
        FaultPoint::RecordAccess | FaultPoint::Console => {
            return vec![
                (Some(Duration::from_secs(50)), Op::ReadKeyAndConsole(0)),
                (None, Op::ReadKeyAndConsole(1)),
                (None, Op::ReadKeyAndConsole(3)),
            ];
        }
        FaultPoint::LoadCatalog | FaultPoint::ReadCatalog | FaultPoint::WatchCatalog => {
            vec![
                Op::RetireFlavor,
                with_consent(0, Change::Large),
                Op::OfferFlavor,
            ]
        }
        FaultPoint::OperatorWrite | FaultPoint::ReadOperator => {
            vec![Op::DeleteServer(0), Op::DeleteServer(1), Op::Replace(0)]
        }
        FaultPoint::ApplyToServer => vec![
            without_consent(1, Change::Debian),
            without_consent(1, Change::Group),
            with_consent(1, Change::Rocky),
        ],
        FaultPoint::ReadService => vec![Op::Probe(0), Op::Probe(3), Op::Race(1)],
        FaultPoint::Create => vec![Op::Create(4), Op::Create(0), Op::CreateAllAtOnce],
        FaultPoint::Update => vec![
            without_consent(0, Change::Large),
            without_consent(0, Change::Rocky),
            Op::Stop(1),
        ],
        FaultPoint::CreateServer
        | FaultPoint::BeginLaunch
        | FaultPoint::RecordMachine
        | FaultPoint::WriteObservation
        | FaultPoint::WriteScan
        | FaultPoint::Launch
        | FaultPoint::FindLaunch
        | FaultPoint::List
        | FaultPoint::WriteStatus
        | FaultPoint::ReadInstances
        | FaultPoint::WatchInstances
        | FaultPoint::ReadRegion
        | FaultPoint::WatchRegion
        | FaultPoint::OpenWatch => Vec::new(),
        FaultPoint::ReadMapping => vec![Op::CorrectMapping(None), Op::CorrectMapping(None)],
    };
    ops.into_iter().map(|op| (None, op)).collect()
}
