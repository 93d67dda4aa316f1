//! Calls about many instances, where EC2 fails all of them for one.
//!
//! Owns how a batch is taken apart: an id that EC2 does not know, or one whose state forbids the call,
//! must not keep the others from being served.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_ec2::types::{Filter, Instance};
use fleetwright::InstanceId;

use crate::{
    client::Ec2Client,
    error::{Cause, Failure, is_unknown_id},
};

/// The most values of one filter.
const MAX_FILTER_VALUES: usize = 200;

/// A call that changes instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Terminate,
    Stop,
    Start,
}

impl Change {
    async fn send(self, client: &Ec2Client, ids: &[InstanceId]) -> Result<(), Failure> {
        match self {
            Self::Terminate => client.terminate(ids).await,
            Self::Stop => client.stop(ids).await,
            Self::Start => client.start(ids).await,
        }
    }
}

/// What became of each id.
pub(crate) type Each<T> = BTreeMap<InstanceId, Result<T, Failure>>;

/// Makes `change` of all `ids`, with one call if nothing is wrong with any.
pub(crate) async fn change(client: &Ec2Client, change: Change, ids: &[InstanceId]) -> Each<()> {
    let unique: BTreeSet<_> = ids.iter().cloned().collect();
    let mut open = vec![unique.into_iter().collect::<Vec<_>>()];
    let mut results = BTreeMap::new();
    while let Some(ids) = open.pop() {
        let failure = match change.send(client, &ids).await {
            Ok(()) => {
                results.extend(ids.into_iter().map(|id| (id, Ok(()))));
                continue;
            }
            Err(failure) => failure,
        };
        if ids.len() == 1 || !is_about_an_item(&failure) {
            results.extend(ids.into_iter().map(|id| (id, Err(failure.clone()))));
        } else if is_unknown_id(&failure) {
            let known = match known(client, &ids).await {
                Ok(known) => known,
                Err(failure) => {
                    results.extend(ids.into_iter().map(|id| (id, Err(failure.clone()))));
                    continue;
                }
            };
            let (good, bad): (Vec<_>, Vec<_>) =
                ids.into_iter().partition(|id| known.contains_key(id));
            if bad.is_empty() {
                open.extend(halves(good));
            } else {
                results.extend(bad.into_iter().map(|id| (id, Err(failure.clone()))));
                open.extend((!good.is_empty()).then_some(good));
            }
        } else {
            open.extend(halves(ids));
        }
    }
    results
}

/// Reads `ids`, each once, with one call if EC2 knows all of them. Who is missing has no entry.
pub(crate) async fn read(
    client: &Ec2Client,
    ids: &[InstanceId],
) -> Result<BTreeMap<InstanceId, Instance>, Failure> {
    let unique: BTreeSet<_> = ids.iter().cloned().collect();
    let ids: Vec<_> = unique.into_iter().collect();
    match client.describe(&ids).await {
        Ok(instances) => Ok(by_id(instances)),
        Err(failure) if is_unknown_id(&failure) && ids.len() == 1 => Ok(BTreeMap::new()),
        Err(failure) if is_unknown_id(&failure) => known(client, &ids).await,
        Err(failure) => Err(failure),
    }
}

/// Those of `ids` that EC2 knows. A filter leaves out what is missing, where ids would fail.
async fn known(
    client: &Ec2Client,
    ids: &[InstanceId],
) -> Result<BTreeMap<InstanceId, Instance>, Failure> {
    let mut known = BTreeMap::new();
    for some in ids.chunks(MAX_FILTER_VALUES) {
        let values = some.iter().map(ToString::to_string).collect();
        let filter = Filter::builder()
            .name("instance-id")
            .set_values(Some(values))
            .build();
        known.extend(by_id(client.all(&[filter], 1_000).await?));
    }
    Ok(known)
}

fn by_id(instances: Vec<Instance>) -> BTreeMap<InstanceId, Instance> {
    let named = instances.into_iter().filter_map(|instance| {
        let id = InstanceId::new(instance.instance_id()?).ok()?;
        Some((id, instance))
    });
    named.collect()
}

/// Whether the service refused the call because of one of its ids, as far as the code tells.
fn is_about_an_item(failure: &Failure) -> bool {
    let refused = matches!(failure.cause, Cause::Responded(400..=499));
    refused
        && (is_unknown_id(failure)
            || [
                "IncorrectInstanceState",
                "OperationNotPermitted",
                "UnsupportedOperation",
            ]
            .iter()
            .any(|code| failure.code() == *code))
}

fn halves(mut ids: Vec<InstanceId>) -> Vec<Vec<InstanceId>> {
    let rest = ids.split_off(ids.len() / 2);
    [ids, rest]
        .into_iter()
        .filter(|half| !half.is_empty())
        .collect()
}
