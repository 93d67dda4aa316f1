//! A handle: the trait, one request for each call.
//!
//! Owns the parameters and results of the trait's methods. Calls with a default body that the backend does not
//! declare are made by the default body, and optional calls that it does not declare are refused, both without asking it.

use std::{
    fmt,
    future::pending,
    num::NonZeroU32,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use fleetwright::{
    AccountId, BoxStream, Call, Capabilities, ConsoleOutput, ConsoleSession, Effect, ImageId,
    InstanceConfig, InstanceFilter, InstanceId, InstanceInfo, InstanceProvisioner, InstanceStatus,
    InstanceType, LaunchRecord, LaunchToken, ListItem, Operation, OptionalVerb, ProvisionError,
    Reboot, Result, Scope, SnapshotRequest, TagChange,
};
use futures_util::{StreamExt as _, stream};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{
    account::Account, message::Reply, pending_call::PendingCall, process::Process,
    wire_error::WireError,
};

/// A handle on an account.
pub(crate) struct Handle {
    single: SingleCalls,
}

/// The calls without a default body. The default bodies of the others use them.
struct SingleCalls {
    account: Arc<Account>,
    session: u64,
    options: &'static str,
    /// The process that has opened the session; `None` if it could not be opened, which is recorded as a problem.
    process: Mutex<Option<Arc<Process>>>,
    /// Whether the process died during a call of this handle. The contract's process is dead then, and no call returns.
    dead: AtomicBool,
}

impl Handle {
    /// Opens a handle. `options` is `default` or `other`.
    pub(crate) async fn open(account: Arc<Account>, options: &'static str) -> Self {
        let session = account.next_session();
        let process = account.open_session(session, options).await;
        Self {
            single: SingleCalls {
                account,
                session,
                options,
                process: Mutex::new(process),
                dead: AtomicBool::new(false),
            },
        }
    }

    fn implements(&self, operation: Operation) -> bool {
        self.single
            .account
            .backend()
            .hello
            .methods
            .contains(&operation)
    }

    /// Makes an optional call, or refuses it if it is not declared.
    async fn optional<T: DeserializeOwned>(&self, verb: OptionalVerb, params: Value) -> Result<T> {
        let operation = Operation::from(verb);
        if !self.capabilities().supports(verb) {
            return Err(self.single.call(operation).unsupported());
        }
        self.single.request(operation, params).await
    }

    /// Makes a batch call, with one result for each id.
    async fn batch<T: DeserializeOwned>(
        &self,
        operation: Operation,
        ids: &[InstanceId],
    ) -> Vec<Result<T>> {
        let results = self
            .single
            .request::<Vec<Item<T>>>(operation, json!({ "ids": ids }))
            .await;
        let call = self.single.call(operation);
        match results {
            Ok(items) if items.len() == ids.len() => {
                let results = items.into_iter().map(|item| match item {
                    Item::Ok(value) => Ok(value),
                    Item::Error(error) => Err(error.into_error(&call)),
                });
                results.collect()
            }
            Ok(items) => {
                let (given, got) = (ids.len(), items.len());
                let problem = format!("{operation} of {given} ids returned {got} results");
                let error = self.single.broken(operation, &problem);
                ids.iter().map(|_| Err(error.clone())).collect()
            }
            Err(error) => ids.iter().map(|_| Err(error.clone())).collect(),
        }
    }
}

/// One result of a batch.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Item<T> {
    Ok(T),
    Error(WireError),
}

/// One item of a streamed list.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WireListItem {
    Instance(Box<InstanceInfo>),
    Gap { scope: Scope, error: Box<WireError> },
}

impl SingleCalls {
    fn call(&self, operation: Operation) -> Call {
        let provider = self.account.backend().hello.capabilities.provider.as_str();
        Call::new(provider, operation)
    }

    /// Returns the error of a call on a backend that does not work. The clause fails whatever it makes of it.
    fn lost(&self, operation: Operation, problem: &str) -> ProvisionError {
        self.call(operation).unexpected(Effect::Unknown, problem)
    }

    /// Records that the backend broke the protocol.
    fn broken(&self, operation: Operation, problem: &str) -> ProvisionError {
        let problem = match &*self.process() {
            Some(process) => process.break_off(problem),
            None => problem.to_owned(),
        };
        self.lost(operation, &problem)
    }

    fn process(&self) -> MutexGuard<'_, Option<Arc<Process>>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a request. If another handle's call killed the process, the session is opened again in the next one: to the
    /// contract each handle is a process of its own.
    async fn send(&self, operation: Operation, params: Value) -> Result<PendingCall> {
        if self.dead.load(Ordering::SeqCst) {
            return pending().await;
        }
        let opened = self.process().clone();
        let process = match opened.filter(|process| !process.has_crashed()) {
            Some(process) => Some(process),
            None => {
                let next = self.account.open_session(self.session, self.options).await;
                self.process().clone_from(&next);
                next
            }
        };
        match process {
            Some(process) => {
                let session = Some(self.session);
                Ok(self
                    .account
                    .send(&process, session, operation.as_str(), params))
            }
            None => Err(self.lost(operation, "the handle could not be opened")),
        }
    }

