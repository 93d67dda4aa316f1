//! The cloud as a process uses it: each call is a step at which a fault may be injected and rules
//! are checked.

mod account;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use fleetwright::{
    AccountId, BoxStream, Call, Capabilities, ConsoleOutput, Effect, ImageId, InstanceConfig,
    InstanceFilter, InstanceId, InstanceInfo, InstanceProvisioner, InstanceStatus, InstanceType,
    InvalidValue, LaunchRecord, LaunchToken, ListItem, Operation, Problem, ProvisionError, Reboot,
    Result, Scope, SnapshotRequest, TagChange,
};
use fleetwright_region::server::ServerId;
use futures_util::{StreamExt as _, stream};

pub use account::Accounts;

use crate::{
    environment::{Environment, catalog_name},
    fault::{FaultKind, FaultPoint},
    journal::{Complete, Journal},
    life::Life,
    oracle::Oracle,
    rules::{Destruction, Rules},
    store::Actor,
};

/// The handle of one part of one process.
#[derive(Debug)]
pub struct FaultyCloud {
    /// The part that calls.
    pub actor: Actor,
    /// The handles of the accounts.
    pub accounts: Accounts,
    /// The credentials of the process.
    pub environment: Arc<Environment>,
    /// The process.
    pub life: Arc<Life>,
    /// Counts steps and injects faults.
    pub journal: Arc<Journal>,
    /// The cloud's real state.
    pub oracle: Oracle,
    /// The rules that every call must keep.
    pub rules: Rules,
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
        self.journal
            .pause(&self.life, Duration::from_millis(10))
            .await;
        if self.actor == Actor::ServerController {
            self.rules.check_backoff(self.life.number, server).await;
        }
        let fault = self.journal.next_fault(point);
        let result = match fault {
            Some(FaultKind::CrashBefore) => {
                self.journal.crash(&self.life).await;
                Err(self.injected_error(operation))
            }
            Some(FaultKind::Error) => Err(self.injected_error(operation)),
            Some(FaultKind::LostRequest) => Err(self.lost_response(operation)),
            Some(FaultKind::CrashAfter | FaultKind::LostResponse) | None => call.await,
        };
        self.journal.pause(&self.life, Duration::ZERO).await;
        let result = match fault {
            Some(FaultKind::CrashAfter) => {
                self.rules.check_single_machine(point);
                self.journal.crash(&self.life).await;
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
        if matches!(point, FaultPoint::Launch | FaultPoint::Resize) {
            self.rules.check_charges_of_machines().await;
        }
        if matches!(point, FaultPoint::Snapshot | FaultPoint::DeleteImage) {
            self.rules.check_charges_of_images().await;
        }
        if result.is_ok() && self.actor == Actor::ServerController && !operation.is_read() {
            self.rules.remember_success(self.life.number, server);
        }
        if let (Err(error), Actor::ServerController) = (&result, self.actor) {
            self.journal.log(format!("  {error}"));
            self.rules.remember_failure(self.life.number, server).await;
            let changes = [FaultPoint::Resize, FaultPoint::Reimage];
            if let Some(id) = server.filter(|_| changes.contains(&point)) {
                self.journal.facts(|facts| facts.failed_changes.insert(id));
            }
        }
        result
    }

    /// Returns an error without effect: one of several, chosen by the time.
    fn injected_error(&self, operation: Operation) -> ProvisionError {
        let call = Call::new("injected", operation);
        match (
            operation,
            self.rules.clock.now().timestamp_subsec_millis() % 3,
        ) {
            (Operation::LaunchInstance | Operation::StartInstance, 0) => {
                call.capacity(Scope::Region, "no capacity")
            }
            (_, 1) => call.throttled(Duration::from_secs(7)),
            (_, _) => call.unavailable(Effect::None, "the cloud is busy"),
        }
    }

    /// Returns the handle of the account that the credentials of the process belong to.
    fn account(&self, operation: Operation) -> Result<&dyn InstanceProvisioner> {
        let found = self.accounts.of(self.environment.credentials());
        let refused = || Call::new("simulated", operation).unauthenticated("the key is unknown");
        found.ok_or_else(refused)
    }

    /// Refuses an instance type that the cloud withdrew.
    fn check_offer(&self, operation: Operation, wanted: &InstanceType) -> Result<()> {
        let name = catalog_name(wanted.as_str());
        let withdrawn = self.journal.facts(|facts| facts.withdrawn.contains(name));
        require(!withdrawn, operation, "instance type")
    }

    /// Refuses a launch in a native network that an operator deleted.
    fn check_subnet(&self, config: &InstanceConfig) -> Result<()> {
        let subnet = config.placement.network.as_ref().map(AsRef::<str>::as_ref);
        let name = catalog_name(subnet.unwrap_or_default());
        let deleted = self
            .journal
            .facts(|facts| facts.deleted_subnets.contains(name));
        require(!deleted, Operation::LaunchInstance, "placement.network")
    }

    fn lost_response(&self, operation: Operation) -> ProvisionError {
        Call::new("injected", operation).timeout(Effect::Unknown)
    }

    async fn owner(&self, id: &InstanceId) -> Option<ServerId> {
        self.rules.owner_of(id).await
    }

    async fn list_with_fault(&self, filter: &InstanceFilter) -> Vec<Result<ListItem>> {
        let number = self.life.number;
        self.journal
            .process(number, |facts| facts.list_failed = true);
        let started = self.rules.clock.now();
        let collected = async {
            let account = self.account(Operation::StreamInstances)?;
            let items: Vec<_> = account.stream_instances(filter).collect().await;
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
                self.journal.process(number, |facts| {
                    facts.list = Some((started, complete));
                    facts.list_failed = false;
                });
                items.into_iter().map(Ok).collect()
            }
            Err(error) => vec![Err(error)],
        }
    }
}

