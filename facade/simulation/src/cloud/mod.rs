//! The cloud as a process uses it: each call is a step at which a fault may be injected and rules
//! are checked.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use fleetwright::{
    AccountId, BoxStream, Call, Capabilities, ConsoleOutput, Effect, ImageId, InstanceConfig,
    InstanceFilter, InstanceId, InstanceInfo, InstanceProvisioner, InstanceStatus, InstanceType,
    LaunchRecord, LaunchToken, ListItem, Operation, ProvisionError, Reboot, Result, Scope,
    SnapshotRequest, TagChange,
};
use fleetwright_region::server::ServerId;
use fleetwright_runtime::clock::Clock;
use futures_util::{StreamExt as _, stream};

use crate::{
    fault::{FaultKind, FaultPoint},
    journal::{Complete, Journal},
    oracle::Oracle,
    rules::Rules,
    store::Actor,
};

/// The handle of one part of one process.
#[derive(Debug)]
pub struct FaultyCloud {
    /// The part that calls.
    pub actor: Actor,
    /// The provider's own handle.
    pub inner: Arc<dyn InstanceProvisioner>,
    /// Counts steps and injects faults.
    pub journal: Arc<Journal>,
    /// The cloud's real state.
    pub oracle: Oracle,
    /// The rules that every call must keep.
    pub rules: Rules,
    /// The clock.
    pub clock: Arc<dyn Clock>,
}

impl FaultyCloud {
    /// Makes a call, with a fault if one is due.
    async fn call<T>(
        &self,
        point: FaultPoint,
        operation: Operation,
        server: Option<ServerId>,
        call: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        self.journal.pause(Duration::from_millis(10)).await;
        if self.actor == Actor::ServerController {
            self.rules.check_backoff(server).await;
        }
        let fault = self.journal.next_fault(point);
        let result = match fault {
            Some(FaultKind::CrashBefore) => {
                self.journal.crash().await;
                Err(self.injected_error(operation))
            }
            Some(FaultKind::Error) => Err(self.injected_error(operation)),
            Some(FaultKind::LostRequest) => Err(self.lost_response(operation)),
            Some(FaultKind::CrashAfter | FaultKind::LostResponse) | None => call.await,
        };
        self.journal.pause(Duration::ZERO).await;
        let result = match fault {
            Some(FaultKind::CrashAfter) => {
                self.rules.check_single_machine(point);
                self.journal.crash().await;
                result
            }
            Some(FaultKind::LostResponse) => {
                self.rules.check_single_machine(point);
                Err(self.lost_response(operation))
            }
            Some(FaultKind::CrashBefore | FaultKind::Error | FaultKind::LostRequest) | None => {
                result
            }
        };
        self.rules.check_single_machine(point);
        if let (Err(error), Actor::ServerController) = (&result, self.actor) {
            self.journal.log(&format!("  {error}"));
            self.rules.remember_failure(server);
        }
        result
    }

    /// Returns an error without effect: one of several, chosen by the time.
    fn injected_error(&self, operation: Operation) -> ProvisionError {
        let call = Call::new("injected", operation);
        match (operation, self.clock.now().timestamp_subsec_millis() % 3) {
            (Operation::LaunchInstance | Operation::StartInstance, 0) => {
                call.capacity(Scope::Region, "no capacity")
            }
            (_, 1) => call.throttled(Duration::from_secs(7)),
            (_, _) => call.unavailable(Effect::None, "the cloud is busy"),
        }
    }

    fn lost_response(&self, operation: Operation) -> ProvisionError {
        Call::new("injected", operation).timeout(Effect::Unknown)
    }

    async fn owner(&self, id: &InstanceId) -> Option<ServerId> {
        self.rules.owner_of(id).await
    }

    async fn list_with_fault(&self, filter: &InstanceFilter) -> Vec<Result<ListItem>> {
        self.journal.facts(|facts| facts.list_failed = true);
        let started = self.clock.now();
        let collected = async {
            let items: Vec<_> = self.inner.stream_instances(filter).collect().await;
            let items: Result<Vec<ListItem>> = items.into_iter().collect();
            items
        };
        let operation = Operation::StreamInstances;
        match self
            .call(FaultPoint::List, operation, None, collected)
            .await
        {
            Ok(items) => {
                let gap = items
                    .iter()
                    .any(|item| matches!(item, ListItem::Gap { .. }));
                let complete = if gap { Complete::No } else { Complete::Yes };
                self.journal.facts(|facts| {
                    facts.list = Some((started, complete));
                    facts.list_failed = false;
                });
                items.into_iter().map(Ok).collect()
            }
            Err(error) => vec![Err(error)],
        }
    }
}

#[async_trait]
impl InstanceProvisioner for FaultyCloud {
    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    async fn launch_instance(&self, config: &InstanceConfig) -> Result<InstanceInfo> {
        let server = self.rules.check_launch(config).await;
        if let (Some(token), Some(id)) = (&config.launch_token, server) {
            self.oracle.launched(token, id);
        }
        let call = async {
            let result = self.inner.launch_instance(config).await;
            if let Ok(info) = &result {
                self.fail_boot(&info.id);
            }
            result
        };
        self.call(FaultPoint::Launch, Operation::LaunchInstance, server, call)
            .await
    }

