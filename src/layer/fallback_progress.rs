//! What one launch has learned about its alternatives.
//!
//! Owns which alternatives a launch still tries, and for how long a token that is taken may only look so.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{Request, fallback_follow::MAX_TIME};
use crate::{ErrorKind, ProvisionError};

/// One alternative of a launch.
#[derive(Clone, Copy, Debug)]
enum Alternative {
    /// It was not sent yet, or its token was taken.
    Open,
    /// It was not sent, because it had no capacity or quota recently.
    Skipped { until: Instant },
    /// It has failed.
    GivenUp,
}

/// The alternatives of one launch.
#[derive(Debug)]
pub(super) struct Progress {
    alternatives: Vec<Alternative>,
    /// The error of the alternative that was given up last.
    error: Option<ProvisionError>,
    /// Until when reads may show the launch that failed late last, so that its token looks taken.
    stale_until: Option<Instant>,
    /// When the last attempt was sent. The age of what it reads counts from here: its response may come after
    /// `stale_until`, because the backend waits itself.
    sent: Instant,
    /// For how long this launch may still wait for its token, in all.
    patience: Duration,
}

impl Progress {
    /// Creates the alternatives of a launch, all of them open. The launch waits for its token for one consistency
    /// window in all, however many alternatives fail late: a backend that breaks its declared window must not hold
    /// it for a window for each of them.
    pub(super) fn new(request: &Request<'_>, alternatives: usize) -> Self {
        let window = request.capabilities().consistency_window;
        Self {
            alternatives: vec![Alternative::Open; alternatives],
            error: None,
            stale_until: None,
            sent: Instant::now(),
            patience: window.min(MAX_TIME),
        }
    }

    pub(super) fn is_open(&self, index: usize) -> bool {
        matches!(self.alternatives[index], Alternative::Open)
    }

    /// Returns whether an alternative has failed in this launch. A stale read may still show what it launched.
    pub(super) fn is_given_up(&self, index: usize) -> bool {
        matches!(self.alternatives[index], Alternative::GivenUp)
    }

    pub(super) fn skip(&mut self, index: usize, until: Instant) {
        self.alternatives[index] = Alternative::Skipped { until };
    }

    /// Gives up an alternative that was refused. Where launches can fail late, the cloud may have accepted it
    /// first.
    pub(super) fn give_up(&mut self, request: &Request<'_>, index: usize, error: ProvisionError) {
        if request.capabilities().late_failures.is_zero() {
            self.alternatives[index] = Alternative::GivenUp;
            self.error = Some(error);
        } else {
            self.give_up_late(request, index, error);
        }
    }

    /// Gives up an alternative whose launch was accepted and has failed. Its token is free, and reads show
    /// that after the consistency window.
    pub(super) fn give_up_late(
        &mut self,
        request: &Request<'_>,
        index: usize,
        error: ProvisionError,
    ) {
        self.alternatives[index] = Alternative::GivenUp;
        self.error = Some(error);
        let window = request.capabilities().consistency_window;
        self.stale_until = Some(Instant::now() + window.min(MAX_TIME));
    }

    /// Returns when the first skipped alternative may be tried again, if any was skipped.
    pub(super) fn skipped_until(&self) -> Option<Instant> {
        let until = |alternative: &Alternative| match alternative {
            Alternative::Skipped { until } => Some(*until),
            Alternative::Open | Alternative::GivenUp => None,
        };
        self.alternatives.iter().filter_map(until).min()
    }

    /// Returns the error of the alternative that was given up last.
    pub(super) fn into_error(self) -> Option<ProvisionError> {
        self.error
    }

    /// Notes that an attempt is sent now.
    pub(super) fn note_attempt(&mut self) {
        self.sent = Instant::now();
    }

    /// Returns whether `error` says that the token is taken. A token that looks spent is taken by the launch
    /// that has just failed, if reads may still show it.
    pub(super) fn is_taken(&self, error: &ProvisionError) -> bool {
        let spent = error.kind() == ErrorKind::TokenSpent;
        error.kind() == ErrorKind::TokenConflict || spent && self.stale_until().is_some()
    }

    /// Waits for one poll interval, if the token may look taken because of a launch that failed late.
    /// Returns whether it has waited, so that the token is worth another attempt.
    pub(super) async fn wait_for_token(&mut self, request: &Request<'_>) -> bool {
        let Some(until) = self.stale_until() else {
            return false;
        };
        let left = until.saturating_duration_since(Instant::now());
        let interval = request.capabilities().poll_interval;
        let interval = interval.max(Duration::from_millis(1));
        let pause = interval.min(left).min(self.patience);
        self.patience = self.patience.saturating_sub(pause);
        sleep(pause).await;
        true
    }

    /// Returns until when reads may show the launch that failed late last, if that is after the last attempt was
    /// sent and this launch still waits for it.
    fn stale_until(&self) -> Option<Instant> {
        let until = self.stale_until.filter(|_| !self.patience.is_zero())?;
        (self.sent < until).then_some(until)
    }
}
