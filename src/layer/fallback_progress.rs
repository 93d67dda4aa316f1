//! What one launch has learned about its alternatives.
//!
//! Owns which alternatives a launch still tries, and for how long a token that is taken may only look so.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{Request, fallback_follow::MAX_TIME};
use crate::{ErrorKind, InstanceConfig, Market, ProvisionError, Scope};

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

    /// Returns whether `error` says that the token is taken. A token that looks spent is taken by the launch
    /// that has just failed, if reads may still show it.
    pub(super) fn is_taken(&self, error: &ProvisionError) -> bool {
        let spent = error.kind() == ErrorKind::TokenSpent;
        error.kind() == ErrorKind::TokenConflict || spent && !self.stale_for().is_zero()
    }

    /// Returns whether `error` is that of the launch that failed late last, which reads may still show, and not that of `config`: what is
    /// short is another type, zone or market than it requests.
    pub(super) fn is_of_late_failure(
        &self,
        error: &ProvisionError,
        config: &InstanceConfig,
    ) -> bool {
        let short = error.kind() == ErrorKind::Capacity || error.kind() == ErrorKind::Quota;
        let scopes = error.scopes();
        let elsewhere = !scopes.is_empty() && !scopes.iter().any(|scope| concerns(scope, config));
        short && elsewhere && !self.stale_for().is_zero()
    }

    /// Waits for one poll interval, if the token may look taken because of a launch that failed late.
    /// Returns whether it has waited, so that the token is worth another attempt.
    pub(super) async fn wait_for_token(&mut self, request: &Request<'_>) -> bool {
        let left = self.stale_for();
        if left.is_zero() {
            return false;
        }
        let interval = request.capabilities().poll_interval;
        let pause = interval.max(Duration::from_millis(1)).min(left);
        self.patience = self.patience.saturating_sub(pause);
        sleep(pause).await;
        true
    }

    fn stale_for(&self) -> Duration {
        let left = |until: Instant| until.saturating_duration_since(Instant::now());
        let stale = self.stale_until.map_or(Duration::ZERO, left);
        stale.min(self.patience)
    }
}

/// Returns whether a launch of `config` may fail because of what is short in `scope`.
fn concerns(scope: &Scope, config: &InstanceConfig) -> bool {
    let Scope::Offering {
        instance_type,
        zone,
        market,
    } = scope
    else {
        return true;
    };
    let requested = &config.placement;
    let requested_market = requested.market.unwrap_or(Market::OnDemand);
    let same_type = instance_type
        .as_ref()
        .is_none_or(|one| *one == config.instance_type);
    let same_zone = zone.is_none() || requested.zone.is_none() || *zone == requested.zone;
    let same_market = market.is_none_or(|one| one == requested_market);
    same_type && same_zone && same_market
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Zone;

    #[test]
    fn shortage_of_another_type_zone_or_market_does_not_concern_a_launch() {
        let zone = |name: &str| Zone::new(name).unwrap();
        let anywhere = InstanceConfig::builder("image", "small").build().unwrap();
        let mut in_a = anywhere.clone();
        in_a.placement.zone = Some(zone("a"));
        let offering = |name: Option<&str>, place: Option<&str>, market| Scope::Offering {
            instance_type: name.map(|name| name.parse().unwrap()),
            zone: place.map(zone),
            market,
        };
        let cases = [
            (offering(None, None, None), true, true),
            (offering(Some("small"), Some("a"), None), true, true),
            (offering(Some("small"), Some("b"), None), true, false),
            (offering(Some("large"), None, None), false, false),
            (offering(None, None, Some(Market::Spot)), false, false),
            (
                offering(None, Some("a"), Some(Market::OnDemand)),
                true,
                true,
            ),
            (Scope::Region, true, true),
        ];
        for (scope, by_anywhere, by_zone) in cases {
            assert_eq!(concerns(&scope, &anywhere), by_anywhere, "{scope:?}");
            assert_eq!(concerns(&scope, &in_a), by_zone, "{scope:?}");
        }
    }
}