    /// Returns the next reply of a call. Never returns for a call that hangs, or that killed the process.
    async fn next_reply(&self, call: &mut PendingCall) -> Result<Reply, String> {
        match call.next_unless_crashed().await? {
            Some(Reply::Hangs) => pending().await,
            Some(reply) => Ok(reply),
            None => {
                self.dead.store(true, Ordering::SeqCst);
                pending().await
            }
        }
    }

    async fn request<T: DeserializeOwned>(&self, operation: Operation, params: Value) -> Result<T> {
        let mut call = self.send(operation, params).await?;
        match self.next_reply(&mut call).await {
            Ok(Reply::Result(value)) => serde_json::from_value(value).map_err(|error| {
                self.broken(
                    operation,
                    &format!("the result of {operation} is wrong: {error}"),
                )
            }),
            Ok(Reply::Error(error)) => Err(error.into_error(&self.call(operation))),
            Ok(other @ (Reply::Page(_) | Reply::Hangs)) => Err(self.broken(
                operation,
                &format!("it answered {operation} with {other:?}"),
            )),
            Err(problem) => Err(self.lost(operation, &problem)),
        }
    }

    /// Converts one item of a stream.
    fn list_item(&self, item: Value) -> Result<ListItem> {
        let operation = Operation::StreamInstances;
        match serde_json::from_value(item) {
            Ok(WireListItem::Instance(info)) => Ok(ListItem::Instance(info)),
            Ok(WireListItem::Gap { scope, error }) => Ok(ListItem::Gap {
                scope,
                error: error.into_error(&self.call(operation)),
            }),
            Err(error) => {
                let problem = format!("an item of {operation} is wrong: {error}");
                Err(self.broken(operation, &problem))
            }
        }
    }

    /// Returns the next page of a stream, `None` after its last one.
    async fn next_page(&self, call: &mut PendingCall) -> Result<Option<Vec<Result<ListItem>>>> {
        let operation = Operation::StreamInstances;
        match self.next_reply(call).await {
            Ok(Reply::Page(items)) => {
                let items = items.into_iter().map(|item| self.list_item(item).map(Ok));
                items.collect::<Result<_>>().map(Some)
            }
            Ok(Reply::Result(Value::Null)) => Ok(None),
            Ok(Reply::Error(error)) => Err(error.into_error(&self.call(operation))),
            Ok(other @ (Reply::Result(_) | Reply::Hangs)) => {
                Err(self.broken(operation, &format!("it ended {operation} with {other:?}")))
            }
            Err(problem) => Err(self.lost(operation, &problem)),
        }
    }
}

/// How far a streamed list is. An error ends it.
enum Stream {
    NotSent,
    Sent(PendingCall),
    Failed,
}

impl Drop for SingleCalls {
    /// Tells the backend that the handle is gone. Nobody waits for the reply.
    fn drop(&mut self) {
        let process = self.process().take();
        if let Some(process) = process.filter(|process| process.ended().is_none()) {
            let session = Some(self.session);
            drop(process.send(session, "close", json!({}), Duration::ZERO, None));
        }
    }
}

impl fmt::Debug for SingleCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "handle {} on {}",
            self.session,
            self.account.backend().hello.name
        )
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.single.fmt(f)
    }
}

