//! Changes of instances as a stream that survives lost connections.

use std::{collections::VecDeque, time::Duration};

use fleetwright_api::{InstanceChange, InstanceGone, InstanceSummary};
use futures_util::{StreamExt as _, stream, stream::BoxStream};
use serde::de::DeserializeOwned;
use sse_stream::{Sse, SseByteStream};
use tokio::time::{Instant, timeout};

use crate::{
    Client, Effect, Error,
    call::{self, Call},
    operation, retry,
};

/// The service sends something every 15 s. After this time without anything the connection counts as lost.
const SILENCE: Duration = Duration::from_secs(50);
/// How long the service may take to begin a response.
const BEGIN_WITHIN: Duration = Duration::from_secs(40);
/// How many delays there are before they stay the longest.
const DELAYS: usize = 64;

/// Where a watch begins.
///
/// ```
/// use fleetwright_client::WatchFrom;
///
/// let stored: Option<String> = None; // the position of the last event that was handled
/// let from = stored.map_or(WatchFrom::Now, WatchFrom::Position);
/// assert_eq!(from, WatchFrom::Now);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum WatchFrom {
    /// With every instance as it is now, followed by [`Change::Synced`].
    #[default]
    Now,
    /// After a position: of an event, or the `watch_from` of a page of instances.
    Position(String),
}

/// An event of a watch.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct WatchEvent {
    /// What happened.
    pub change: Change,
    /// A later watch can begin after this event from here. The first events of a watch from now have none.
    pub position: Option<String>,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// An instance as it is now. The same state can come twice.
    Instance(Box<InstanceSummary>),
    /// The record of an instance with this id is gone, or was gone already.
    Deleted(String),
    /// Every instance that was there at the beginning has been sent.
    Synced,
    /// Nothing was missed until this position.
    Position,
    /// The watch could not resume, because the changes since then are no longer kept. It begins again: forget every instance. All are sent
    /// again, followed by [`Change::Synced`].
    Restarted,
}

impl Client {
    /// Watches the instances that the caller may read.
    ///
    /// A lost connection is opened again, and the watch resumes after the last event that was received. While the service cannot be
    /// reached it is tried again until the client's deadline, measured from the loss. The stream ends after an error.
    ///
    /// ```no_run
    /// # async fn example(client: fleetwright_client::Client) -> Result<(), fleetwright_client::Error> {
    /// use std::collections::BTreeMap;
    /// use fleetwright_client::{Change, WatchFrom};
    /// use futures_util::TryStreamExt;
    ///
    /// let mut instances = BTreeMap::new();
    /// let mut events = client.watch_instances(WatchFrom::Now);
    /// while let Some(event) = events.try_next().await? {
    ///     match event.change {
    ///         Change::Instance(instance) => drop(instances.insert(instance.metadata.id.clone(), instance)),
    ///         Change::Deleted(id) => drop(instances.remove(&id)),
    ///         Change::Restarted => instances.clear(),
    ///         Change::Synced | Change::Position => {}
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn watch_instances(
        &self,
        from: WatchFrom,
    ) -> BoxStream<'static, Result<WatchEvent, Error>> {
        let position = match from {
            WatchFrom::Now => None,
            WatchFrom::Position(position) => Some(position),
        };
        let watch = Watch {
            client: self.clone(),
            position,
            has_begun: false,
            connection: None,
            ready: VecDeque::new(),
            has_failed: false,
        };
        stream::unfold(watch, |mut watch| async move {
            let event = watch.next().await?;
            watch.has_failed = event.is_err();
            Some((event, watch))
        })
        .boxed()
    }
}

type Events = BoxStream<'static, Result<Sse, sse_stream::Error>>;

struct Watch {
    client: Client,
    /// After which event to resume.
    position: Option<String>,
    /// Whether an event was returned: then a beginning without a position repeats it.
    has_begun: bool,
    connection: Option<Events>,
    ready: VecDeque<WatchEvent>,
    has_failed: bool,
}

/// Why a connection was not opened.
enum NotOpened {
    /// The position is no longer kept.
    Gone(Error),
    /// It can be tried again.
    Later(Error),
    /// It cannot.
    Never(Error),
}

