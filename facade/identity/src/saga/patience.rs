//! How long sagas wait, and how often they try.

use std::time::Duration;

/// How long sagas wait, and how often they try.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Patience {
    /// How long a call of the remote ledger or of the local step may take.
    pub call: Duration,
    /// How long a saga that makes progress is left to whoever drives it, before a sweep takes it up.
    pub lease: Duration,
    /// The pause after the first failure. It doubles with each.
    pub first_pause: Duration,
    /// The longest pause.
    pub longest_pause: Duration,
    /// After how many failures a saga is undone that can still be.
    pub give_up_after: u32,
    /// After how many failures a saga that can only go on is shown as stuck.
    pub stuck_after: u32,
    /// How often [`Sagas::run`](super::Sagas::run) looks for sagas that are due.
    pub sweep_every: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            call: Duration::from_secs(10),
            lease: Duration::from_secs(30),
            first_pause: Duration::from_secs(1),
            longest_pause: Duration::from_secs(300),
            give_up_after: 5,
            stuck_after: 5,
            sweep_every: Duration::from_secs(5),
        }
    }
}

impl Patience {
    /// The pause after so many failures.
    pub(super) fn pause(&self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        let pause = self.first_pause.saturating_mul(1 << doublings);
        pause.min(self.longest_pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let patience = Patience::default();
        let pauses = [1, 2, 3, 4, 9, 10, 1000, u32::MAX].map(|n| patience.pause(n).as_secs());
        assert_eq!(pauses, [1, 2, 4, 8, 256, 300, 300, 300]);
    }
}
