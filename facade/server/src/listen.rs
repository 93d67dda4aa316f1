//! Accepting connections, and serving HTTP/1.1 on each until the service stops.

use std::{
    future::poll_fn,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpListener,
    sync::{Semaphore, watch},
    time::{Instant, Sleep, sleep, timeout},
};
use tokio_rustls::TlsAcceptor;

use crate::config::Limits;

/// How long accepted requests may take after the service was told to stop.
const FINISH_WITHIN: Duration = Duration::from_secs(35);
/// The longest headers of a request, in bytes.
const MAX_HEADERS: usize = 32 * 1024;
/// The delay before accepting again when the operating system refuses, as it does without file descriptors.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Serves until `stopping` becomes true, then finishes what was accepted.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    tls: Option<TlsAcceptor>,
    limits: &Limits,
    mut stopping: watch::Receiver<bool>,
) {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_time)
        .max_buf_size(MAX_HEADERS);
    let connections = Arc::new(Semaphore::new(limits.connections));
    let graceful = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &connections) => accepted,
            _ = stopping.wait_for(|stopping| *stopping) => break,
        };
        let (stream, permit) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "no connection can be accepted; it is tried again");
                sleep(ACCEPT_AGAIN).await;
                continue;
            }
        };
        let stream = TimedWrites::new(stream, limits.write_time);
        let (builder, service) = (builder.clone(), TowerToHyperService::new(router.clone()));
        let (watcher, tls) = (graceful.watcher(), tls.clone());
        let handshake_time = limits.header_time;
        tokio::spawn(async move {
            let served = match tls {
                None => {
                    let connection = builder.serve_connection(TokioIo::new(stream), service);
                    watcher.watch(connection).await
                }
                Some(tls) => match timeout(handshake_time, tls.accept(stream)).await {
                    Ok(Ok(stream)) => {
                        let connection = builder.serve_connection(TokioIo::new(stream), service);
                        watcher.watch(connection).await
                    }
                    // What is no TLS, or too slow.
                    Ok(Err(_)) | Err(_) => {
                        tracing::debug!("a connection ended before its handshake");
                        Ok(())
                    }
                },
            };
            if let Err(error) = served {
                tracing::debug!(%error, "a connection ended early");
            }
            drop(permit);
        });
    }
    drop(listener);
    if timeout(FINISH_WITHIN, graceful.shutdown()).await.is_err() {
        tracing::warn!("requests that were accepted did not finish in time and are cut off");
    }
}

/// Accepts a connection when there may be one more.
async fn accept(
    listener: &TcpListener,
    connections: &Arc<Semaphore>,
) -> io::Result<(tokio::net::TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let permit = Arc::clone(connections).acquire_owned().await;
    let permit = permit.map_err(io::Error::other)?;
    let (stream, _) = poll_fn(|context| listener.poll_accept(context)).await?;
    stream.set_nodelay(true)?;
    Ok((stream, permit))
}

/// A stream whose writes fail if the reader at the other end takes no byte for a time.
struct TimedWrites<S> {
    stream: S,
    limit: Duration,
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<S> TimedWrites<S> {
    fn new(stream: S, limit: Duration) -> Self {
        Self {
            stream,
            limit,
            waiting: None,
        }
    }

    fn check<T>(
        &mut self,
        context: &mut Context<'_>,
        polled: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.waiting = None;
            return polled;
        }
        let limit = self.limit;
        let waiting = self
            .waiting
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(Instant::now() + limit)));
        match waiting.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the reader takes no bytes",
            ))),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimedWrites<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimedWrites<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.check(context, polled)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(context);
        self.check(context, polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_shutdown(context);
        self.check(context, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.check(context, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