/// Fails like a cloud that does not offer the value of a field, unless it is `offered`.
fn require(offered: bool, operation: Operation, field: &str) -> Result<()> {
    if offered {
        return Ok(());
    }
    let instead = "choose another one".to_owned();
    let refused = InvalidValue::new(field, Problem::NotOffered { instead });
    Err(Call::new("simulated", operation).invalid(refused))
}

#[async_trait]
impl InstanceProvisioner for FaultyCloud {
    fn capabilities(&self) -> &Capabilities {
        self.accounts.right.capabilities()
    }

    async fn launch_instance(&self, config: &InstanceConfig) -> Result<InstanceInfo> {
        let server = self.rules.check_launch(config).await;
        if let (Some(token), Some(id)) = (&config.launch_token, server) {
            self.oracle.launched(token, id);
        }
        let call = async {
            let account = self.account(Operation::LaunchInstance)?;
            self.check_offer(Operation::LaunchInstance, &config.instance_type)?;
            self.check_subnet(config)?;
            let result = account.launch_instance(config).await;
            if let Ok(info) = &result {
                self.fail_boot(&info.id);
            }
            result
        };
        self.call(FaultPoint::Launch, Operation::LaunchInstance, server, call)
            .await
    }

    async fn terminate_instance(&self, id: &InstanceId) -> Result<()> {
        self.rules.check_owner(id);
        let server = self.owner(id).await;
        let point = if self.actor == Actor::Monitor {
            self.rules.check_orphan_termination(self.life.number, id);
            FaultPoint::TerminateOrphan
        } else {
            self.rules.check_terminate(id, server).await;
            self.rules
                .check_destruction(id, server, Destruction::Terminate)
                .await;
            FaultPoint::Terminate
        };
        let call = async {
            self.account(Operation::TerminateInstance)?
                .terminate_instance(id)
                .await
        };
        self.call(point, Operation::TerminateInstance, server, call)
            .await
    }

    async fn stop_instance(&self, id: &InstanceId) -> Result<()> {
        self.rules.check_owner(id);
        let server = self.owner(id).await;
        let call = async {
            self.account(Operation::StopInstance)?
                .stop_instance(id)
                .await
        };
        self.call(FaultPoint::Stop, Operation::StopInstance, server, call)
            .await
    }

    async fn start_instance(&self, id: &InstanceId) -> Result<InstanceInfo> {
        self.rules.check_owner(id);
        let server = self.owner(id).await;
        let call = async {
            let account = self.account(Operation::StartInstance)?;
            if let Some(kind) = self.oracle.machine(id).and_then(|info| info.instance_type) {
                self.check_offer(Operation::StartInstance, &kind)?;
            }
            account.start_instance(id).await
        };
        self.call(FaultPoint::Start, Operation::StartInstance, server, call)
            .await
    }

