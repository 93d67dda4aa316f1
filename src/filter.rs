//! Which instances a list is about.
//!
//! Owns the one meaning of a filter: [`InstanceFilter::matches`] is the definition, and a cloud's own
//! filter may only save work, never change the answer.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::{CloudInstanceState, InstanceInfo, InvalidValue, Tags};

/// Selects instances by tags (all of them, exactly) and states (any of them).
///
/// ```
/// use fleetwright::{CloudInstanceState, InstanceFilter};
///
/// let filter = InstanceFilter::tagged("fleet-id", "blue")?.in_state(CloudInstanceState::Stopped);
/// assert!(filter.selects_state(CloudInstanceState::Stopped));
/// assert!(!filter.selects_state(CloudInstanceState::Running));
/// # Ok::<(), fleetwright::InvalidValue>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct InstanceFilter {
    /// Every one of these tags must be there with exactly this value.
    pub tags: Tags,
    /// Any one of these states; empty means all but terminated.
    pub states: BTreeSet<CloudInstanceState>,
}

impl InstanceFilter {
    /// Every instance of the account that is not terminated, whoever launched it.
    pub fn new() -> Self {
        Self::default()
    }

    /// Those with this tag.
    pub fn tagged(key: impl Into<String>, value: impl Into<String>) -> Result<Self, InvalidValue> {
        Self::new().with_tag(key, value)
    }

    /// Those that have this tag, too.
    pub fn with_tag(
        mut self,
        key: impl Into<String>,
        value: impl Into<String>,
    ) -> Result<Self, InvalidValue> {
        self.tags.insert(key, value)?;
        Ok(self)
    }

    /// Those in this state, or in another one that was named.
    #[must_use]
    pub fn in_state(mut self, state: CloudInstanceState) -> Self {
        self.states.insert(state);
        self
    }

    /// Those in any state, terminated included, for as long as the cloud remembers them.
    #[must_use]
    pub fn in_any_state(mut self) -> Self {
        self.states.extend(CloudInstanceState::ALL);
        self
    }

    /// Whether an instance in `state` is selected, tags aside.
    pub fn selects_state(&self, state: CloudInstanceState) -> bool {
        if self.states.is_empty() {
            !state.is_final()
        } else {
            self.states.contains(&state)
        }
    }

    /// Whether `info` is selected.
    pub fn matches(&self, info: &InstanceInfo) -> bool {
        self.selects_state(info.state) && info.tags.contains_all(&self.tags)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::InstanceId;
    use CloudInstanceState::{Running, Stopped, Terminated};

    fn info(state: CloudInstanceState, tags: &[(&str, &str)]) -> InstanceInfo {
        let mut info = InstanceInfo::new(InstanceId::new("i-1").unwrap(), state);
        info.tags = tags
            .iter()
            .fold(Tags::new(), |tags, (k, v)| tags.with(*k, *v).unwrap());
        info
    }

    #[test]
    fn tags_are_anded_and_exact() {
        let filter = InstanceFilter::tagged("a", "1")
            .unwrap()
            .with_tag("b", "2")
            .unwrap();
        assert!(filter.matches(&info(Running, &[("a", "1"), ("b", "2"), ("c", "3")])));
        for tags in [
            &[("a", "1")][..],
            &[("a", "1"), ("b", "22")],
            &[("A", "1"), ("b", "2")],
            &[],
        ] {
            assert!(!filter.matches(&info(Running, tags)), "{tags:?}");
        }
        assert!(InstanceFilter::tagged("", "1").is_err());
    }

    #[test]
    fn states_are_ored_and_terminated_is_left_out_unless_asked_for() {
        for state in CloudInstanceState::ALL {
            assert_eq!(
                InstanceFilter::new().selects_state(state),
                state != Terminated
            );
            assert!(InstanceFilter::new().in_any_state().selects_state(state));
            let two = InstanceFilter::new().in_state(Terminated).in_state(Stopped);
            assert_eq!(
                two.selects_state(state),
                matches!(state, Terminated | Stopped)
            );
            assert_eq!(two.matches(&info(state, &[])), two.selects_state(state));
        }
    }
}
