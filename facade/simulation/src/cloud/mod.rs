//! The cloud as a process sees it: each call is a step at which something may go wrong, and at which rules are checked.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use fleetwright::{
    BoxStream, Call, Capabilities, ConsoleOutput, Effect, ImageId, InstanceConfig, InstanceFilter,
    InstanceId, InstanceInfo, InstanceProvisioner, InstanceStatus, InstanceType, LaunchRecord,
    LaunchToken, ListItem, Operation, ProvisionError, Reboot, Result, Scope, SnapshotRequest,
    TagChange,
};
use fleetwright_region::server::ServerId;
use fleetwright_runtime::clock::Clock;
use futures_util::{StreamExt as _, stream};

use crate::{
    fault::{Kind, Site},
    journal::{Complete, Journal},
    rules::Rules,
    store::Actor,
    truth::Truth,
};

/// A handle of one part of one process.
#[derive(Debug)]
pub struct FaultyCloud {
    /// Who calls.
    pub actor: Actor,
    /// The provider's own handle.
    pub inner: Arc<dyn InstanceProvisioner>,
    /// Where steps are counted.
    pub journal: Arc<Journal>,
    /// The world behind.
    pub truth: Truth,
    /// What must hold when a call is made.
    pub rules: Rules,
    /// The calendar.
    pub clock: Arc<dyn Clock>,
}

impl FaultyCloud {
    /// Makes a call, or lets it go wrong.
    async fn step<T>(
        &self,
        site: Site,
        operation: Operation,
        about: Option<ServerId>,
        call: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        self.journal.pause(Duration::from_millis(10)).await;
        if self.actor == Actor::Region {
            self.rules.called(about).await;
        }
        let fault = self.journal.strike(site);
        let answer = match fault {
            Some(Kind::CrashBefore) => {
                self.journal.die().await;
                Err(self.error(operation))
            }
            Some(Kind::Error) => Err(self.error(operation)),
            Some(Kind::LostRequest) => Err(self.lost(operation)),
            Some(Kind::CrashAfter | Kind::LostReply) | None => call.await,
        };
        self.journal.pause(Duration::ZERO).await;
        let answer = match fault {
            Some(Kind::CrashAfter) => {
                self.rules.after(site);
                self.journal.die().await;
                answer
            }
            Some(Kind::LostReply) => {
                self.rules.after(site);
                Err(self.lost(operation))
            }
            Some(Kind::CrashBefore | Kind::Error | Kind::LostRequest) | None => answer,
        };
        self.rules.after(site);
        if let (Err(error), Actor::Region) = (&answer, self.actor) {
            self.journal.tell(&format!("  {error}"));
            self.rules.failed(about);
        }
        answer
    }

    /// A refusal without effect: one of several, by chance of the call's number.
    fn error(&self, operation: Operation) -> ProvisionError {
        let call = Call::new("injected", operation);
        match (operation, self.clock.now().timestamp_subsec_millis() % 3) {
            (Operation::LaunchInstance | Operation::StartInstance, 0) => {
                call.capacity(Scope::Region, "nothing is free")
            }
            (_, 1) => call.throttled(Duration::from_secs(7)),
            (_, _) => call.unavailable(Effect::None, "the cloud is busy"),
        }
    }

    fn lost(&self, operation: Operation) -> ProvisionError {
        Call::new("injected", operation).timeout(Effect::Unknown)
    }

    async fn owner(&self, id: &InstanceId) -> Option<ServerId> {
        self.rules.owner(id).await
    }

