//! The operations of the matrix: every call of the trait, and its batch twin.
//!
//! Owns one table. A new call of the trait is one more row of it, with what it needs and what it
//! changes; every property of the matrix then holds for it, too.

use std::num::NonZeroU32;

use fleetwright::{
    AccountId, ErrorKind, ImageId, InstanceConfig, InstanceFilter, InstanceId, InstanceInfo,
    InstanceProvisioner, InstanceStatus, InstanceType, LaunchRecord, ListItem, Operation,
    OptionalVerb, Reboot, Result, SnapshotRequest, TagChange,
};
use futures_util::{FutureExt as _, StreamExt as _, future::BoxFuture};

use crate::WireOp;

/// One operation.
pub(super) struct Row {
    /// The call.
    pub(super) operation: Operation,
    /// The call that the default body makes for each item: an error may name either.
    pub(super) single: Operation,
    /// What the message calls it, if that is not the operation's name.
    pub(super) name: &'static str,
    /// What a backend must declare to offer it.
    pub(super) verb: Option<OptionalVerb>,
    /// What it is called on.
    pub(super) needs: Needs,
    /// What it changes.
    pub(super) change: Change,
    /// The native call that needs capacity, if there is one.
    pub(super) capacity: Option<WireOp>,
    /// Kinds of errors that it may return with any fault.
    pub(super) kinds: &'static [ErrorKind],
    /// Makes the call. Returns one result for each item.
    pub(super) call: Make,
}

/// Makes a call on its target.
pub(super) type Make =
    for<'a> fn(&'a dyn InstanceProvisioner, &'a Target) -> BoxFuture<'a, Vec<Result<Got>>>;

/// What an operation is called on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needs {
    /// Nothing that exists.
    Nothing,
    /// The launch of the instances that are never changed.
    Launch,
    /// So many running instances.
    Running(usize),
    /// So many stopped instances.
    Stopped(usize),
    /// An image that a snapshot created.
    Image,
}

/// What an operation changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// Nothing: it is a read.
    Nothing,
    /// It opens a session, which changes no instance.
    Session,
    /// It launches so many instances, with a token.
    Launch(u32),
    /// It launches one instance, without a token.
    LaunchOnce,
    /// It stops each item.
    Stop,
    /// It starts each item.
    Start,
    /// It terminates each item.
    Terminate,
    /// The tags.
    Tags,
    /// It boots again.
    Boot,
    /// The instance type.
    Type,
    /// The image.
    Image,
    /// It creates an image.
    Snapshot,
    /// It deletes an image.
    Deletion,
}

impl Change {
    /// Returns how many instances it launches.
    pub(super) const fn launches(self) -> u32 {
        match self {
            Self::Launch(count) => count,
            Self::LaunchOnce => 1,
            Self::Nothing
            | Self::Session
            | Self::Stop
            | Self::Start
            | Self::Terminate
            | Self::Tags
            | Self::Boot
            | Self::Type
            | Self::Image
            | Self::Snapshot
            | Self::Deletion => 0,
        }
    }

    /// Returns whether the call leaves every instance as it is.
    pub(super) const fn changes_no_instance(self) -> bool {
        matches!(self, Self::Nothing | Self::Session)
    }

    /// Returns whether the call may be repeated until it succeeds.
    pub(super) const fn can_be_repeated(self) -> bool {
        !matches!(self, Self::LaunchOnce | Self::Boot)
    }
}

/// What the call of one cell is about.
#[derive(Clone, Debug)]
pub(super) struct Target {
    /// The instances.
    pub(super) ids: Vec<InstanceId>,
    /// What is launched, with tags that nothing else has, or what was launched.
    pub(super) config: InstanceConfig,
    /// What is listed.
    pub(super) filter: InstanceFilter,
    /// The new tags and the ones to remove.
    pub(super) tags: TagChange,
    /// The new type.
    pub(super) instance_type: InstanceType,
    /// The new image.
    pub(super) image: ImageId,
    /// The image to create, or the one to delete.
    pub(super) snapshot: SnapshotRequest,
    /// The id of the image to delete.
    pub(super) created: Option<ImageId>,
    /// The account, as it was read without a fault.
    pub(super) account: Option<AccountId>,
}

