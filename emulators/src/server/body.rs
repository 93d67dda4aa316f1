//! Reads request bodies within limits, and sends response bodies that may be cut off.
//!
//! Owns the limits of size and time of a body. It does not interpret the bytes; the handlers do.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Sleep, sleep, timeout};

use super::{BodyError, MAX_BODY_BYTES, READ_TIMEOUT};

/// How many bytes of a body that is too large are read, because many clients read no response before
/// they have sent everything. If there are more, the connection is closed.
const MAX_DISCARDED_BYTES: usize = 16 * MAX_BODY_BYTES;

/// The delay between the first half of a body and the reset of its connection, so that the half is
/// sent.
const BEFORE_RESET: Duration = Duration::from_millis(20);

/// Reads a body to its end.
///
/// # Errors
///
/// [`BodyError::TooLarge`] for more than [`MAX_BODY_BYTES`]: at most 16 times as many are read and
/// discarded first. [`BodyError::Incomplete`] if the next part takes longer than 30 seconds or the
/// connection breaks.
pub(super) async fn read<B>(mut body: B) -> Result<Bytes, BodyError>
where
    B: Body<Data = Bytes> + Unpin,
{
    let (mut content, mut received) = (BytesMut::new(), 0_usize);
    loop {
        let next = timeout(READ_TIMEOUT, body.frame())
            .await
            .map_err(|_elapsed| BodyError::Incomplete)?;
        let Some(frame) = next else { break };
        let frame = frame.map_err(|_broken| BodyError::Incomplete)?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        received = received.saturating_add(data.len());
        if received > MAX_DISCARDED_BYTES {
            return Err(BodyError::TooLarge);
        }
        if received <= MAX_BODY_BYTES {
            content.extend_from_slice(&data);
        }
    }
    if received > MAX_BODY_BYTES {
        return Err(BodyError::TooLarge);
    }
    Ok(content.freeze())
}

/// The body of a response: all of it, or its first half and then an error.
#[derive(Debug)]
pub(super) struct ResponseBody {
    /// The bytes that are not sent yet.
    remaining: Bytes,
    /// The length that is announced for the rest of the body. It may be more than is sent.
    announced: u64,
    /// The delay before the connection is reset; `None` for a complete body.
    reset_after: Option<Pin<Box<Sleep>>>,
}

impl ResponseBody {
    /// Creates a body that is sent completely.
    pub(super) fn complete(body: String) -> Self {
        let remaining = Bytes::from(body);
        Self {
            announced: remaining.len() as u64,
            remaining,
            reset_after: None,
        }
    }

    /// Creates a body of which half is sent before the connection is reset.
    pub(super) fn half(body: String) -> Self {
        let mut complete = Self::complete(body);
        complete.remaining.truncate(complete.remaining.len() / 2);
        complete.reset_after = Some(Box::pin(sleep(BEFORE_RESET)));
        // More must be announced than is sent, even for an empty body.
        complete.announced = complete.announced.max(1);
        complete
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if !self.remaining.is_empty() {
            let data = std::mem::take(&mut self.remaining);
            self.announced = self.announced.saturating_sub(data.len() as u64);
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        match &mut self.reset_after {
            None => Poll::Ready(None),
            Some(delay) => delay
                .as_mut()
                .poll(cx)
                .map(|()| Some(Err(io::ErrorKind::ConnectionReset.into()))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.remaining.is_empty() && self.reset_after.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.announced)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::Full;

    fn run<T>(work: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap()
            .block_on(work)
    }

    #[test]
    fn body_is_read_up_to_the_limit() {
        let sized = |size: usize| run(read(Full::new(Bytes::from(vec![7; size]))));
        assert_eq!(sized(3), Ok(Bytes::from_static(&[7; 3])));
        assert_eq!(
            sized(MAX_BODY_BYTES).map(|body| body.len()),
            Ok(MAX_BODY_BYTES)
        );
        assert_eq!(sized(MAX_BODY_BYTES + 1), Err(BodyError::TooLarge));
        assert_eq!(sized(MAX_DISCARDED_BYTES + 1), Err(BodyError::TooLarge));
    }

    #[test]
    fn half_a_body_announces_more_than_it_sends() {
        run(async {
            let mut half = ResponseBody::half("abcdef".to_owned());
            assert_eq!(half.size_hint().exact(), Some(6));
            let frame = half.frame().await.unwrap().unwrap();
            assert_eq!(frame.into_data().unwrap(), "abc");
            assert!(half.frame().await.unwrap().is_err());
            assert_eq!(
                ResponseBody::half(String::new()).size_hint().exact(),
                Some(1)
            );
        });
    }
}