    async fn listed(&self, filter: &InstanceFilter) -> Vec<Result<ListItem>> {
        self.journal.notes(|notes| notes.list_failed = true);
        let began = self.clock.now();
        let collected = async {
            let items: Vec<_> = self.inner.stream_instances(filter).collect().await;
            let items: Result<Vec<ListItem>> = items.into_iter().collect();
            items
        };
        let operation = Operation::StreamInstances;
        match self.step(Site::List, operation, None, collected).await {
            Ok(items) => {
                let gap = items
                    .iter()
                    .any(|item| matches!(item, ListItem::Gap { .. }));
                let complete = if gap { Complete::No } else { Complete::Yes };
                self.journal.notes(|notes| {
                    notes.list = Some((began, complete));
                    notes.list_failed = false;
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
        let about = self.rules.launching(config).await;
        if let (Some(token), Some(id)) = (&config.launch_token, about) {
            self.truth.launched(token, id);
        }
        let call = async {
            let answer = self.inner.launch_instance(config).await;
            if let Ok(info) = &answer {
                self.doom(&info.id);
            }
            answer
        };
        self.step(Site::Launch, Operation::LaunchInstance, about, call)
            .await
    }

    async fn terminate_instance(&self, id: &InstanceId) -> Result<()> {
        let about = self.owner(id).await;
        let site = if self.actor == Actor::Monitor {
            self.rules.sweeping(id);
            Site::Sweep
        } else {
            self.rules.destroying(id, about).await;
            Site::Terminate
        };
        let call = self.inner.terminate_instance(id);
        self.step(site, Operation::TerminateInstance, about, call)
            .await
    }

    async fn stop_instance(&self, id: &InstanceId) -> Result<()> {
        let about = self.owner(id).await;
        let call = self.inner.stop_instance(id);
        self.step(Site::Stop, Operation::StopInstance, about, call)
            .await
    }

    async fn start_instance(&self, id: &InstanceId) -> Result<InstanceInfo> {
        let about = self.owner(id).await;
        let call = self.inner.start_instance(id);
        self.step(Site::Start, Operation::StartInstance, about, call)
            .await
    }

    async fn describe_instance(&self, id: &InstanceId) -> Result<InstanceStatus> {
        let call = self.inner.describe_instance(id);
        self.step(Site::Describe, Operation::DescribeInstance, None, call)
            .await
    }

    async fn describe_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceStatus>> {
        let call = async { Ok(self.inner.describe_instances(ids).await) };
        let operation = Operation::DescribeInstances;
        match self.step(Site::Describe, operation, None, call).await {
            Ok(answers) => answers,
            Err(error) => ids.iter().map(|_| Err(error.clone())).collect(),
        }
    }

    async fn list_instances(&self, filter: &InstanceFilter) -> Result<Vec<InstanceInfo>> {
        let call = self.inner.list_instances(filter);
        self.step(Site::List, Operation::ListInstances, None, call)
            .await
    }

    fn stream_instances<'a>(
        &'a self,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
        let items = stream::once(self.listed(filter));
        items.flat_map(stream::iter).boxed()
    }

    async fn find_launch(&self, token: &LaunchToken) -> Result<LaunchRecord> {
        let about = self.truth.server_of(token);
        let call = self.inner.find_launch(token);
        self.step(Site::FindLaunch, Operation::FindLaunch, about, call)
            .await
    }

    async fn update_tags(&self, id: &InstanceId, change: &TagChange) -> Result<()> {
        let about = self.owner(id).await;
        let call = self.inner.update_tags(id, change);
        self.step(Site::Retag, Operation::UpdateTags, about, call)
            .await
    }

    async fn reboot_instance(&self, id: &InstanceId, how: Reboot) -> Result<()> {
        let about = self.owner(id).await;
        let call = self.inner.reboot_instance(id, how);
        self.step(Site::Reboot, Operation::RebootInstance, about, call)
            .await
    }

    async fn resize_instance(&self, id: &InstanceId, to: &InstanceType) -> Result<()> {
        let about = self.owner(id).await;
        let call = self.inner.resize_instance(id, to);
        self.step(Site::Resize, Operation::ResizeInstance, about, call)
            .await
    }

    async fn reimage_instance(&self, id: &InstanceId, image: &ImageId) -> Result<()> {
        let about = self.owner(id).await;
        let call = self.inner.reimage_instance(id, image);
        self.step(Site::Reimage, Operation::ReimageInstance, about, call)
            .await
    }

    async fn console_output(&self, id: &InstanceId) -> Result<ConsoleOutput> {
        let call = self.inner.console_output(id);
        self.step(Site::Console, Operation::ConsoleOutput, None, call)
            .await
    }

    async fn snapshot_image(&self, id: &InstanceId, request: &SnapshotRequest) -> Result<ImageId> {
        let call = self.inner.snapshot_image(id, request);
        self.step(Site::Snapshot, Operation::SnapshotImage, None, call)
            .await
    }
}

impl FaultyCloud {
    /// Lets a machine end before it boots, if that is its turn.
    fn doom(&self, id: &InstanceId) {
        let doomed = self.journal.notes(|notes| {
            let doomed = notes.doomed > 0;
            notes.doomed = notes.doomed.saturating_sub(1);
            notes.destroyed += usize::from(doomed);
            doomed
        });
        if doomed {
            // It was launched just now: there is nothing to refuse.
            let _ = self.truth.operator().terminate(id);
            self.journal.tell(&format!("  machine {id} is doomed"));
        }
    }
}
