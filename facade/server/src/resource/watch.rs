//! Changes of instances as server-sent events, which resume where they were interrupted.

use std::{convert::Infallible, time::Duration};

use axum::{
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Sse, sse::Event},
};
use fleetwright_api as api;
use fleetwright_compute::{
    ComputeError,
    instance::InstanceId,
    schema::INSTANCE_KIND,
    service::{Instances, ListInstances},
};
use fleetwright_identity::{Principal, Resource, Scope, Verb};
use fleetwright_store::{Change, Commit, Interest, Kind, Record, Revision, StoreError};
use futures_util::stream;
use serde::{Deserialize, Serialize};
use tokio::{
    sync::{OwnedSemaphorePermit, mpsc},
    time::{Instant, MissedTickBehavior, interval, sleep_until},
};
use utoipa::IntoParams;

use super::Answer;
use crate::{
    failure::Failure,
    http::{
        caller,
        caller::Caller,
        extract::{self, Query},
    },
    keys,
    service::Service,
    wire,
};

/// How often the caller's token and roles are read again, and its position is sent.
const REFRESH_EVERY: Duration = Duration::from_secs(15);
/// The longest time until a watch ends by itself, in seconds, if it has one.
const MAX_TIMEOUT: u64 = 3600;
/// How many events wait for a slow reader, before the watch waits too.
const BUFFER: usize = 64;

/// Where a watch starts.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct WatchParameters {
    /// The `watchFrom` of a list. Without it, and without `Last-Event-ID`, the watch begins with every instance as it is now.
    #[param(pattern = r"^[0-9A-Za-z_-]{48}$")]
    from: Option<String>,
    /// After how many seconds the watch ends, to be resumed. With 0 it ends as soon as the present instances were sent. Default: never.
    #[param(minimum = 0, maximum = 3600)]
    timeout: Option<u64>,
}

/// Watches the instances that the caller may read.
///
/// Events: `instance` for an instance as it is now, `deleted` for one that is gone, `synced` after all present ones were sent, `position`
/// now and then. Each has an id; send the last one as `Last-Event-ID` to resume. A change can be sent twice, and is never left out. If the
/// changes since then are no longer kept, the response is 410: start again without a position.
#[utoipa::path(get, path = "/api/v2/watch/instances", tag = "instances", operation_id = "watchInstances",
    params(WatchParameters, ("Last-Event-ID" = Option<String>, Header, pattern = r"^[0-9A-Za-z_-]{48}$", description = "The id of the last event that was received")),
    responses((status = 200, body = api::WatchEvent, content_type = "text/event-stream")))]
pub(crate) async fn watch(
    State(service): State<Service>,
    Caller(principal): Caller,
    Query(parameters): Query<WatchParameters>,
    headers: HeaderMap,
) -> Answer {
    principal.scopes_for(Verb::Read, Resource::Instances)?;
    let ends = match parameters.timeout {
        Some(_) => Some(extract::seconds(
            "timeout",
            parameters.timeout,
            MAX_TIMEOUT,
        )?),
        None => None,
    };
    let permit = service.callers.watch(principal.actor())?;
    let last = headers
        .get("last-event-id")
        .map(|value| value.to_str().unwrap_or_default().to_owned());
    let position = last.or(parameters.from);
    let after = match &position {
        Some(position) => {
            let opened = service.keys.open_position(position);
            opened.ok_or_else(|| unknown_position(position))?
        }
        None => service.facade.store.head().await?,
    };
    let interest = Interest::kinds([Kind::new(INSTANCE_KIND).map_err(StoreError::from)?]);
    let changes = service.facade.store.watch(after, interest).await;
    let changes = changes.map_err(|error| {
        if matches!(error, StoreError::Compacted { .. } | StoreError::Ahead { .. }) {
            let detail = "Last-Event-ID: the changes since then are no longer kept: start again without a position";
            return Failure::new(StatusCode::GONE, "gone", detail);
        }
        error.into()
    })?;
    let (sender, receiver) = mpsc::channel(BUFFER);
    let feed = Feed {
        token: caller::token(&headers).unwrap_or_default().to_owned(),
        principal,
        service,
        sender,
        _permit: permit,
    };
    let from_start = position.is_none().then_some(after);
    tokio::spawn(feed.run(changes, from_start, ends));
    let events = stream::unfold(receiver, |mut receiver| async {
        let event: Event = receiver.recv().await?;
        Some((Ok::<_, Infallible>(event), receiver))
    });
    Ok(Sse::new(events).into_response())
}

/// A position that this service has not sealed.
fn unknown_position(position: &str) -> Failure {
    let is_form = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    if position.len() == keys::POSITION && position.bytes().all(is_form) {
        let detail = "Last-Event-ID: it is no position of this service: start again without one";
        return Failure::new(StatusCode::GONE, "gone", detail);
    }
    let problem = format!(
        "expected the id of an event, of {} characters",
        keys::POSITION
    );
    Failure::invalid("Last-Event-ID", problem)
}

/// One open watch.
struct Feed {
    service: Service,
    principal: Principal,
    token: String,
    sender: mpsc::Sender<Event>,
    _permit: OwnedSemaphorePermit,
}

/// The watch ends: its reader is gone, may not read any more, or the service stops.
struct Ended;

