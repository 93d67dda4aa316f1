//! The HTTP end of an emulator: sockets, requests, replies, and replies that go wrong on the way.
//!
//! Knows no cloud. A [`Handler`] turns a request into an [`Outgoing`]; how that is delivered (whole,
//! cut, never) is carried out here. It runs on a thread and a runtime of its own, so a test may pause
//! its clock, or have no runtime at all; dropping [`Running`] closes every connection.

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
pub(crate) const MOST_BODY: usize = 1 << 20;

/// Turns requests into replies.
pub(crate) trait Handler: Send + Sync + 'static {
    /// Answers one request.
    fn handle(self: Arc<Self>, request: Incoming) -> Handling;
}

/// A reply in the making.
pub(crate) type Handling = Pin<Box<dyn Future<Output = Outgoing> + Send>>;

/// A request.
#[derive(Debug)]
pub struct Incoming {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Result<Bytes, Unreadable>,
}

/// Why there is no body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// It is larger than [`MOST_BODY`].
    TooLarge,
    /// It did not arrive in time, or broke off.
    Broken,
}

/// A reply, and how it is delivered.
#[derive(Debug)]
pub struct Outgoing {
    pub(crate) status: u16,
    pub(crate) content_type: &'static str,
    /// Further headers.
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: String,
    pub(crate) delivery: Delivery,
}

/// What becomes of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// It arrives.
    Whole,
    /// The connection is closed without a byte.
    Nothing,
    /// The head and half of the body arrive, then the connection is reset.
    Half,
    /// Nothing arrives, and the connection stays open.
    Never,
}

/// A server that runs until it is dropped.
#[derive(Debug)]
pub(crate) struct Running {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Running {
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

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // The thread ends by itself; that it panicked was reported when it did.
            let _ = thread.join();
        }
    }
}

/// How long a client may take to send a head, or the next piece of a body.
const PATIENCE: Duration = Duration::from_secs(30);
