//! Complete lists from streams with gaps.

use fleetwright::{Call, InstanceInfo, ListItem, Result};
use futures_util::{Stream, StreamExt as _};

/// Collects a stream of [`stream_instances`](fleetwright::InstanceProvisioner::stream_instances) into the
/// result of [`list_instances`](fleetwright::InstanceProvisioner::list_instances), for backends that
/// implement the list with the stream.
///
/// ```
/// # use fleetwright::{Call, CloudInstanceState, ErrorKind, InstanceId, InstanceInfo, ListItem, Operation, Scope};
/// # use fleetwright_provider_support::collect_complete;
/// # use futures_util::stream;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let call = Call::new("acme", Operation::ListInstances);
/// let found = InstanceInfo::new(InstanceId::new("i-1")?, CloudInstanceState::Running);
/// let gap = ListItem::Gap { scope: Scope::Region, error: call.unsupported() };
///
/// let complete = stream::iter([Ok(ListItem::Instance(Box::new(found.clone())))]);
/// assert_eq!(collect_complete(&call, complete).await?, [found]);
/// let error = collect_complete(&call, stream::iter([Ok(gap)])).await.unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Incomplete);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// The first error of the stream, or [`Incomplete`](fleetwright::ErrorKind::Incomplete) with the scope of
/// every gap and the first gap's error as source. A part of a list is never returned.
pub async fn collect_complete(
    call: &Call,
    stream: impl Stream<Item = Result<ListItem>>,
) -> Result<Vec<InstanceInfo>> {
    let mut stream = std::pin::pin!(stream);
    let (mut instances, mut gaps, mut first_error) = (Vec::new(), Vec::new(), None);
    while let Some(item) = stream.next().await {
        match item? {
            ListItem::Instance(info) => instances.push(*info),
            ListItem::Gap { scope, error } => {
                gaps.push(scope);
                first_error.get_or_insert(error);
            }
        }
    }
    match first_error {
        None => Ok(instances),
        Some(error) => Err(call.incomplete(gaps).with_source(error)),
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;
    use fleetwright::{
        CloudInstanceState::Running, Effect, ErrorKind, InstanceId, Operation, ProvisionError,
        RetryAdvice, Scope, Zone,
    };
    use futures_util::stream;

    fn id(name: &str) -> InstanceId {
        InstanceId::new(name).unwrap()
    }

    fn instance(name: &str) -> Result<ListItem> {
        Ok(InstanceInfo::new(id(name), Running).into())
    }

    fn zone(name: &str) -> Scope {
        Scope::zone(Zone::new(name).unwrap())
    }

    fn gap(name: &str) -> Result<ListItem> {
        let error = Call::new("test", Operation::StreamInstances).forbidden(&format!("not {name}"));
        let scope = zone(name);
        Ok(ListItem::Gap { scope, error })
    }

    /// Collects `items`, and returns how many of them were read.
    async fn collect(items: Vec<Result<ListItem>>) -> (Result<Vec<InstanceInfo>>, usize) {
        let mut read = 0;
        let stream = stream::iter(items).inspect(|_| read += 1);
        let list = collect_complete(&Call::new("test", Operation::ListInstances), stream).await;
        (list, read)
    }

    #[tokio::test]
    async fn list_without_gaps_keeps_every_instance_in_order() {
        let (list, _) = collect(vec![instance("i-2"), instance("i-1"), instance("i-3")]).await;
        let names: Vec<_> = list.unwrap().into_iter().map(|info| info.id).collect();
        assert_eq!(names, ["i-2", "i-1", "i-3"].map(id));
        assert_eq!(collect(vec![]).await.0.unwrap(), []);
    }

    #[tokio::test]
    async fn error_names_every_gap_and_has_the_first_as_source() {
        let items = vec![gap("a"), instance("i-1"), gap("b"), gap("a")];
        let (list, read) = collect(items).await;
        let error = list.unwrap_err();
        assert_eq!(read, 4, "every gap is named, so all items are read");
        assert_eq!(error.scopes(), [zone("a"), zone("b"), zone("a")]);
        assert_eq!(
            (error.kind(), error.effect(), error.retry()),
            (ErrorKind::Incomplete, Effect::None, RetryAdvice::SameToken)
        );
        assert_eq!(error.operation(), Operation::ListInstances);
        let source = error.source().unwrap();
        let source = source.downcast_ref::<ProvisionError>().unwrap();
        assert_eq!(source.message(), "not a");
        assert!(
            error.survivors().is_empty(),
            "a part of a list is no result"
        );
    }

    #[tokio::test]
    async fn error_ends_the_list_whatever_came_before() {
        let failed = Call::new("test", Operation::StreamInstances).unauthenticated("expired");
        let items = vec![instance("i-1"), gap("a"), Err(failed), instance("i-2")];
        let (list, read) = collect(items).await;
        let error = list.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unauthenticated);
        assert_eq!(error.operation(), Operation::StreamInstances);
        assert_eq!(read, 3);
    }
}
