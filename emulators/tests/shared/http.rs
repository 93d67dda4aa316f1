//! A client in a few lines: one request on one connection, everything it got back.

use std::{
    io::{self, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

/// Longer than anything here takes; a reply that is not there by then never comes.
const NEVER: Duration = Duration::from_secs(60);

/// A whole reply.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// The status line and the headers, in small letters.
    pub(crate) head: String,
    pub(crate) body: String,
}

/// Sends a request with further headers, each with its line end, and reads to the end.
pub(crate) fn exchange(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &str,
    body: &[u8],
) -> io::Result<Reply> {
    let mut stream = open(address)?;
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    parse(&bytes)
}

pub(crate) fn open(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(NEVER))?;
    Ok(stream)
}

/// Sends bytes that may be no HTTP at all. Whoever gets them may hang up at any time.
pub(crate) fn throw(address: SocketAddr, bytes: &[u8]) -> io::Result<()> {
    let mut stream = open(address)?;
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let _ = stream.read_to_end(&mut Vec::new());
    Ok(())
}

/// Reads a reply with a length; fewer bytes than it promises are an error.
fn parse(bytes: &[u8]) -> io::Result<Reply> {
    let bad = |what: &str| io::Error::new(io::ErrorKind::UnexpectedEof, what.to_owned());
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    let end = end.ok_or_else(|| bad("no head"))?;
    let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
    let status: u16 = status.ok_or_else(|| bad("no status"))?;
    let promised = head.split("content-length: ").nth(1);
    let promised = promised.and_then(|rest| rest.split("\r\n").next()?.parse().ok());
    // A reply that says it has none needs no length.
    let promised = promised.or((status == 204).then_some(0));
    let body = &bytes[end + 4..];
    if promised != Some(body.len()) {
        return Err(bad("the body ends early"));
    }
    Ok(Reply {
        head,
        status,
        body: String::from_utf8_lossy(body).into_owned(),
    })
}
