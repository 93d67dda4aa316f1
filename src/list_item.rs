//! The items of a streaming list: instances, and gaps for the parts that could not be read.

use crate::{InstanceInfo, ProvisionError, Scope};

/// One item of [`stream_instances`](crate::InstanceProvisioner::stream_instances).
#[derive(Clone, Debug)]
pub enum ListItem {
    /// An instance.
    Instance(Box<InstanceInfo>),
    /// A part that could not be read. It may contain instances that the stream does not show.
    Gap {
        /// The part.
        scope: Scope,
        /// Why it could not be read.
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