#[async_trait]
impl InstanceProvisioner for SingleCalls {
    fn capabilities(&self) -> &Capabilities {
        &self.account.backend().hello.capabilities
    }
    async fn launch_instance(&self, config: &InstanceConfig) -> Result<InstanceInfo> {
        let params = json!({ "config": config });
        self.request(Operation::LaunchInstance, params).await
    }
    async fn terminate_instance(&self, id: &InstanceId) -> Result<()> {
        self.request(Operation::TerminateInstance, json!({ "id": id }))
            .await
    }
    async fn stop_instance(&self, id: &InstanceId) -> Result<()> {
        self.request(Operation::StopInstance, json!({ "id": id }))
            .await
    }
    async fn start_instance(&self, id: &InstanceId) -> Result<InstanceInfo> {
        self.request(Operation::StartInstance, json!({ "id": id }))
            .await
    }
    async fn describe_instance(&self, id: &InstanceId) -> Result<InstanceStatus> {
        self.request(Operation::DescribeInstance, json!({ "id": id }))
            .await
    }
    async fn list_instances(&self, filter: &InstanceFilter) -> Result<Vec<InstanceInfo>> {
        let params = json!({ "filter": filter });
        self.request(Operation::ListInstances, params).await
    }
    async fn find_launch(&self, token: &LaunchToken) -> Result<LaunchRecord> {
        let params = json!({ "token": token });
        self.request(Operation::FindLaunch, params).await
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl InstanceProvisioner for Handle {
    fn capabilities(&self) -> &Capabilities {
        self.single.capabilities()
    }
    async fn launch_instance(&self, config: &InstanceConfig) -> Result<InstanceInfo> {
        self.single.launch_instance(config).await
    }
    async fn terminate_instance(&self, id: &InstanceId) -> Result<()> {
        self.single.terminate_instance(id).await
    }
    async fn stop_instance(&self, id: &InstanceId) -> Result<()> {
        self.single.stop_instance(id).await
    }
    async fn start_instance(&self, id: &InstanceId) -> Result<InstanceInfo> {
        self.single.start_instance(id).await
    }
    async fn describe_instance(&self, id: &InstanceId) -> Result<InstanceStatus> {
        self.single.describe_instance(id).await
    }
    async fn list_instances(&self, filter: &InstanceFilter) -> Result<Vec<InstanceInfo>> {
        self.single.list_instances(filter).await
    }
    async fn find_launch(&self, token: &LaunchToken) -> Result<LaunchRecord> {
        self.single.find_launch(token).await
    }

    async fn launch_instances(
        &self,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        let operation = Operation::LaunchInstances;
        if !self.implements(operation) {
            return self.single.launch_instances(config, count).await;
        }
        let params = json!({ "config": config, "count": count });
        self.single.request(operation, params).await
    }

    async fn terminate_instances(&self, ids: &[InstanceId]) -> Vec<Result<()>> {
        let operation = Operation::TerminateInstances;
        if !self.implements(operation) {
            return self.single.terminate_instances(ids).await;
        }
        self.batch(operation, ids).await
    }

    async fn stop_instances(&self, ids: &[InstanceId]) -> Vec<Result<()>> {
        let operation = Operation::StopInstances;
        if !self.implements(operation) {
            return self.single.stop_instances(ids).await;
        }
        self.batch(operation, ids).await
    }

    async fn start_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceInfo>> {
        let operation = Operation::StartInstances;
        if !self.implements(operation) {
            return self.single.start_instances(ids).await;
        }
        self.batch(operation, ids).await
    }

    async fn describe_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceStatus>> {
        let operation = Operation::DescribeInstances;
        if !self.implements(operation) {
            return self.single.describe_instances(ids).await;
        }
        self.batch(operation, ids).await
    }

    fn stream_instances<'a>(
        &'a self,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
        let operation = Operation::StreamInstances;
        if !self.implements(operation) {
            return self.single.stream_instances(filter);
        }
        let pages = stream::unfold(Stream::NotSent, move |stream| async move {
            let sent = match stream {
                Stream::NotSent => {
                    self.single
                        .send(operation, json!({ "filter": filter }))
                        .await
                }
                Stream::Sent(call) => Ok(call),
                Stream::Failed => return None,
            };
            match sent {
                Ok(mut call) => match self.single.next_page(&mut call).await {
                    Ok(Some(page)) => Some((page, Stream::Sent(call))),
                    Ok(None) => None,
                    Err(error) => Some((vec![Err(error)], Stream::Failed)),
                },
                Err(error) => Some((vec![Err(error)], Stream::Failed)),
            }
        });
        pages.flat_map(stream::iter).boxed()
    }

    async fn account_id(&self) -> Result<Option<AccountId>> {
        if !self.implements(Operation::AccountId) {
            return self.single.account_id().await;
        }
        self.single.request(Operation::AccountId, json!({})).await
    }

    async fn update_tags(&self, id: &InstanceId, change: &TagChange) -> Result<()> {
        let params = json!({ "id": id, "change": change });
        self.optional(OptionalVerb::UpdateTags, params).await
    }
    async fn reboot_instance(&self, id: &InstanceId, how: Reboot) -> Result<()> {
        let params = json!({ "id": id, "how": how });
        self.optional(OptionalVerb::RebootInstance, params).await
    }
    async fn resize_instance(&self, id: &InstanceId, to: &InstanceType) -> Result<()> {
        let params = json!({ "id": id, "to": to });
        self.optional(OptionalVerb::ResizeInstance, params).await
    }
    async fn reimage_instance(&self, id: &InstanceId, image: &ImageId) -> Result<()> {
        let params = json!({ "id": id, "image": image });
        self.optional(OptionalVerb::ReimageInstance, params).await
    }
    async fn console_output(&self, id: &InstanceId) -> Result<ConsoleOutput> {
        self.optional(OptionalVerb::ConsoleOutput, json!({ "id": id }))
            .await
    }
    async fn console_session(&self, id: &InstanceId) -> Result<ConsoleSession> {
        self.optional(OptionalVerb::ConsoleSession, json!({ "id": id }))
            .await
    }
    async fn snapshot_image(&self, id: &InstanceId, request: &SnapshotRequest) -> Result<ImageId> {
        let params = json!({ "id": id, "request": request });
        self.optional(OptionalVerb::SnapshotImage, params).await
    }
    async fn delete_image(&self, image: &ImageId) -> Result<()> {
        let params = json!({ "image": image });
        self.optional(OptionalVerb::DeleteImage, params).await
    }
}
