//! What a streaming list shows: instances, and the gaps where it could not look.

use crate::{InstanceInfo, ProvisionError, Scope};

/// One item of [`stream_instances`](crate::InstanceProvisioner::stream_instances).
#[derive(Clone, Debug)]
pub enum ListItem {
    /// An instance.
    Instance(Box<InstanceInfo>),
    /// A part that could not be seen. What is missing from it may still exist.
    Gap {
        /// The part.
        scope: Scope,
        /// Why it could not be seen.
        error: ProvisionError,
    },
}

impl From<InstanceInfo> for ListItem {
    fn from(info: InstanceInfo) -> Self {
        Self::Instance(Box::new(info))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CloudInstanceState, InstanceId};

    #[test]
    fn instance_becomes_an_unchanged_item() {
        let id = InstanceId::new("i-1").unwrap();
        let info = InstanceInfo::new(id, CloudInstanceState::Running);
        let ListItem::Instance(item) = ListItem::from(info.clone()) else {
            panic!("an instance is no gap");
        };
        assert_eq!(*item, info);
    }
}
