//! The HTTP end of an emulator: sockets, requests, replies, and replies that go wrong on the way.
//!
//! Knows no cloud. A [`Handler`] turns a request into an [`HttpResponse`]; how that is apply_delivery_fault (whole,
//! cut, never) is carried out here. It runs on a thread and a runtime of its own, so a test may pause
//! its clock, or have no runtime at all; dropping [`RunningServer`] closes every connection.

mod body;
mod connection;

use std::{
    future::Future,
    io,
    net::{SocketAddr, TcpListener},
    pin::Pin,
    sync::Arc,
    thread,
    time::Duration,
};

use bytes::Bytes;
use hyper::{HeaderMap, Method, Uri};
use tokio::{runtime, sync::oneshot};

/// The largest body that is read; the rest of a larger one is thrown away unread.
pub(crate) const MAX_BODY_BYTES: usize = 1 << 20;

/// Turns requests into replies.
pub(crate) trait Handler: Send + Sync + 'static {
    /// Answers one request.
    fn handle(self: Arc<Self>, request: HttpRequest) -> ResponseFuture;
}

/// A reply in the making.
pub(crate) type ResponseFuture = Pin<Box<dyn Future<Output = HttpResponse> + Send>>;

/// A request.
#[derive(Debug)]
pub struct HttpRequest {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Result<Bytes, BodyError>,
}

/// Why there is no body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyError {
    /// It is larger than [`MAX_BODY_BYTES`].
    TooLarge,
    /// It did not arrive in time, or broke off.
    Incomplete,
}

/// A reply, and how it is apply_delivery_fault.
#[derive(Debug)]
pub struct HttpResponse {
    pub(crate) status: u16,
    pub(crate) content_type: &'static str,
    /// Further headers.
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: String,
    pub(crate) delivery: Delivery,
}

impl HttpResponse {
    /// A response that is delivered completely, without further headers.
    pub(crate) const fn new(status: u16, content_type: &'static str, body: String) -> Self {
        Self {
            status,
            content_type,
            headers: Vec::new(),
            body,
            delivery: Delivery::Complete,
        }
    }

    /// Adds a header.
    pub(crate) fn with_header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Replaces how the response is delivered.
    pub(crate) fn with_delivery(mut self, delivery: Delivery) -> Self {
        self.delivery = delivery;
        self
    }
}

/// What becomes of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// It arrives.
    Complete,
    /// The connection is closed without a byte.
    Closed,
    /// The head and half of the body arrive, then the connection is reset.
    Reset,
    /// Nothing arrives, and the connection stays open.
    Hang,
}

/// A server that runs until it is dropped.
#[derive(Debug)]
pub(crate) struct RunningServer {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl RunningServer {
    /// Listens at `address` and answers with `handler`.
    pub(crate) fn start(address: SocketAddr, handler: Arc<dyn Handler>) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()?;
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new()
            .name("fleetwright-emulator".to_owned())
            .spawn(move || runtime.block_on(connection::accept(listener, handler, stopped)))?;
        Ok(Self {
            address,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Where it listens.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // The thread ends by itself; that it panicked was reported when it did.
            let _ = thread.join();
        }
    }
}

/// How long a client may take to send a head, or the next piece of a body.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