/// What a call returned.
#[derive(Clone, Debug)]
pub(super) enum Got {
    Done,
    Instances(Vec<InstanceInfo>),
    Status(InstanceStatus),
    Record(LaunchRecord),
    Image(ImageId),
    Account(Option<AccountId>),
}

/// How many instances a batch has. It is more than one native call on every cloud with batches of one or two.
const BATCH: usize = 3;

/// A row of a call without a batch twin, on which the others are based.
const READ: Row = Row {
    operation: Operation::FindLaunch,
    single: Operation::FindLaunch,
    name: "find_launch",
    verb: None,
    needs: Needs::Launch,
    change: Change::Nothing,
    capacity: None,
    kinds: &[],
    call: find_launch,
};

/// Every operation: reads of instances first, so that they are made on instances in stable states.
pub(super) const OPERATIONS: &[Row] = &[
    READ,
    Row {
        operation: Operation::DescribeInstance,
        single: Operation::DescribeInstance,
        name: "describe_instance",
        needs: Needs::Running(1),
        call: describe,
        ..READ
    },
    Row {
        operation: Operation::DescribeInstances,
        single: Operation::DescribeInstance,
        name: "describe_instances",
        needs: Needs::Running(BATCH),
        call: describe_all,
        ..READ
    },
    Row {
        operation: Operation::ListInstances,
        single: Operation::ListInstances,
        name: "list_instances",
        needs: Needs::Running(1),
        kinds: &[ErrorKind::Incomplete],
        call: list,
        ..READ
    },
    Row {
        operation: Operation::StreamInstances,
        single: Operation::ListInstances,
        name: "stream_instances",
        needs: Needs::Running(1),
        kinds: &[ErrorKind::Incomplete],
        call: stream,
        ..READ
    },
    Row {
        operation: Operation::ConsoleOutput,
        single: Operation::ConsoleOutput,
        name: "console_output",
        verb: Some(OptionalVerb::ConsoleOutput),
        needs: Needs::Running(1),
        call: console,
        ..READ
    },
    Row {
        operation: Operation::LaunchInstance,
        single: Operation::LaunchInstance,
        name: "launch_instance",
        needs: Needs::Nothing,
        change: Change::Launch(1),
        capacity: Some(WireOp::Launch),
        call: launch,
        ..READ
    },
    Row {
        operation: Operation::LaunchInstance,
        single: Operation::LaunchInstance,
        name: "launch_instance without a token",
        needs: Needs::Nothing,
        change: Change::LaunchOnce,
        capacity: Some(WireOp::Launch),
        call: launch,
        ..READ
    },
    Row {
        operation: Operation::LaunchInstances,
        single: Operation::LaunchInstance,
        name: "launch_instances",
        needs: Needs::Nothing,
        change: Change::Launch(3),
        capacity: Some(WireOp::Launch),
        call: launch_three,
        ..READ
    },
    Row {
        operation: Operation::UpdateTags,
        single: Operation::UpdateTags,
        name: "update_tags",
        verb: Some(OptionalVerb::UpdateTags),
        needs: Needs::Running(1),
        change: Change::Tags,
        call: update_tags,
        ..READ
    },
    Row {
        operation: Operation::RebootInstance,
        single: Operation::RebootInstance,
        name: "reboot_instance",
        verb: Some(OptionalVerb::RebootInstance),
        needs: Needs::Running(1),
        change: Change::Boot,
        call: reboot,
        ..READ
    },
    Row {
        operation: Operation::SnapshotImage,
        single: Operation::SnapshotImage,
        name: "snapshot_image",
        verb: Some(OptionalVerb::SnapshotImage),
        needs: Needs::Running(1),
        change: Change::Snapshot,
        call: snapshot,
        ..READ
    },
    Row {
        operation: Operation::DeleteImage,
        single: Operation::DeleteImage,
        name: "delete_image",
        verb: Some(OptionalVerb::DeleteImage),
        needs: Needs::Image,
        change: Change::Deletion,
        call: delete_image,
        ..READ
    },
    Row {
        operation: Operation::StopInstance,
        single: Operation::StopInstance,
        name: "stop_instance",
        needs: Needs::Running(1),
        change: Change::Stop,
        call: stop,
        ..READ
    },
    Row {
        operation: Operation::StopInstances,
        single: Operation::StopInstance,
        name: "stop_instances",
        needs: Needs::Running(BATCH),
        change: Change::Stop,
        call: stop_all,
        ..READ
    },
    Row {
        operation: Operation::ResizeInstance,
        single: Operation::ResizeInstance,
        name: "resize_instance",
        verb: Some(OptionalVerb::ResizeInstance),
        needs: Needs::Stopped(1),
        change: Change::Type,
        call: resize,
        ..READ
    },
    Row {
        operation: Operation::ReimageInstance,
        single: Operation::ReimageInstance,
        name: "reimage_instance",
        verb: Some(OptionalVerb::ReimageInstance),
        needs: Needs::Stopped(1),
        change: Change::Image,
        call: reimage,
        ..READ
    },
    Row {
        operation: Operation::StartInstance,
        single: Operation::StartInstance,
        name: "start_instance",
        needs: Needs::Stopped(1),
        change: Change::Start,
        capacity: Some(WireOp::Start),
        call: start,
        ..READ
    },
    Row {
        operation: Operation::StartInstances,
        single: Operation::StartInstance,
        name: "start_instances",
        needs: Needs::Stopped(BATCH),
        change: Change::Start,
        capacity: Some(WireOp::Start),
        call: start_all,
        ..READ
    },
    Row {
        operation: Operation::TerminateInstance,
        single: Operation::TerminateInstance,
        name: "terminate_instance",
        needs: Needs::Running(1),
        change: Change::Terminate,
        call: terminate,
        ..READ
    },
    Row {
        operation: Operation::TerminateInstances,
        single: Operation::TerminateInstance,
        name: "terminate_instances",
        needs: Needs::Running(BATCH),
        change: Change::Terminate,
        call: terminate_all,
        ..READ
    },
    Row {
        operation: Operation::ConsoleSession,
        single: Operation::ConsoleSession,
        name: "console_session",
        verb: Some(OptionalVerb::ConsoleSession),
        needs: Needs::Running(1),
        change: Change::Session,
        call: console_session,
        ..READ
    },
    Row {
        operation: Operation::AccountId,
        single: Operation::AccountId,
        name: "account_id",
        needs: Needs::Nothing,
        call: account_id,
        ..READ
    },
];

