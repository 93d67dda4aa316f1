//! The HTTP server of an emulator: sockets, requests, responses, and responses that are not
//! delivered.
//!
//! Knows no cloud. A [`Handler`] turns a request into an [`HttpResponse`], and the server delivers
//! it as the response says (complete, cut off, or never). The server has its own thread and
//! runtime, so a test may pause its clock or have no runtime at all; dropping [`RunningServer`]
//! closes every connection.

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

/// The maximum size of a request body in bytes; the rest of a larger one is discarded.
pub(crate) const MAX_BODY_BYTES: usize = 1 << 20;

/// Turns requests into responses.
pub(crate) trait Handler: Send + Sync + 'static {
    /// Handles one request.
    fn handle(self: Arc<Self>, request: HttpRequest) -> ResponseFuture;
}

/// The future of a response.
pub(crate) type ResponseFuture = Pin<Box<dyn Future<Output = HttpResponse> + Send>>;

/// An HTTP request with its body.
#[derive(Debug)]
pub struct HttpRequest {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Result<Bytes, BodyError>,
}

/// Why a request has no body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyError {
    /// The body is larger than [`MAX_BODY_BYTES`].
    TooLarge,
    /// The body did not arrive in time, or ended early.
    Incomplete,
}

/// An HTTP response, and how it is delivered.
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

/// How a response is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// The whole response is sent.
    Complete,
    /// The connection is closed without a byte.
    Closed,
    /// The head and half of the body are sent, then the connection is reset.
    Reset,
    /// Nothing is sent, and the connection stays open.
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
    /// Listens on `address` and serves with `handler`.
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

    /// Returns the address that the server listens on.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // The thread ends by itself; a panic was already reported by the panic hook.
            let _ = thread.join();
        }
    }
}

/// How long a client may take to send the head, or the next part of the body.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
