//! A pointer to a provisioner forwards every call, including the provided methods.

use std::{
    num::NonZeroU32,
    sync::{Arc, Mutex},
};

use fleetwright::{
    AccountId, BoxStream, Capabilities, CloudInstanceState, ConsoleOutput, ConsoleSession, ImageId,
    InstanceConfig, InstanceFilter, InstanceId, InstanceInfo, InstanceProvisioner, InstanceStatus,
    InstanceType, LaunchRecord, LaunchToken, ListItem, Operation, Reboot, Result, SnapshotRequest,
    TagChange, TagLimits, async_trait,
};
use futures_util::{StreamExt as _, stream};

use crate::fake::{call, id};

/// A backend that implements every method, records the calls, and returns results that no provided
/// method returns.
#[derive(Debug)]
struct Whole {
    capabilities: Capabilities,
    called: Mutex<Vec<&'static str>>,
}

impl Whole {
    fn new() -> Self {
        Self {
            capabilities: Capabilities::new("whole", TagLimits::new(9, 9, 9), 9),
            called: Mutex::default(),
        }
    }

    fn note(&self, operation: Operation) {
        self.called.lock().unwrap().push(operation.as_str());
    }

    fn info(&self, operation: Operation) -> InstanceInfo {
        self.note(operation);
        InstanceInfo::new(id("i-whole"), CloudInstanceState::Pending)
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl InstanceProvisioner for Whole {
    fn capabilities(&self) -> &Capabilities {
        self.called.lock().unwrap().push("capabilities");
        &self.capabilities
    }
    async fn launch_instance(&self, _: &InstanceConfig) -> Result<InstanceInfo> {
        Ok(self.info(Operation::LaunchInstance))
    }
    async fn terminate_instance(&self, _: &InstanceId) -> Result<()> {
        self.note(Operation::TerminateInstance);
        Ok(())
    }
    async fn stop_instance(&self, _: &InstanceId) -> Result<()> {
        self.note(Operation::StopInstance);
        Ok(())
    }
    async fn start_instance(&self, _: &InstanceId) -> Result<InstanceInfo> {
        Ok(self.info(Operation::StartInstance))
    }
    async fn describe_instance(&self, _: &InstanceId) -> Result<InstanceStatus> {
        Ok(self.info(Operation::DescribeInstance).into())
    }
    async fn list_instances(&self, _: &InstanceFilter) -> Result<Vec<InstanceInfo>> {
        Ok(vec![self.info(Operation::ListInstances)])
    }
    async fn find_launch(&self, _: &LaunchToken) -> Result<LaunchRecord> {
        Ok(LaunchRecord::from_instances(vec![
            self.info(Operation::FindLaunch),
        ]))
    }
    async fn account_id(&self) -> Result<Option<AccountId>> {
        self.note(Operation::AccountId);
        Ok(Some(AccountId::new("own").unwrap()))
    }
    async fn launch_instances(
        &self,
        _: &InstanceConfig,
        _: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        Ok(vec![self.info(Operation::LaunchInstances)])
    }
    async fn terminate_instances(&self, _: &[InstanceId]) -> Vec<Result<()>> {
        self.note(Operation::TerminateInstances);
        vec![Err(call(Operation::TerminateInstances).forbidden("own"))]
    }
    async fn stop_instances(&self, _: &[InstanceId]) -> Vec<Result<()>> {
        self.note(Operation::StopInstances);
        vec![Err(call(Operation::StopInstances).forbidden("own"))]
    }
    async fn start_instances(&self, _: &[InstanceId]) -> Vec<Result<InstanceInfo>> {
        vec![Ok(self.info(Operation::StartInstances))]
    }
    async fn describe_instances(&self, _: &[InstanceId]) -> Vec<Result<InstanceStatus>> {
        vec![Ok(self.info(Operation::DescribeInstances).into())]
    }
    fn stream_instances<'a>(&'a self, _: &'a InstanceFilter) -> BoxStream<'a, Result<ListItem>> {
        stream::iter([Ok(self.info(Operation::StreamInstances).into())]).boxed()
    }
    async fn update_tags(&self, _: &InstanceId, _: &TagChange) -> Result<()> {
        self.note(Operation::UpdateTags);
        Ok(())
    }
    async fn reboot_instance(&self, _: &InstanceId, _: Reboot) -> Result<()> {
        self.note(Operation::RebootInstance);
        Ok(())
    }
    async fn resize_instance(&self, _: &InstanceId, _: &InstanceType) -> Result<()> {
        self.note(Operation::ResizeInstance);
        Ok(())
    }
    async fn reimage_instance(&self, _: &InstanceId, _: &ImageId) -> Result<()> {
        self.note(Operation::ReimageInstance);
        Ok(())
    }
    async fn console_output(&self, _: &InstanceId) -> Result<ConsoleOutput> {
        self.note(Operation::ConsoleOutput);
        Ok(ConsoleOutput::new("own"))
    }
    async fn console_session(&self, _: &InstanceId) -> Result<ConsoleSession> {
        self.note(Operation::ConsoleSession);
        Ok(ConsoleSession::new("own"))
    }
    async fn snapshot_image(&self, _: &InstanceId, _: &SnapshotRequest) -> Result<ImageId> {
        self.note(Operation::SnapshotImage);
        Ok(ImageId::new("own").unwrap())
    }
    async fn delete_image(&self, _: &ImageId) -> Result<()> {
        self.note(Operation::DeleteImage);
        Ok(())
    }
}

/// Sends every call once through `pointer`, in the order of `Operation::ALL`, and checks its result.
async fn make_every_call<P: InstanceProvisioner + ?Sized>(pointer: &P) {
    let config = InstanceConfig::builder("image-7", "small").build().unwrap();
    let (one, filter, batch) = (&id("i-1"), &InstanceFilter::new(), NonZeroU32::MIN);
    let token = LaunchToken::new("t-1").unwrap();
    let (kind, image) = (
        InstanceType::new("big").unwrap(),
        ImageId::new("x").unwrap(),
    );
    let snapshot = SnapshotRequest::new("x").unwrap();
    let whole = id("i-whole");
    let own = [one.clone(), one.clone()];

    assert_eq!(pointer.capabilities().provider, "whole");
    assert_eq!(pointer.launch_instance(&config).await.unwrap().id, whole);
    let launched = pointer.launch_instances(&config, batch).await.unwrap();
    assert_eq!(launched[0].id, whole);
    pointer.terminate_instance(one).await.unwrap();
    assert!(pointer.terminate_instances(&own).await[0].is_err());
    pointer.stop_instance(one).await.unwrap();
    assert!(pointer.stop_instances(&own).await[0].is_err());
    assert_eq!(pointer.start_instance(one).await.unwrap().id, whole);
    assert_eq!(pointer.start_instances(&own).await.len(), 1);
    assert_eq!(pointer.describe_instance(one).await.unwrap().id, whole);
    assert_eq!(pointer.describe_instances(&own).await.len(), 1);
    assert_eq!(pointer.list_instances(filter).await.unwrap()[0].id, whole);
    assert_eq!(pointer.stream_instances(filter).count().await, 1);
    let found = pointer.find_launch(&token).await.unwrap();
    assert!(matches!(found, LaunchRecord::Found(_)));
    let account = pointer.account_id().await.unwrap().unwrap();
    assert_eq!(account.as_str(), "own");
    let change = TagChange::new();
    pointer.update_tags(one, &change).await.unwrap();
    pointer.reboot_instance(one, Reboot::Soft).await.unwrap();
    pointer.resize_instance(one, &kind).await.unwrap();
    pointer.reimage_instance(one, &image).await.unwrap();
    assert_eq!(pointer.console_output(one).await.unwrap().text, "own");
    assert_eq!(pointer.console_session(one).await.unwrap().url, "own");
    let created = pointer.snapshot_image(one, &snapshot).await.unwrap();
    assert_eq!(created.as_str(), "own");
    pointer.delete_image(&image).await.unwrap();
}

/// Checks that every call was made once, and clears the record.
fn check_all_called(whole: &Whole) {
    let called = std::mem::take(&mut *whole.called.lock().unwrap());
    let mut expected = vec!["capabilities"];
    expected.extend(Operation::ALL.map(Operation::as_str));
    assert_eq!(called, expected);
}

#[tokio::test]
async fn every_call_is_forwarded_by_every_pointer() {
    let whole = Whole::new();
    make_every_call::<&Whole>(&&whole).await;
    check_all_called(&whole);
    make_every_call::<&dyn InstanceProvisioner>(&(&whole as &dyn InstanceProvisioner)).await;
    check_all_called(&whole);
    make_every_call::<dyn InstanceProvisioner>(&whole).await;
    check_all_called(&whole);

    let boxed = Box::new(whole);
    make_every_call::<Box<Whole>>(&boxed).await;
    check_all_called(&boxed);

    let shared = Arc::new(*boxed);
    make_every_call::<Arc<Whole>>(&shared).await;
    check_all_called(&shared);
    let any: Arc<dyn InstanceProvisioner> = shared.clone();
    make_every_call::<Arc<dyn InstanceProvisioner>>(&any).await;
    check_all_called(&shared);
    let deep: Box<dyn InstanceProvisioner> = Box::new(any);
    make_every_call::<Box<dyn InstanceProvisioner>>(&deep).await;
    check_all_called(&shared);
}
