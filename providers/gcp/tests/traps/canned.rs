//! A server that answers what a test says, for what the emulator never does.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    thread,
};

/// An answer: the status line's end, headers, and the body.
pub(crate) struct Reply {
    pub(crate) status: &'static str,
    pub(crate) headers: String,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn ok(body: impl Into<String>) -> Self {
        Self {
            status: "200 OK",
            headers: String::new(),
            body: body.into(),
        }
    }
}

/// Answers every request by its path, until the test's process ends.
pub(crate) fn serve(answer: impl Fn(&str) -> Reply + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let _ = respond(stream.unwrap(), &answer);
        }
    });
    endpoint
}

fn respond(mut stream: TcpStream, answer: impl Fn(&str) -> Reply) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first)?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim().to_lowercase();
        if let Some(number) = line.strip_prefix("content-length:") {
            length = number.trim().parse().unwrap();
        }
        if line.is_empty() {
            break;
        }
    }
    reader.read_exact(&mut vec![0; length])?;
    let path = first.split(' ').nth(1).unwrap_or_default();
    let Reply {
        status,
        headers,
        body,
    } = answer(path);
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
}
