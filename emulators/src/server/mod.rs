//! The HTTP server of an emulator: sockets, requests, responses, and responses that are not
//! delivered.
//!
//! Knows no cloud. A [`Handler`] turns a request into an [`HttpResponse`], and the server delivers
//! it as the response says (complete, cut off, or never). The server has its own thread and
//! runtime, so a test may pause its clock or have no runtime at all; dropping [`RunningServer`]
//! closes every connection.

mod body;
mod connection;
mod open;

use std::{future::Future, io, net::SocketAddr, pin::Pin, sync::Arc, thread, time::Duration};

use bytes::Bytes;
use hyper::{HeaderMap, Method, Uri};
use tokio::{net::TcpSocket, runtime, sync::oneshot};

/// The maximum size of a request body in bytes, 1 MiB; a larger one is read, dropped and reported
/// as [`BodyError::TooLarge`].
pub(crate) const MAX_BODY_BYTES: usize = 1 << 20;

/// How many connections wait to be accepted; the system may allow fewer. The standard library's 128 are too few for
/// a thousand calls at once: what exceeds the queue is tried again only after a second, and then after twice as long each time.
const WAITING_CONNECTIONS: u32 = 16_384;

/// Turns requests into responses. One handler serves all connections at the same time.
pub(crate) trait Handler: Send + Sync + 'static {
    /// Handles one request. Every request gets a response: errors are responses too.
    fn handle(self: Arc<Self>, request: HttpRequest) -> ResponseFuture;
}

/// The future of a response.
pub(crate) type ResponseFuture = Pin<Box<dyn Future<Output = HttpResponse> + Send>>;

/// An HTTP request with its body.
#[derive(Debug)]
pub struct HttpRequest {
    /// The method.
    pub(crate) method: Method,
    /// The path and the query. The host is in the headers.
    pub(crate) uri: Uri,
    /// The headers.
    pub(crate) headers: HeaderMap,
    /// The whole body, or why there is none.
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
    /// The HTTP status.
    pub(crate) status: u16,
    /// The `Content-Type` header.
    pub(crate) content_type: &'static str,
    /// Further headers.
    pub(crate) headers: Vec<(&'static str, String)>,
    /// The body.
    pub(crate) body: String,
    /// How the response is delivered.
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
    /// The address that it listens on, with the port that the system chose.
    address: SocketAddr,
    /// Dropped to stop the accept loop.
    stop: Option<oneshot::Sender<()>>,
    /// The thread of the server, joined on drop.
    thread: Option<thread::JoinHandle<()>>,
}

impl RunningServer {
    /// Listens on `address` and serves with `handler`, on a thread of its own. Port 0 means any
    /// free port.
    ///
    /// # Errors
    ///
    /// The error of the system if the address is in use or not allowed, or the thread cannot start.
    pub(crate) fn start(address: SocketAddr, handler: Arc<dyn Handler>) -> io::Result<Self> {
        let runtime = runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()?;
        let listener = {
            let _entered = runtime.enter();
            let socket = match address {
                SocketAddr::V4(_) => TcpSocket::new_v4()?,
                SocketAddr::V6(_) => TcpSocket::new_v6()?,
            };
            // As the standard library does: a port of connections that were just closed can be used again.
            #[cfg(unix)]
            socket.set_reuseaddr(true)?;
            socket.bind(address)?;
            socket.listen(WAITING_CONNECTIONS)?
        };
        let address = listener.local_addr()?;
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

/// The maximum time a client may take to send the next part of the body.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// The maximum time from the start of a connection, or from a response, to the end of the next request's head.
///
/// It is longer than the 90 seconds for which the HTTP clients of the SDKs keep an unused connection (`pool_idle_timeout` of
/// aws-smithy-http-client and of reqwest). A connection that the server closes first may break under a request that is being sent,
/// which the clients must report as an unknown effect.
const HEAD_TIMEOUT: Duration = Duration::from_secs(120);

// Linux has queued 4096 connections by default since 5.4; other systems have lower limits.
#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::{io::Write as _, net::TcpStream, sync::mpsc};

    use super::*;

    /// Keeps the server's thread busy until the test ends it.
    struct Busy {
        begun: mpsc::SyncSender<()>,
        end: std::sync::Mutex<mpsc::Receiver<()>>,
    }

    impl Handler for Busy {
        fn handle(self: Arc<Self>, _: HttpRequest) -> ResponseFuture {
            Box::pin(async move {
                self.begun.send(()).unwrap();
                let _ = self.end.lock().unwrap().recv();
                HttpResponse::new(200, "text/plain", String::new())
            })
        }
    }

    #[test]
    fn busy_server_queues_hundreds_of_connections() {
        let (begun, has_begun) = mpsc::sync_channel(1);
        let (ended, end) = mpsc::channel::<()>();
        let end = std::sync::Mutex::new(end);
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let server = RunningServer::start(any, Arc::new(Busy { begun, end })).unwrap();
        let mut first = TcpStream::connect(server.address()).unwrap();
        first
            .write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
            .unwrap();
        has_begun.recv().unwrap();
        // The queue is not emptied before the end, so a connection that finds it full never succeeds.
        let limit = Duration::from_secs(10);
        let waiting = (0..500).map(|_| TcpStream::connect_timeout(&server.address(), limit));
        let waiting: io::Result<Vec<_>> = waiting.collect();
        drop(ended);
        waiting.unwrap();
    }
}
