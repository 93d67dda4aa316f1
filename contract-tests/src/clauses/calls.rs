//! The seven calls that every backend has, each with an instance that it can change.
//!
//! Owns the table of calls and the two instances that error clauses call them on. The clauses
//! inject a fault, make every call of the table and compare the errors; afterwards they can require
//! that both instances are unchanged.

use fleetwright::{CloudInstanceState, InstanceId, LaunchToken, Operation, Result};

use crate::{Context, Failure, WireOp, require};

/// The calls, each with the native call that faults are injected into. Reads come first, so that the
/// changes of the others do not affect them.
pub(super) const CALLS: [(Operation, WireOp); 7] = [
    (Operation::DescribeInstance, WireOp::Describe),
    (Operation::ListInstances, WireOp::List),
    (Operation::FindLaunch, WireOp::FindLaunch),
    (Operation::LaunchInstance, WireOp::Launch),
    (Operation::StopInstance, WireOp::Stop),
    (Operation::StartInstance, WireOp::Start),
    (Operation::TerminateInstance, WireOp::Terminate),
];

/// The instances that the calls are made on: one that runs and can be stopped, and one that is stopped
/// and can be started.
pub(super) struct Subjects {
    pub(super) running: InstanceId,
    pub(super) stopped: InstanceId,
    token: LaunchToken,
}

impl Subjects {
    /// Launches both and waits until every read shows their state.
    pub(super) async fn launch(cx: &Context) -> Result<Self, Failure> {
        let stopped = cx.launch_stopped().await?.id;
        let config = cx.config_with_token();
        let running = cx.launch_config(&config).await?.id;
        cx.wait_for_state(&running, CloudInstanceState::Running)
            .await?;
        cx.wait_for_consistent_reads().await;
        let token = config.launch_token.unwrap_or_else(|| cx.new_token());
        Ok(Self {
            running,
            stopped,
            token,
        })
    }

    /// Makes one of [`CALLS`]. Returns the instance of a launch, with its token.
    pub(super) async fn call(
        &self,
        cx: &Context,
        call: WireOp,
    ) -> Result<Option<(LaunchToken, InstanceId)>> {
        let provisioner = cx.provisioner();
        let changed = match call {
            WireOp::Describe => provisioner.describe_instance(&self.running).await.map(drop),
            WireOp::List => provisioner.list_instances(&cx.filter()).await.map(drop),
            WireOp::FindLaunch => provisioner.find_launch(&self.token).await.map(drop),
            WireOp::Launch => {
                let (token, mut config) = (cx.new_token(), cx.config());
                config.launch_token = Some(token.clone());
                let launched = provisioner.launch_instance(&config).await;
                return launched.map(|info| Some((token, info.id)));
            }
            WireOp::Stop => provisioner.stop_instance(&self.running).await,
            WireOp::Start => provisioner.start_instance(&self.stopped).await.map(drop),
            WireOp::Terminate => provisioner.terminate_instance(&self.running).await,
            WireOp::Any | WireOp::UpdateTags => Ok(()),
        };
        changed.map(|()| None)
    }

    /// Requires that both instances are in their original state and that there is no third one.
    pub(super) async fn require_unchanged(&self, cx: &Context) -> Result<(), Failure> {
        cx.require_count(2).await?;
        let wanted = [
            (&self.running, CloudInstanceState::Running),
            (&self.stopped, CloudInstanceState::Stopped),
        ];
        for (id, state) in wanted {
            let observed = cx.describe(id).await?.state;
            require(observed == state, || {
                format!("{id} was {state} and is {observed} after calls that failed without effect")
            })?;
        }
        Ok(())
    }
}
