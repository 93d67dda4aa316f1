//! A limit on how often a call is polled.
//!
//! With a paused clock, time passes only while every task waits. A call that is always ready to be
//! polled again and never returns would stop the clock and with it every timeout; this limit ends it.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

/// The most polls of one call: far more than a call needs that waits for something.
const MAX_POLLS: u32 = 100_000;

/// Waits for `call`, or returns `None` if it is polled too often.
pub(crate) async fn limit_polls<F: Future>(call: F) -> Option<F::Output> {
    let limited = Limited {
        call: Box::pin(call),
        polls: 0,
    };
    limited.await
}

struct Limited<F> {
    call: Pin<Box<F>>,
    polls: u32,
}

impl<F: Future> Future for Limited<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.polls += 1;
        if self.polls > MAX_POLLS {
            return Poll::Ready(None);
        }
        self.call.as_mut().poll(cx).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn call_that_is_always_ready_again_ends() {
        let busy = async {
            loop {
                tokio::task::yield_now().await;
            }
        };
        assert_eq!(limit_polls::<_>(busy).await, None::<()>);
        assert_eq!(limit_polls(async { 3 }).await, Some(3));
    }
}
