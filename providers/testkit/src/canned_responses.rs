//! A server whose responses a test chooses, for responses that no emulator sends.

use std::{
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    thread,
};

/// A request as it was received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Request {
    /// The HTTP method, such as `GET`.
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// Lines such as `authorization: …`, with lower-case names.
    pub headers: Vec<String>,
    /// The body.
    pub body: Vec<u8>,
}

/// A response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CannedResponse {
    /// The end of the status line, such as `200 OK`.
    pub status: &'static str,
    /// Header lines, each with its line end.
    pub headers: String,
    /// A JSON document.
    pub body: String,
}

impl CannedResponse {
    /// Creates a response with this status line.
    pub fn new(status: &'static str, body: impl Into<String>) -> Self {
        Self {
            status,
            headers: String::new(),
            body: body.into(),
        }
    }

    /// Creates a response with status 200.
    pub fn ok(body: impl Into<String>) -> Self {
        Self::new("200 OK", body)
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push_str(&format!("{name}: {value}\r\n"));
        self
    }
}

/// Starts a server that responds to every request until the test process ends. Returns its URL.
pub fn serve(
    respond_to: impl Fn(&Request) -> CannedResponse + Send + 'static,
) -> io::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let endpoint = format!("http://{}", listener.local_addr()?);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A client that hangs up gets no response.
            let _ = respond(stream, &respond_to);
        }
    });
    Ok(endpoint)
}

fn respond(
    mut stream: TcpStream,
    respond_to: impl Fn(&Request) -> CannedResponse,
) -> io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let mut parts = first.split(' ').map(ToOwned::to_owned);
    let mut request = Request {
        method: parts.next().unwrap_or_default(),
        path: parts.next().unwrap_or_default(),
        ..Request::default()
    };
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim().split_once(':') else {
            break;
        };
        let (name, value) = (name.to_lowercase(), value.trim());
        if name == "content-length" {
            length = value.parse().unwrap_or_default();
        }
        request.headers.push(format!("{name}: {value}"));
    }
    request.body = vec![0; length];
    reader.read_exact(&mut request.body)?;
    let CannedResponse {
        status,
        headers,
        body,
    } = respond_to(&request);
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
}