    async fn terminate_instance(&self, id: &InstanceId) -> Result<()> {
        let server = self.owner(id).await;
        let point = if self.actor == Actor::Monitor {
            self.rules.check_orphan_termination(id);
            FaultPoint::TerminateOrphan
        } else {
            self.rules.check_terminate(id, server).await;
            FaultPoint::Terminate
        };
        let call = self.inner.terminate_instance(id);
        self.call(point, Operation::TerminateInstance, server, call)
            .await
    }

    async fn stop_instance(&self, id: &InstanceId) -> Result<()> {
        let server = self.owner(id).await;
        let call = self.inner.stop_instance(id);
        self.call(FaultPoint::Stop, Operation::StopInstance, server, call)
            .await
    }

    async fn start_instance(&self, id: &InstanceId) -> Result<InstanceInfo> {
        let server = self.owner(id).await;
        let call = self.inner.start_instance(id);
        self.call(FaultPoint::Start, Operation::StartInstance, server, call)
            .await
    }

    async fn describe_instance(&self, id: &InstanceId) -> Result<InstanceStatus> {
        let call = self.inner.describe_instance(id);
        self.call(
            FaultPoint::Describe,
            Operation::DescribeInstance,
            None,
            call,
        )
        .await
    }

    async fn describe_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceStatus>> {
        let call = async { Ok(self.inner.describe_instances(ids).await) };
        let operation = Operation::DescribeInstances;
        match self.call(FaultPoint::Describe, operation, None, call).await {
            Ok(results) => results,
            Err(error) => ids.iter().map(|_| Err(error.clone())).collect(),
        }
    }

    async fn list_instances(&self, filter: &InstanceFilter) -> Result<Vec<InstanceInfo>> {
        let call = self.inner.list_instances(filter);
        self.call(FaultPoint::List, Operation::ListInstances, None, call)
            .await
    }

    fn stream_instances<'a>(
        &'a self,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
        let items = stream::once(self.list_with_fault(filter));
        items.flat_map(stream::iter).boxed()
    }

    async fn find_launch(&self, token: &LaunchToken) -> Result<LaunchRecord> {
        let server = self.oracle.server_of(token);
        let call = self.inner.find_launch(token);
        self.call(FaultPoint::FindLaunch, Operation::FindLaunch, server, call)
            .await
    }

    async fn update_tags(&self, id: &InstanceId, change: &TagChange) -> Result<()> {
        let server = self.owner(id).await;
        let call = self.inner.update_tags(id, change);
        self.call(FaultPoint::Retag, Operation::UpdateTags, server, call)
            .await
    }

    async fn reboot_instance(&self, id: &InstanceId, how: Reboot) -> Result<()> {
        let server = self.owner(id).await;
        let call = self.inner.reboot_instance(id, how);
        self.call(FaultPoint::Reboot, Operation::RebootInstance, server, call)
            .await
    }

    async fn resize_instance(&self, id: &InstanceId, to: &InstanceType) -> Result<()> {
        let server = self.owner(id).await;
        let call = self.inner.resize_instance(id, to);
        self.call(FaultPoint::Resize, Operation::ResizeInstance, server, call)
            .await
    }

    async fn reimage_instance(&self, id: &InstanceId, image: &ImageId) -> Result<()> {
        let server = self.owner(id).await;
        let call = self.inner.reimage_instance(id, image);
        self.call(
            FaultPoint::Reimage,
            Operation::ReimageInstance,
            server,
            call,
        )
        .await
    }

    async fn console_output(&self, id: &InstanceId) -> Result<ConsoleOutput> {
        let call = self.inner.console_output(id);
        self.call(FaultPoint::Console, Operation::ConsoleOutput, None, call)
            .await
    }

    async fn account_id(&self) -> Result<Option<AccountId>> {
        self.inner.account_id().await
    }

    async fn snapshot_image(&self, id: &InstanceId, request: &SnapshotRequest) -> Result<ImageId> {
        let call = self.inner.snapshot_image(id, request);
        self.call(FaultPoint::Snapshot, Operation::SnapshotImage, None, call)
            .await
    }
}

impl FaultyCloud {
    /// Terminates a new machine before it boots, if the scenario says so.
    fn fail_boot(&self, id: &InstanceId) {
        let fails = self.journal.facts(|facts| {
            let fails = facts.failing_boots > 0;
            facts.failing_boots = facts.failing_boots.saturating_sub(1);
            facts.external_terminations += usize::from(fails);
            fails
        });
        if fails {
            // The machine was launched just now, so the cloud accepts.
            let _ = self.oracle.external_actor().terminate(id);
            self.journal
                .log(&format!("  machine {id} fails before it boots"));
        }
    }
}