type Call<'a> = BoxFuture<'a, Vec<Result<Got>>>;

/// Returns the only result of a call.
fn one<T>(result: Result<T>, got: impl FnOnce(T) -> Got) -> Vec<Result<Got>> {
    vec![result.map(got)]
}

/// Returns the results of a batch.
fn each<T>(results: Vec<Result<T>>, got: impl Fn(T) -> Got) -> Vec<Result<Got>> {
    let mut all = Vec::with_capacity(results.len());
    all.extend(results.into_iter().map(|result| result.map(&got)));
    all
}

fn done((): ()) -> Got {
    Got::Done
}

fn instance(info: InstanceInfo) -> Got {
    Got::Instances(vec![info])
}

fn find_launch<'a>(on: &'a dyn InstanceProvisioner, target: &'a Target) -> Call<'a> {
    async move {
        match &target.config.launch_token {
            Some(token) => one(on.find_launch(token).await, Got::Record),
            None => Vec::new(),
        }
    }
    .boxed()
}

fn describe<'a>(on: &'a dyn InstanceProvisioner, target: &'a Target) -> Call<'a> {
    async move { one(on.describe_instance(&target.ids[0]).await, Got::Status) }.boxed()
}

fn describe_all<'a>(on: &'a dyn InstanceProvisioner, target: &'a Target) -> Call<'a> {
    async move { each(on.describe_instances(&target.ids).await, Got::Status) }.boxed()
}

fn list<'a>(on: &'a dyn InstanceProvisioner, target: &'a Target) -> Call<'a> {
    async move { one(on.list_instances(&target.filter).await, Got::Instances) }.boxed()
}

/// Streams up to the first gap or error, which is then the result.
fn stream<'a>(on: &'a dyn InstanceProvisioner, target: &'a Target) -> Call<'a> {
    async move {
        let mut items = on.stream_instances(&target.filter);
        let mut instances = Vec::new();
        while let Some(item) = items.next().await {
            match item {
                Ok(ListItem::Instance(info)) => instances.push(*info),
                Ok(ListItem::Gap { error, .. }) | Err(error) => return vec![Err(error)],
            }
        }
        vec![Ok(Got::Instances(instances))]
    }
    .boxed()
}

