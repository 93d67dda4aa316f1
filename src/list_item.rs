//! What a streaming list shows: instances, and the gaps where it could not look.

use futures_util::{Stream, StreamExt as _};

use crate::{Call, InstanceInfo, ProvisionError, Result, Scope};

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

/// Makes of a stream what [`list_instances`](crate::InstanceProvisioner::list_instances) promises:
/// all of it, or an error of kind incomplete that names every gap.
///
/// For backends whose list stands on their stream.
pub async fn collect_complete(
    call: &Call,
    stream: impl Stream<Item = Result<ListItem>>,
) -> Result<Vec<InstanceInfo>> {
    let mut stream = std::pin::pin!(stream);
    let (mut instances, mut gaps, mut cause) = (Vec::new(), Vec::new(), None);
    while let Some(seen) = stream.next().await {
        match seen? {
            ListItem::Instance(info) => instances.push(*info),
            ListItem::Gap { scope, error } => {
                gaps.push(scope);
                cause.get_or_insert(error);
            }
        }
    }
    match cause {
        None => Ok(instances),
        Some(error) => Err(call.incomplete(gaps).with_source(error)),
    }
}
