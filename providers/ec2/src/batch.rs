//! Native calls about many instances.
//!
//! EC2 fails a whole call because of one of its ids. Owns how such a batch is split, so that an unknown id or
//! an instance in the wrong state does not keep the other instances from being served.
//!
//! A batch without a problem is one native call. `k` problematic ids among `n` cost at most about
//! `2 k log2(n)` calls more. A failure that is not about one id, such as throttling, is the result of
//! every id and is never split: that would multiply the calls.

use std::collections::BTreeMap;

use aws_sdk_ec2::types::{Filter, Instance};
use fleetwright::InstanceId;
use fleetwright_provider_support::{Change, batch::deduplicate};

use crate::{
    client::Ec2Client,
    error::{Cause, Failure, is_unknown_id},
};

/// EC2's limit of values for one filter.
const MAX_FILTER_VALUES: usize = 200;

/// Changes `ids`, with one native call if EC2 accepts all of them. Returns a result for each id.
///
/// EC2 changes all ids of a call or none, so a refused batch can be sent again in parts. Unknown ids
/// are found with one read and left out; other refusals are found by halving.
pub(crate) async fn change(
    client: &Ec2Client,
    change: Change,
    ids: &[InstanceId],
) -> BTreeMap<InstanceId, Result<(), Failure>> {
    let mut pending = vec![deduplicate(ids)];
    let mut results = BTreeMap::new();
    while let Some(ids) = pending.pop() {
        let failure = match send(client, change, &ids).await {
            Ok(()) => {
                results.extend(ids.into_iter().map(|id| (id, Ok(()))));
                continue;
            }
            Err(failure) => failure,
        };
        if ids.len() == 1 || !is_about_one_id(&failure) {
            results.extend(ids.into_iter().map(|id| (id, Err(failure.clone()))));
        } else if is_unknown_id(&failure) {
            let existing = match find_existing(client, &ids).await {
                Ok(existing) => existing,
                Err(failure) => {
                    results.extend(ids.into_iter().map(|id| (id, Err(failure.clone()))));
                    continue;
                }
            };
            let (existing, unknown): (Vec<_>, Vec<_>) =
                ids.into_iter().partition(|id| existing.contains_key(id));
            if unknown.is_empty() {
                pending.extend(halves(existing));
            } else {
                results.extend(unknown.into_iter().map(|id| (id, Err(failure.clone()))));
                pending.extend((!existing.is_empty()).then_some(existing));
            }
        } else {
            pending.extend(halves(ids));
        }
    }
    results
}

/// Reads `ids`, with one native call if EC2 knows all of them. An unknown id has no entry.
pub(crate) async fn read(
    client: &Ec2Client,
    ids: &[InstanceId],
) -> Result<BTreeMap<InstanceId, Instance>, Failure> {
    let ids = deduplicate(ids);
    match client.describe(&ids).await {
        Ok(instances) => Ok(by_id(instances)),
        Err(failure) if is_unknown_id(&failure) && ids.len() == 1 => Ok(BTreeMap::new()),
        Err(failure) if is_unknown_id(&failure) => find_existing(client, &ids).await,
        Err(failure) => Err(failure),
    }
}

/// Sends one native call.
async fn send(client: &Ec2Client, change: Change, ids: &[InstanceId]) -> Result<(), Failure> {
    match change {
        Change::Terminate => client.terminate(ids).await,
        Change::Stop => client.stop(ids).await,
        Change::Start => client.start(ids).await,
    }
}

/// Reads those of `ids` that EC2 knows. A filter omits unknown ids, where a list of ids would fail.
async fn find_existing(
    client: &Ec2Client,
    ids: &[InstanceId],
) -> Result<BTreeMap<InstanceId, Instance>, Failure> {
    let mut existing = BTreeMap::new();
    for chunk in ids.chunks(MAX_FILTER_VALUES) {
        let values = chunk.iter().map(ToString::to_string).collect();
        let filter = Filter::builder()
            .name("instance-id")
            .set_values(Some(values))
            .build();
        existing.extend(by_id(client.list(&[filter], 1_000).await?));
    }
    Ok(existing)
}

/// Indexes instances by id. Instances without a valid id are left out.
fn by_id(instances: Vec<Instance>) -> BTreeMap<InstanceId, Instance> {
    let entries = instances.into_iter().filter_map(|instance| {
        let id = InstanceId::new(instance.instance_id()?).ok()?;
        Some((id, instance))
    });
    entries.collect()
}

/// Returns whether EC2 refused the call because of one of its ids, as far as the code says.
fn is_about_one_id(failure: &Failure) -> bool {
    let refused = matches!(failure.cause, Cause::Responded(400..=499));
    let codes = [
        "IncorrectInstanceState",
        "OperationNotPermitted",
        "UnsupportedOperation",
    ];
    refused && (is_unknown_id(failure) || codes.contains(&failure.code()))
}

/// Splits a batch in two, without empty parts.
fn halves(mut ids: Vec<InstanceId>) -> Vec<Vec<InstanceId>> {
    let second = ids.split_off(ids.len() / 2);
    [ids, second]
        .into_iter()
        .filter(|half| !half.is_empty())
        .collect()
}
