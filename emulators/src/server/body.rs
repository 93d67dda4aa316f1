//! Bodies: reading one within limits, and sending one that may break off.

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

/// So much of a body that is too large is still taken in, because clients read no reply before they
/// have sent everything. Beyond it the connection is closed.
const MAX_DISCARDED_BYTES: usize = 16 * MAX_BODY_BYTES;

/// Long enough for the first half to leave the process before the connection is reset.
const BEFORE_RESET: Duration = Duration::from_millis(20);

/// Reads a body to its end.
pub(super) async fn read<B>(mut body: B) -> Result<Bytes, BodyError>
where
    B: Body<Data = Bytes> + Unpin,
{
    let (mut kept, mut seen) = (BytesMut::new(), 0_usize);
    loop {
        let next = timeout(READ_TIMEOUT, body.frame())
            .await
            .map_err(|_elapsed| BodyError::Incomplete)?;
        let Some(frame) = next else { break };
        let frame = frame.map_err(|_broken| BodyError::Incomplete)?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        seen = seen.saturating_add(data.len());
        if seen > MAX_DISCARDED_BYTES {
            return Err(BodyError::TooLarge);
        }
        if seen <= MAX_BODY_BYTES {
            kept.extend_from_slice(&data);
        }
    }
    if seen > MAX_BODY_BYTES {
        return Err(BodyError::TooLarge);
    }
    Ok(kept.freeze())
}

/// A body to send: all of it, or its first half and then an error.
#[derive(Debug)]
pub(super) struct ResponseBody {
    left: Bytes,
    promised: u64,
    breaks: Option<Pin<Box<Sleep>>>,
}

impl ResponseBody {
    pub(super) fn whole(body: String) -> Self {
        let left = Bytes::from(body);
        Self {
            promised: left.len() as u64,
            left,
            breaks: None,
        }
    }

    pub(super) fn half(body: String) -> Self {
        let mut whole = Self::whole(body);
        whole.left.truncate(whole.left.len() / 2);
        whole.breaks = Some(Box::pin(sleep(BEFORE_RESET)));
        // A body that is cut must promise more than it has, even if it is empty.
        whole.promised = whole.promised.max(1);
        whole
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if !self.left.is_empty() {
            let data = std::mem::take(&mut self.left);
            self.promised = self.promised.saturating_sub(data.len() as u64);
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        match &mut self.breaks {
            None => Poll::Ready(None),
            Some(pause) => pause
                .as_mut()
                .poll(cx)
                .map(|()| Some(Err(io::ErrorKind::ConnectionReset.into()))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty() && self.breaks.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.promised)
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
    fn a_body_is_read_up_to_its_limit() {
        let all = |size: usize| run(read(Full::new(Bytes::from(vec![7; size]))));
        assert_eq!(all(3), Ok(Bytes::from_static(&[7; 3])));
        assert_eq!(all(MAX_BODY_BYTES).map(|b| b.len()), Ok(MAX_BODY_BYTES));
        assert_eq!(all(MAX_BODY_BYTES + 1), Err(BodyError::TooLarge));
        assert_eq!(all(MAX_DISCARDED_BYTES + 1), Err(BodyError::TooLarge));
    }

    #[test]
    fn half_a_body_promises_more_than_it_sends() {
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
