//! An HTTP client of one connection that stays open. It understands what the service sends, and nothing else.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
};

/// A connection of one caller.
pub(super) struct Client {
    stream: BufReader<TcpStream>,
    token: String,
}

impl Client {
    pub(super) async fn connect(address: SocketAddr, token: &str) -> std::io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream: BufReader::new(stream),
            token: token.to_owned(),
        })
    }

    /// Sends a request and reads the whole response: its status and its body.
    pub(super) async fn send(
        &mut self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> std::io::Result<(u16, Vec<u8>)> {
        self.write(method, path, body).await?;
        let (status, length) = self.read_head().await?;
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).await?;
        Ok((status, body))
    }

    /// Sends a request that must succeed, and returns its body.
    pub(super) async fn expect(&mut self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let (status, bytes) = self.send(method, path, body).await.expect("a response");
        let text = String::from_utf8_lossy(&bytes).into_owned();
        assert!(
            (200..300).contains(&status),
            "{method} {path}: {status} {text}"
        );
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    /// Opens a watch from a position, and returns the status.
    pub(super) async fn open(&mut self, from: &str) -> std::io::Result<u16> {
        let path = format!("/api/v2/watch/instances?from={from}");
        self.write("GET", &path, None).await?;
        let (status, _) = self.read_head().await?;
        Ok(status)
    }

    /// Reads a watch until a line contains this text.
    pub(super) async fn until(&mut self, text: &str) -> std::io::Result<()> {
        let mut line = String::new();
        while !line.contains(text) {
            line.clear();
            if self.stream.read_line(&mut line).await? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(())
    }

    async fn write(
        &mut self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> std::io::Result<()> {
        let body = body.map(ToString::to_string).unwrap_or_default();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.token,
            body.len()
        );
        self.stream.write_all(request.as_bytes()).await
    }

    /// The status and the length of the body.
    async fn read_head(&mut self) -> std::io::Result<(u16, usize)> {
        let (mut status, mut length) = (0, 0);
        let mut line = String::new();
        loop {
            line.clear();
            if self.stream.read_line(&mut line).await? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            if line.trim().is_empty() {
                return Ok((status, length));
            }
            if let Some(rest) = line.strip_prefix("HTTP/1.1 ") {
                status = rest
                    .get(..3)
                    .and_then(|code| code.parse().ok())
                    .unwrap_or(0);
            }
            let field = line.split_once(':');
            if let Some((_, value)) =
                field.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"))
            {
                length = value.trim().parse().unwrap_or(0);
            }
        }
    }
}
