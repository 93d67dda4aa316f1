//! Accepts connections and serves requests on them.
//!
//! Owns the sockets. Each connection has its own task; an error of one never affects another.

use std::{convert::Infallible, io, pin::Pin, sync::Arc, time::Duration};

use hyper::{Request, Response, body::Incoming as HyperBody, header, server::conn::http1, service};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::oneshot,
};

use super::{
    Delivery, HEAD_TIMEOUT, Handler, HttpRequest, HttpResponse,
    body::{self, ResponseBody},
    open::{self, Activity},
};

/// The delay after a failed accept, for example without free file descriptors.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// Accepts connections until `stopped`; then every connection is dropped with the runtime.
pub(super) async fn accept(
    listener: TcpListener,
    handler: Arc<dyn Handler>,
    mut stopped: oneshot::Receiver<()>,
) {
    loop {
        let accepted = tokio::select! {
            _ = &mut stopped => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                let activity = Arc::new(Activity::default());
                let serving =
                    serve_connection_to_end(stream, Arc::clone(&handler), Arc::clone(&activity));
                let task = tokio::spawn(open::until_closed(Arc::clone(&activity), serving));
                open::add(activity, task.abort_handle());
            }
            // The descriptors may be exhausted: an unused connection makes room for a new one.
            Err(_) if open::close_unused() => tokio::task::yield_now().await,
            Err(_) => tokio::time::sleep(ACCEPT_RETRY_DELAY).await,
        }
    }
}

/// Serves one connection to its end. A connection that ends with an error is reset, not closed.
async fn serve_connection_to_end(
    stream: TcpStream,
    handler: Arc<dyn Handler>,
    activity: Arc<Activity>,
) {
    // Small responses would otherwise wait for the client's acknowledgement.
    let _ = stream.set_nodelay(true);
    let serve = service::service_fn(move |request| {
        let (handler, activity) = (Arc::clone(&handler), Arc::clone(&activity));
        async move {
            let _busy = activity.begin();
            respond(request, handler).await
        }
    });
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .serve_connection(TokioIo::new(stream), serve);
    if Pin::new(&mut connection).await.is_err() {
        // End as if the machine had crashed: unsent bytes are lost, and the peer gets a reset.
        let stream = connection.into_parts().io.into_inner();
        let _ = stream.set_zero_linger();
    }
}

/// Reads a request, calls the handler, and delivers the response as it says.
async fn respond(
    request: Request<HyperBody>,
    handler: Arc<dyn Handler>,
) -> io::Result<Response<ResponseBody>> {
    let (head, body) = request.into_parts();
    let request = HttpRequest {
        method: head.method,
        uri: head.uri,
        headers: head.headers,
        body: body::read(body).await,
    };
    let HttpResponse {
        status,
        content_type,
        headers,
        body,
        delivery,
    } = handler.handle(request).await;
    let body = match delivery {
        Delivery::Complete => ResponseBody::complete(body),
        Delivery::Reset => ResponseBody::half(body),
        Delivery::Closed => return Err(io::ErrorKind::ConnectionReset.into()),
        Delivery::Hang => {
            let never: Infallible = std::future::pending().await;
            match never {}
        }
    };
    let mut response = Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, content_type)
        .header(header::SERVER, "fleetwright-emulators");
    for (name, value) in headers {
        response = response.header(name, value);
    }
    response.body(body).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::super::ResponseFuture;
    use super::*;

    struct Greeter;

    impl Handler for Greeter {
        fn handle(self: Arc<Self>, _: HttpRequest) -> ResponseFuture {
            Box::pin(async { HttpResponse::new(200, "text/plain", "hello".to_owned()) })
        }
    }

    /// Sends a request and reads as far as the end of the greeting.
    async fn greet(client: &mut TcpStream) -> io::Result<()> {
        client
            .write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            .await?;
        let mut response = Vec::new();
        while !response.ends_with(b"hello") {
            if client.read_buf(&mut response).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(())
    }

    #[tokio::test(start_paused = true)]
    async fn connection_stays_open_longer_than_the_sdks_keep_one_unused() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            serve_connection_to_end(stream, Arc::new(Greeter), Arc::default()).await;
        });
        let mut client = TcpStream::connect(address).await.unwrap();
        greet(&mut client).await.unwrap();
        tokio::time::sleep(Duration::from_secs(91)).await;
        greet(&mut client).await.unwrap();
        tokio::time::sleep(HEAD_TIMEOUT + Duration::from_secs(1)).await;
        assert!(greet(&mut client).await.is_err(), "it is closed at last");
    }
}