    async fn describe_instance(&self, id: &InstanceId) -> Result<InstanceStatus> {
        let call = async {
            self.account(Operation::DescribeInstance)?
                .describe_instance(id)
                .await
        };
        self.call(
            FaultPoint::Describe,
            Operation::DescribeInstance,
            None,
            call,
        )
        .await
    }

    async fn describe_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceStatus>> {
        let call = async {
            let account = self.account(Operation::DescribeInstances)?;
            Ok(account.describe_instances(ids).await)
        };
        let (operation, began) = (Operation::DescribeInstances, self.rules.clock.now());
        match self.call(FaultPoint::Describe, operation, None, call).await {
            Ok(results) => {
                self.journal
                    .process(self.life.number, |facts| facts.description = Some(began));
                results
            }
            Err(error) => ids.iter().map(|_| Err(error.clone())).collect(),
        }
    }

    async fn list_instances(&self, filter: &InstanceFilter) -> Result<Vec<InstanceInfo>> {
        let call = async {
            self.account(Operation::ListInstances)?
                .list_instances(filter)
                .await
        };
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
        let call = async {
            self.account(Operation::FindLaunch)?
                .find_launch(token)
                .await
        };
        self.call(FaultPoint::FindLaunch, Operation::FindLaunch, server, call)
            .await
    }

    async fn update_tags(&self, id: &InstanceId, change: &TagChange) -> Result<()> {
        self.rules.check_owner(id);
        let server = self.owner(id).await;
        let call = async {
            self.account(Operation::UpdateTags)?
                .update_tags(id, change)
                .await
        };
        self.call(FaultPoint::Retag, Operation::UpdateTags, server, call)
            .await
    }

    async fn reboot_instance(&self, id: &InstanceId, how: Reboot) -> Result<()> {
        self.rules.check_owner(id);
        let server = self.owner(id).await;
        let call = async {
            self.account(Operation::RebootInstance)?
                .reboot_instance(id, how)
                .await
        };
        self.call(FaultPoint::Reboot, Operation::RebootInstance, server, call)
            .await
    }

    async fn resize_instance(&self, id: &InstanceId, to: &InstanceType) -> Result<()> {
        self.rules.check_owner(id);
        let server = self.owner(id).await;
        let call = async {
            let account = self.account(Operation::ResizeInstance)?;
            self.check_offer(Operation::ResizeInstance, to)?;
            account.resize_instance(id, to).await
        };
        self.call(FaultPoint::Resize, Operation::ResizeInstance, server, call)
            .await
    }

    async fn reimage_instance(&self, id: &InstanceId, image: &ImageId) -> Result<()> {
        self.rules.check_owner(id);
        let server = self.owner(id).await;
        self.rules
            .check_destruction(id, server, Destruction::Reimage)
            .await;
        let call = async {
            self.account(Operation::ReimageInstance)?
                .reimage_instance(id, image)
                .await
        };
        self.call(
            FaultPoint::Reimage,
            Operation::ReimageInstance,
            server,
            call,
        )
        .await
    }

    async fn console_output(&self, id: &InstanceId) -> Result<ConsoleOutput> {
        let call = async {
            self.account(Operation::ConsoleOutput)?
                .console_output(id)
                .await
        };
        self.call(FaultPoint::Console, Operation::ConsoleOutput, None, call)
            .await
    }

    async fn account_id(&self) -> Result<Option<AccountId>> {
        self.account(Operation::AccountId)?.account_id().await
    }

    async fn snapshot_image(&self, id: &InstanceId, request: &SnapshotRequest) -> Result<ImageId> {
        self.rules.check_owner(id);
        let call = async {
            self.account(Operation::SnapshotImage)?
                .snapshot_image(id, request)
                .await
        };
        self.call(FaultPoint::Snapshot, Operation::SnapshotImage, None, call)
            .await
    }

    async fn delete_image(&self, image: &ImageId) -> Result<()> {
        let call = async {
            self.account(Operation::DeleteImage)?
                .delete_image(image)
                .await
        };
        self.call(FaultPoint::DeleteImage, Operation::DeleteImage, None, call)
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
                .log(format!("  machine {id} fails before it boots"));
        }
    }
}
