//! A minimal HTTP client: one request on one connection, and the whole response.

use std::{
    io::{self, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

/// Longer than any call takes; a response that has not come by then never comes.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// A complete response.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    /// The status line and the headers, in lower case.
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
) -> io::Result<Response> {
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
    stream.set_read_timeout(Some(READ_TIMEOUT))?;
    Ok(stream)
}

/// Sends bytes that may not be HTTP. The server may close the connection at any time.
pub(crate) fn send_raw(address: SocketAddr, bytes: &[u8]) -> io::Result<()> {
    let mut stream = open(address)?;
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let _ = stream.read_to_end(&mut Vec::new());
    Ok(())
}

/// Parses a response with a length. Fewer bytes than announced are an error.
fn parse(bytes: &[u8]) -> io::Result<Response> {
    let bad = |what: &str| io::Error::new(io::ErrorKind::UnexpectedEof, what.to_owned());
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    let end = end.ok_or_else(|| bad("no head"))?;
    let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
    let status: u16 = status.ok_or_else(|| bad("no status"))?;
    let announced = head.split("content-length: ").nth(1);
    let announced = announced.and_then(|rest| rest.split("\r\n").next()?.parse().ok());
    // A 204 has no body and needs no length.
    let announced = announced.or((status == 204).then_some(0));
    let body = &bytes[end + 4..];
    if announced != Some(body.len()) {
        return Err(bad("the body ends early"));
    }
    Ok(Response {
        head,
        status,
        body: String::from_utf8_lossy(body).into_owned(),
    })
}