impl Feed {
    async fn run(
        mut self,
        mut changes: fleetwright_store::Watch,
        from_start: Option<Revision>,
        ends: Option<Duration>,
    ) {
        let deadline = ends.map(|ends| Instant::now() + ends);
        let mut stopping = self.service.stopping.clone();
        if let Some(head) = from_start {
            let sent = tokio::select! {
                biased;
                () = stopped(&mut stopping) => return,
                sent = self.send_all(head) => sent,
            };
            if sent.is_err() {
                return;
            }
        }
        let mut refresh = interval(REFRESH_EVERY);
        refresh.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let sent = tokio::select! {
                biased;
                () = stopped(&mut stopping) => return,
                () = self.sender.closed() => return,
                _ = refresh.tick() => self.refresh(changes.position()).await,
                commit = changes.next() => match commit {
                    Ok(commit) => self.send_commit(&commit).await,
                    // The reader resumes, and is told then if it cannot.
                    Err(error) => {
                        tracing::warn!(%error, "a watch ends: the store failed");
                        return;
                    }
                },
                () = reached(deadline) => return,
            };
            if sent.is_err() {
                return;
            }
        }
    }

    /// Sends every instance as it is now.
    async fn send_all(&mut self, head: Revision) -> Result<(), Ended> {
        let mut wanted = ListInstances::default();
        loop {
            // A slow reader can take longer for a page than its token is valid.
            self.identify().await?;
            let page = self
                .instances()
                .list(&self.principal, &wanted)
                .await
                .map_err(|_| Ended)?;
            for listed in page.instances {
                let instance = wire::instance::row(listed);
                // Without an id: a reader that is interrupted here starts again.
                self.send("instance", None, &api::InstanceChange { instance })
                    .await?;
            }
            let Some(next) = page.next else { break };
            wanted.after = Some(next);
        }
        self.send("synced", Some(head), &serde_json::json!({}))
            .await
    }

    async fn send_commit(&self, commit: &Commit) -> Result<(), Ended> {
        let before = Revision(commit.revision.0.saturating_sub(1));
        let mut changes = commit.changes.iter().peekable();
        while let Some(change) = changes.next() {
            // An interrupted reader gets all changes of the commit again.
            let position = if changes.peek().is_some() {
                before
            } else {
                commit.revision
            };
            self.send_change(change, commit.revision, position).await?;
        }
        Ok(())
    }

    async fn send_change(
        &self,
        change: &Change,
        revision: Revision,
        position: Revision,
    ) -> Result<(), Ended> {
        let record = change.record();
        let Some(id) = self.readable(record) else {
            return Ok(());
        };
        match change {
            Change::Deleted(_) => {
                let gone = api::InstanceGone { id: id.to_string() };
                self.send("deleted", Some(position), &gone).await
            }
            Change::Put(_) => match self.instances().read(&self.principal, id).await {
                // A later commit sends it.
                Ok(view) if view.revision != revision => Ok(()),
                Ok(view) => {
                    let instance = wire::instance::row_of(view);
                    self.send(
                        "instance",
                        Some(position),
                        &api::InstanceChange { instance },
                    )
                    .await
                }
                Err(ComputeError::NotFound(_) | ComputeError::Refused(_)) => Ok(()),
                Err(error) => {
                    tracing::warn!(%error, "a watch ends: an instance cannot be read");
                    Err(Ended)
                }
            },
        }
    }

    /// The id of a record that the caller may read.
    fn readable(&self, record: &Record) -> Option<InstanceId> {
        let scope = Scope::of_record(&record.value)?;
        let allowed = self
            .principal
            .authorize(Verb::Read, Resource::Instances, &scope);
        allowed.ok()?;
        record.id.key.as_str().parse().ok()
    }

    /// Reads token and roles again, and sends the position.
    async fn refresh(&mut self, position: Revision) -> Result<(), Ended> {
        self.identify().await?;
        self.send("position", Some(position), &serde_json::json!({}))
            .await
    }

    /// Reads token and roles again.
    async fn identify(&mut self) -> Result<(), Ended> {
        let now = self.service.facade.clock.now();
        let identity = self.service.authenticator.authenticate(&self.token, now);
        let identity = identity.map_err(|_| Ended)?;
        let resolved = caller::principal(&self.service, &identity).await;
        self.principal = resolved.map_err(|_| Ended)?;
        let readable = self.principal.scopes_for(Verb::Read, Resource::Instances);
        readable.map(drop).map_err(|_| Ended)
    }

    async fn send(
        &self,
        name: &str,
        position: Option<Revision>,
        data: &impl Serialize,
    ) -> Result<(), Ended> {
        let mut event = Event::default()
            .event(name)
            .json_data(data)
            .map_err(|_| Ended)?;
        if let Some(position) = position {
            event = event.id(self.service.keys.seal(position).ok_or(Ended)?);
        }
        self.sender.send(event).await.map_err(|_| Ended)
    }

    fn instances(&self) -> &Instances {
        &self.service.facade.instances
    }
}

/// Returns at a time, or never.
async fn reached(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Returns when the service stops.
async fn stopped(stopping: &mut tokio::sync::watch::Receiver<bool>) {
    // The sender is gone only if the service has stopped.
    let _ = stopping.wait_for(|stopping| *stopping).await;
}

#[cfg(feature = "memory")]
#[cfg(test)]
mod tests;
