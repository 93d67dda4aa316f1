//! The filter of a list.
//!
//! Owns the meaning of a filter: [`InstanceFilter::matches`] defines it. A backend may use its cloud's
//! own filter to save work, but that must never change the result.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::{CloudInstanceState, InstanceInfo, InvalidValue, Tags};

/// Selects instances by tags and states.
///
/// An instance is selected if it has all of the tags with exactly these values, and is in any of the
/// states. Without states, all instances that are not terminated are selected.
///
/// ```
/// use fleetwright::{CloudInstanceState, InstanceFilter};
///
/// let filter = InstanceFilter::tagged("fleet-id", "blue")?.in_state(CloudInstanceState::Stopped);
/// assert!(filter.selects_state(CloudInstanceState::Stopped));
/// assert!(!filter.selects_state(CloudInstanceState::Running));
///
/// let default = InstanceFilter::new();
/// assert!(default.selects_state(CloudInstanceState::Terminating));
/// assert!(!default.selects_state(CloudInstanceState::Terminated));
/// assert!(default.in_any_state().selects_state(CloudInstanceState::Terminated));
/// # Ok::<(), fleetwright::InvalidValue>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct InstanceFilter {
    /// The tags that an instance must have, all of them with exactly this value. Default: none.
    pub tags: Tags,
    /// The states that an instance may be in. Default: empty, which is all states but terminated.
    pub states: BTreeSet<CloudInstanceState>,
}

impl InstanceFilter {
    /// Selects every instance of the account and region that is not terminated, also those that other
    /// programs launched.
    pub fn new() -> Self {
        Self::default()
    }

    /// Selects the instances with this tag.
    ///
    /// # Errors
    /// [`InvalidValue`] if the key is empty or [reserved](crate::RESERVED_PREFIX).
    pub fn tagged(key: impl Into<String>, value: impl Into<String>) -> Result<Self, InvalidValue> {
        Self::new().with_tag(key, value)
    }

    /// Requires one more tag.
    ///
    /// # Errors
    /// [`InvalidValue`] if the key is empty or [reserved](crate::RESERVED_PREFIX).
    pub fn with_tag(
        mut self,
        key: impl Into<String>,
        value: impl Into<String>,
    ) -> Result<Self, InvalidValue> {
        self.tags.insert(key, value)?;
        Ok(self)
    }

    /// Adds a state. The first one replaces the default of all states but terminated.
    #[must_use]
    pub fn in_state(mut self, state: CloudInstanceState) -> Self {
        self.states.insert(state);
        self
    }

    /// Adds all states. Terminated instances are listed for as long as the cloud remembers them, if
    /// the backend [lists them](crate::Capabilities::terminated_listed).
    #[must_use]
    pub fn in_any_state(mut self) -> Self {
        self.states.extend(CloudInstanceState::ALL);
        self
    }

    /// Returns whether the filter selects instances in `state`, regardless of their tags.
    pub fn selects_state(&self, state: CloudInstanceState) -> bool {
        if self.states.is_empty() {
            !state.is_final()
        } else {
            self.states.contains(&state)
        }
    }

    /// Returns whether the filter selects `info`.
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
    fn all_tags_must_match_exactly() {
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
    fn any_state_matches_and_terminated_must_be_selected_explicitly() {
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
