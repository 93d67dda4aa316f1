//! A client in a few lines: one request on one connection, everything it got back.

use std::{
    io::{self, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use fleetwright_emulators::ec2::Ec2Emulator;

/// Longer than anything here takes; a reply that is not there by then never comes.
const NEVER: Duration = Duration::from_secs(60);

pub(crate) const LAUNCH: &str =
    "Action=RunInstances&ImageId=ami-00000000000000001&InstanceType=m5.large&MinCount=1&MaxCount=1";

pub(crate) const AUTHORIZATION: &str = "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/ec2/aws4_request, \
    SignedHeaders=host;x-amz-date, Signature=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// A whole reply.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// The status line and the headers, in small letters.
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Reply {
    /// The texts of all elements of a name.
    pub(crate) fn all(&self, name: &str) -> Vec<String> {
        let (open, close) = (format!("<{name}>"), format!("</{name}>"));
        let texts = self.body.split(open.as_str()).skip(1);
        let texts = texts.filter_map(|rest| rest.split(close.as_str()).next());
        texts.map(str::to_owned).collect()
    }

    /// The code of an error.
    pub(crate) fn code(&self) -> String {
        self.all("Code").first().cloned().unwrap_or_default()
    }
}

/// Posts a form with the version, signed.
pub(crate) fn post(emulator: &Ec2Emulator, form: &str) -> io::Result<Reply> {
    let form = format!("Version=2016-11-15&{form}");
    request(emulator, "POST", "/", AUTHORIZATION, form.as_bytes())
}

pub(crate) fn request(
    emulator: &Ec2Emulator,
    method: &str,
    path: &str,
    authorization: &str,
    body: &[u8],
) -> io::Result<Reply> {
    ask(emulator.address(), method, path, authorization, body)
}

pub(crate) fn ask(
    address: SocketAddr,
    method: &str,
    path: &str,
    authorization: &str,
    body: &[u8],
) -> io::Result<Reply> {
    let mut stream = open(address)?;
    let signed = if authorization.is_empty() {
        String::new()
    } else {
        format!("Authorization: {authorization}\r\nX-Amz-Date: 20260101T000000Z\r\n")
    };
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{signed}Content-Length: {}\r\n\r\n",
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

/// Reads a reply with a length; fewer bytes than it promises are an error.
pub(crate) fn parse(bytes: &[u8]) -> io::Result<Reply> {
    let bad = |what: &str| io::Error::new(io::ErrorKind::UnexpectedEof, what.to_owned());
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    let end = end.ok_or_else(|| bad("no head"))?;
    let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
    let promised = head.split("content-length: ").nth(1);
    let promised = promised.and_then(|rest| rest.split("\r\n").next()?.parse().ok());
    let body = &bytes[end + 4..];
    if promised != Some(body.len()) {
        return Err(bad("the body ends early"));
    }
    Ok(Reply {
        head,
        status: status.ok_or_else(|| bad("no status"))?,
        body: String::from_utf8_lossy(body).into_owned(),
    })
}
