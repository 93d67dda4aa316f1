//! A server that answers what a test says, for what an emulator never does.

use std::{
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    thread,
};

/// A request as it came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Request {
    /// Such as `GET`.
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// Lines such as `authorization: …`, names in small letters.
    pub headers: Vec<String>,
    /// What came after them.
    pub body: Vec<u8>,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The end of the status line, such as `200 OK`.
    pub status: &'static str,
    /// Lines, each with its end.
    pub headers: String,
    /// A document of JSON.
    pub body: String,
}

impl Reply {
    /// An answer with another status.
    pub fn new(status: &'static str, body: impl Into<String>) -> Self {
        Self {
            status,
            headers: String::new(),
            body: body.into(),
        }
    }

    /// A document, status 200.
    pub fn ok(body: impl Into<String>) -> Self {
        Self::new("200 OK", body)
    }

    /// The same with one header more.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push_str(&format!("{name}: {value}\r\n"));
        self
    }
}

/// Answers every request, until the test's process ends; gives the URL to send them to.
pub fn serve(answer: impl Fn(&Request) -> Reply + Send + 'static) -> io::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let endpoint = format!("http://{}", listener.local_addr()?);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // Whoever hangs up has no answer.
            let _ = respond(stream, &answer);
        }
    });
    Ok(endpoint)
}

fn respond(mut stream: TcpStream, answer: impl Fn(&Request) -> Reply) -> io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let mut words = first.split(' ').map(ToOwned::to_owned);
    let mut request = Request {
        method: words.next().unwrap_or_default(),
        path: words.next().unwrap_or_default(),
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
    let Reply {
        status,
        headers,
        body,
    } = answer(&request);
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
}
