//! Servers of the tests: one that answers as it is told, and a proxy that loses responses and cuts connections.

#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "each test program uses a part"
)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests may panic"
)]

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use fleetwright_client::{Client, Token};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
};

/// A token that no output may have.
pub const SECRET: &str = "fw_this-is-the-secret";

/// A request as it arrived.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    pub target: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// A server that records requests and answers as a function says.
pub struct Scripted {
    pub address: SocketAddr,
    pub requests: Arc<Mutex<Vec<Request>>>,
}

impl Scripted {
    /// `answer` gets the number of the request and the request, and returns everything that is sent before the connection is closed.
    pub async fn start(answer: impl Fn(usize, &Request) -> String + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (seen, answer) = (Arc::clone(&requests), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
                tokio::spawn(async move {
                    let Some(request) = read(&mut stream).await else {
                        return;
                    };
                    let number = {
                        let mut seen = seen.lock().unwrap();
                        seen.push(request.clone());
                        seen.len()
                    };
                    let _ = stream.write_all(answer(number, &request).as_bytes()).await;
                    let _ = stream.shutdown().await;
                });
            }
        });
        Self { address, requests }
    }

    pub fn client(&self) -> Client {
        client(self.address)
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

/// A client with the secret token.
pub fn client(address: SocketAddr) -> Client {
    let token = Token::new(SECRET).unwrap();
    Client::builder(format!("http://{address}"))
        .token(token)
        .build()
        .unwrap()
}

/// A response of JSON.
pub fn json(status: u16, headers: &str, body: &serde_json::Value) -> String {
    let body = body.to_string();
    format!(
        "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n{body}",
        body.len()
    )
}

/// A problem.
pub fn problem(status: u16, code: &str, retry_after: Option<u64>) -> String {
    let mut body = serde_json::json!({
        "type": "/docs", "title": "a title", "status": status, "code": code, "detail": "what is wrong", "traceId": "trace-1",
    });
    if let Some(seconds) = retry_after {
        body["retryAfter"] = seconds.into();
    }
    json(status, "", &body)
}

/// The head of a response of events, which ends when the connection is closed.
pub const EVENTS: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";

async fn read(stream: &mut TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    loop {
        let mut part = [0; 4096];
        let count = stream.read(&mut part).await.ok()?;
        if count == 0 {
            return None;
        }
        bytes.extend_from_slice(&part[..count]);
        if let Some(request) = parse(&String::from_utf8_lossy(&bytes)) {
            return Some(request);
        }
    }
}

fn parse(text: &str) -> Option<Request> {
    let (head, body) = text.split_once("\r\n\r\n")?;
    let mut lines = head.lines();
    let mut first = lines.next()?.split(' ');
    let headers: Vec<_> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length: usize = length.map_or(0, |(_, value)| value.parse().unwrap());
    (body.len() >= length).then(|| Request {
        method: first.next().unwrap().to_owned(),
        target: first.next().unwrap().to_owned(),
        headers,
        body: body.to_owned(),
    })
}

/// A proxy in front of a service, which loses responses and cuts connections.
pub struct Proxy {
    pub address: SocketAddr,
    /// How many more responses are lost.
    lose: Arc<AtomicUsize>,
    cuts: watch::Sender<usize>,
    sent: Arc<Mutex<String>>,
}

impl Proxy {
    pub async fn start(service: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let lose = Arc::new(AtomicUsize::new(0));
        let sent = Arc::new(Mutex::new(String::new()));
        let (cuts, cut) = watch::channel(0);
        let (losing, recorded) = (Arc::clone(&lose), Arc::clone(&sent));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (losing, recorded) = (Arc::clone(&losing), Arc::clone(&recorded));
                let mut cut = cut.clone();
                cut.mark_unchanged();
                tokio::spawn(async move {
                    tokio::select! {
                        () = pass(stream, service, &losing, &recorded) => {}
                        _ = cut.changed() => {}
                    }
                });
            }
        });
        Self {
            address,
            lose,
            cuts,
            sent,
        }
    }

    /// The next responses are lost: the service has carried the requests out, and the connections close.
    pub fn lose(&self, count: usize) {
        self.lose.store(count, Ordering::SeqCst);
    }

    /// Closes all connections.
    pub fn cut(&self) {
        self.cuts.send_modify(|count| *count += 1);
    }

    /// The values of a header of all requests, in their order.
    pub fn values(&self, name: &str) -> Vec<String> {
        let sent = self.sent.lock().unwrap();
        let lines = sent.lines().filter_map(|line| line.split_once(": "));
        let values = lines.filter(|(known, _)| known.eq_ignore_ascii_case(name));
        values.map(|(_, value)| value.trim().to_owned()).collect()
    }

    /// How often this text was sent, such as a method with the beginning of an address.
    pub fn count(&self, text: &str) -> usize {
        self.sent.lock().unwrap().matches(text).count()
    }
}

async fn pass(client: TcpStream, service: SocketAddr, lose: &AtomicUsize, sent: &Mutex<String>) {
    let Ok(service) = TcpStream::connect(service).await else {
        return;
    };
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_service, mut to_service) = service.into_split();
    let forward = async {
        let mut part = vec![0; 65536];
        while let Ok(count @ 1..) = from_client.read(&mut part).await {
            sent.lock()
                .unwrap()
                .push_str(&String::from_utf8_lossy(&part[..count]));
            if to_service.write_all(&part[..count]).await.is_err() {
                return;
            }
        }
        let _ = to_service.shutdown().await;
    };
    let back = async {
        let mut part = vec![0; 65536];
        while let Ok(count @ 1..) = from_service.read(&mut part).await {
            let taken = lose.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
                left.checked_sub(1)
            });
            if taken.is_ok() || to_client.write_all(&part[..count]).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = forward => {}
        () = back => {}
    }
}