fn console<'a>(on: &'a dyn InstanceProvisioner, target: &'a Target) -> Call<'a> {
    async move { one(on.console_output(&target.ids[0]).await, |_| Got::Done) }.boxed()
}

fn console_session<'a>(on: &'a dyn InstanceProvisioner, target: &'a Target) -> Call<'a> {
    async move { one(on.console_session(&target.ids[0]).await, |_| Got::Done) }.boxed()
}

fn account_id<'a>(on: &'a dyn InstanceProvisioner, _: &'a Target) -> Call<'a> {
    async move { one(on.account_id().await, Got::Account) }.boxed()
}

fn launch<'a>(on: &'a dyn InstanceProvisioner, target: &'a Target) -> Call<'a> {
    async move { one(on.launch_instance(&target.config).await, instance) }.boxed()
}

fn launch_three<'a>(on: &'a dyn InstanceProvisioner, target: &'a Target) -> Call<'a> {
    async move {
        let three = NonZeroU32::MIN.saturating_add(2);
        let launched = on.launch_instances(&target.config, three).await;
        one(launched, Got::Instances)
    }
    .boxed()
}

fn update_tags<'a>(on: &'a dyn InstanceProvisioner, target: &'a Target) -> Call<'a> {
    async move { one(on.update_tags(&target.ids[0], &target.tags).await, done) }.boxed()
}

fn reboot<'a>(on: &'a dyn InstanceProvisioner, target: &'a Target) -> Call<'a> {
    async move {
        let rebooted = on.reboot_instance(&target.ids[0], Reboot::Hard).await;
        one(rebooted, done)
    }
    .boxed()
}

fn snapshot<'a>(on: &'a dyn InstanceProvisioner, target: &'a Target) -> Call<'a> {
    async move {
        let created = on.snapshot_image(&target.ids[0], &target.snapshot).await;
        one(created, Got::Image)
    }
    .boxed()
}

fn delete_image<'a>(on: &'a dyn InstanceProvisioner, target: &'a Target) -> Call<'a> {
    async move {
        match &target.created {
            Some(image) => one(on.delete_image(image).await, done),
            None => Vec::new(),
        }
    }
    .boxed()
}

fn stop<'a>(on: &'a dyn InstanceProvisioner, target: &'a Target) -> Call<'a> {
    async move { one(on.stop_instance(&target.ids[0]).await, done) }.boxed()
}

fn stop_all<'a>(on: &'a dyn InstanceProvisioner, target: &'a Target) -> Call<'a> {
    async move { each(on.stop_instances(&target.ids).await, done) }.boxed()
}

fn resize<'a>(on: &'a dyn InstanceProvisioner, target: &'a Target) -> Call<'a> {
    async move {
        let resized = on
            .resize_instance(&target.ids[0], &target.instance_type)
            .await;
        one(resized, done)
    }
    .boxed()
}

fn reimage<'a>(on: &'a dyn InstanceProvisioner, target: &'a Target) -> Call<'a> {
    async move {
        let reimaged = on.reimage_instance(&target.ids[0], &target.image).await;
        one(reimaged, done)
    }
    .boxed()
}

fn start<'a>(on: &'a dyn InstanceProvisioner, target: &'a Target) -> Call<'a> {
    async move { one(on.start_instance(&target.ids[0]).await, instance) }.boxed()
}

fn start_all<'a>(on: &'a dyn InstanceProvisioner, target: &'a Target) -> Call<'a> {
    async move { each(on.start_instances(&target.ids).await, instance) }.boxed()
}

fn terminate<'a>(on: &'a dyn InstanceProvisioner, target: &'a Target) -> Call<'a> {
    async move { one(on.terminate_instance(&target.ids[0]).await, done) }.boxed()
}

fn terminate_all<'a>(on: &'a dyn InstanceProvisioner, target: &'a Target) -> Call<'a> {
    async move { each(on.terminate_instances(&target.ids).await, done) }.boxed()
}