impl Watch {
    async fn next(&mut self) -> Option<Result<WatchEvent, Error>> {
        if self.has_failed {
            return None;
        }
        loop {
            if let Some(event) = self.ready.pop_front() {
                self.has_begun = true;
                return Some(Ok(event));
            }
            let Some(connection) = &mut self.connection else {
                if let Err(error) = self.connect().await {
                    return Some(Err(error));
                }
                continue;
            };
            match timeout(SILENCE, connection.next()).await {
                Ok(Some(Ok(event))) => match self.read(&event) {
                    Ok(Some(event)) => self.ready.push_back(event),
                    Ok(None) => {}
                    Err(error) => return Some(Err(error)),
                },
                Ok(Some(Err(_)) | None) | Err(_) => {
                    tracing::debug!("the connection of a watch is lost");
                    self.connection = None;
                }
            }
        }
    }

    /// Opens a connection, and tries again until the deadline.
    async fn connect(&mut self) -> Result<(), Error> {
        let started = Instant::now();
        let deadline = self.client.deadline;
        let mut delays = retry::delays(DELAYS);
        // After a loss, what was begun without a position begins again.
        if self.position.is_none() && self.has_begun {
            self.restart();
        }
        loop {
            let error = match self.open().await {
                Ok(events) => {
                    self.connection = Some(events);
                    return Ok(());
                }
                Err(NotOpened::Gone(_)) if self.position.is_some() => {
                    self.position = None;
                    self.restart();
                    continue;
                }
                Err(NotOpened::Gone(error) | NotOpened::Never(error)) => return Err(error),
                Err(NotOpened::Later(error)) => error,
            };
            let next = delays.next().unwrap_or(Duration::from_secs(5));
            let delay = retry::delay(&error, next);
            if started.elapsed() + delay >= deadline {
                return Err(Error::Deadline {
                    operation: operation::WATCH_INSTANCES.id,
                    after: deadline,
                    effect: Effect::None,
                    last: Some(Box::new(error)),
                });
            }
            tokio::time::sleep(delay).await;
        }
    }

    fn restart(&mut self) {
        self.ready.push_back(WatchEvent {
            change: Change::Restarted,
            position: None,
        });
    }

    async fn open(&mut self) -> Result<Events, NotOpened> {
        let operation = &operation::WATCH_INSTANCES;
        let call = Call::new(operation, &[]).map_err(NotOpened::Never)?;
        let mut request = call.request(&self.client);
        if let Some(position) = &self.position {
            request = request.header("Last-Event-ID", position);
        }
        let lost = |error| NotOpened::Later(call::lost(operation, error));
        let response = match timeout(BEGIN_WITHIN, request.send()).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) if error.is_builder() => {
                let problem = "expected the position of an event, or `watchFrom` of a page";
                return Err(NotOpened::Never(Error::invalid("position", problem)));
            }
            Ok(Err(error)) => return Err(lost(error)),
            Err(_) => {
                return Err(NotOpened::Later(Error::Connection {
                    operation: operation.id,
                    problem: "the service did not respond in time",
                    effect: Effect::None,
                    source: "no response".into(),
                }));
            }
        };
        if !response.status().is_success() {
            let error = call::failure(operation, response).await;
            let is_gone = error.problem().is_some_and(|problem| problem.status == 410);
            return Err(if is_gone {
                NotOpened::Gone(error)
            } else if retry::can_retry(operation, &error) {
                NotOpened::Later(error)
            } else {
                NotOpened::Never(error)
            });
        }
        let parts = stream::unfold(response, |mut response| async {
            let part = response.chunk().await.transpose()?;
            Some((part, response))
        });
        Ok(SseByteStream::new(parts.boxed()).boxed())
    }

    /// What an event says, or nothing if it is none or of a later version.
    fn read(&mut self, event: &Sse) -> Result<Option<WatchEvent>, Error> {
        let data = event.data.as_deref().unwrap_or_default();
        let change = match event.event.as_deref() {
            Some("instance") => {
                let InstanceChange { instance } = parse(data)?;
                Some(Change::Instance(Box::new(instance)))
            }
            Some("deleted") => {
                let InstanceGone { id } = parse(data)?;
                Some(Change::Deleted(id))
            }
            Some("synced") => Some(Change::Synced),
            Some("position") => Some(Change::Position),
            Some(_) | None => None,
        };
        if event.id.is_some() {
            self.position.clone_from(&event.id);
        }
        let position = event.id.clone();
        Ok(change.map(|change| WatchEvent { change, position }))
    }
}

fn parse<T: DeserializeOwned>(data: &str) -> Result<T, Error> {
    serde_json::from_str(data).map_err(|error| Error::Response {
        operation: operation::WATCH_INSTANCES.id,
        status: 200,
        problem: error.to_string(),
        effect: Effect::None,
    })
}
