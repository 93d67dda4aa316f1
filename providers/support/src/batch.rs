//! Batches of ids and their results. Pure.

use std::collections::{BTreeMap, BTreeSet};

use fleetwright::{Call, Effect, InstanceId, ProvisionError, Result};

/// Returns each id once, sorted.
///
/// ```
/// # use fleetwright::InstanceId;
/// # use fleetwright_provider_support::batch::deduplicate;
/// let ids = ["i-2", "i-1", "i-2"].map(|id| InstanceId::new(id).unwrap());
/// assert_eq!(deduplicate(&ids), [ids[1].clone(), ids[0].clone()]);
/// ```
pub fn deduplicate(ids: &[InstanceId]) -> Vec<InstanceId> {
    if let [one] = ids {
        return vec![one.clone()];
    }
    let unique: BTreeSet<_> = ids.iter().cloned().collect();
    unique.into_iter().collect()
}

/// Returns one result for each of `ids`, in their order. An id that was given twice gets its result twice,
/// and an id without a result gets the error that `missing` returns.
///
/// ```
/// # use std::collections::BTreeMap;
/// # use fleetwright::{Call, ErrorKind, InstanceId, Operation};
/// # use fleetwright_provider_support::batch::results_in_order;
/// let [known, gone] = ["i-1", "i-2"].map(|id| InstanceId::new(id).unwrap());
/// let call = Call::new("acme", Operation::DescribeInstances);
/// let results = BTreeMap::from([(known.clone(), Ok("running"))]);
/// let ordered = results_in_order(&[gone, known], &results, |id| call.not_found(id));
/// assert_eq!(ordered[0].as_ref().unwrap_err().kind(), ErrorKind::NotFound);
/// assert_eq!(ordered[1].as_ref().unwrap(), &"running");
/// ```
pub fn results_in_order<T: Clone>(
    ids: &[InstanceId],
    results: &BTreeMap<InstanceId, Result<T>>,
    missing: impl Fn(&InstanceId) -> ProvisionError,
) -> Vec<Result<T>> {
    let result = |id| results.get(id).cloned().unwrap_or_else(|| Err(missing(id)));
    ids.iter().map(result).collect()
}

/// Returns the same error for each of `ids`.
///
/// ```
/// # use fleetwright::{Call, InstanceId, Operation};
/// # use fleetwright_provider_support::batch::repeat_error;
/// let ids = ["i-1", "i-2"].map(|id| InstanceId::new(id).unwrap());
/// let error = Call::new("acme", Operation::StopInstances).unsupported();
/// assert_eq!(repeat_error::<()>(&ids, &error).len(), 2);
/// ```
pub fn repeat_error<T>(ids: &[InstanceId], error: &ProvisionError) -> Vec<Result<T>> {
    ids.iter().map(|_| Err(error.clone())).collect()
}

/// Returns the result of a batch of one.
///
/// ```
/// # use fleetwright::{Call, ErrorKind, Operation};
/// # use fleetwright_provider_support::batch::single_result;
/// let call = Call::new("acme", Operation::StopInstance);
/// assert!(single_result(&call, vec![Ok(())]).is_ok());
/// let error = single_result::<()>(&call, vec![]).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Unexpected);
/// ```
///
/// # Errors
///
/// That of the result, or [`Unexpected`](fleetwright::ErrorKind::Unexpected) with unknown effect if there is
/// none.
pub fn single_result<T>(call: &Call, results: Vec<Result<T>>) -> Result<T> {
    let mut results = results.into_iter();
    results
        .next()
        .unwrap_or_else(|| Err(no_result(call, Effect::Unknown)))
}

/// Replaces each `Ok` of `results` by the next of `values`, in order.
///
/// ```
/// # use fleetwright::{Call, Operation};
/// # use fleetwright_provider_support::batch::replace_successes;
/// let call = Call::new("acme", Operation::StartInstances);
/// let started = vec![Ok(()), Err(call.unsupported())];
/// let read = vec![Ok("i-1 is running")];
/// let results = replace_successes(&call, started, read);
/// assert_eq!(results[0].as_ref().unwrap(), &"i-1 is running");
/// assert!(results[1].is_err());
/// ```
///
/// # Errors
///
/// The errors of both, and [`Unexpected`](fleetwright::ErrorKind::Unexpected) with effect `Done` where
/// `values` are too few.
pub fn replace_successes<T>(
    call: &Call,
    results: Vec<Result<()>>,
    values: Vec<Result<T>>,
) -> Vec<Result<T>> {
    let mut values = values.into_iter();
    let mut next = || {
        values
            .next()
            .unwrap_or_else(|| Err(no_result(call, Effect::Done)))
    };
    let replace = |result: Result<()>| result.and_then(|()| next());
    results.into_iter().map(replace).collect()
}

fn no_result(call: &Call, effect: Effect) -> ProvisionError {
    call.unexpected(effect, "the batch has no result for this instance")
}

#[cfg(test)]
mod tests {
    use super::*;
    use fleetwright::{ErrorKind, Operation};

    fn id(name: &str) -> InstanceId {
        InstanceId::new(name).unwrap()
    }

    fn call() -> Call {
        Call::new("test", Operation::StartInstances)
    }

    #[test]
    fn results_follow_the_order_of_the_ids_and_repeat() {
        let ids = ["b", "a", "b", "c"].map(id);
        let call = call();
        let results = [(id("a"), Ok(1)), (id("b"), Ok(2))].into();
        let ordered = results_in_order(&ids, &results, |id| call.not_found(id));
        let kinds = ordered
            .iter()
            .map(|result| result.as_ref().map_err(ProvisionError::kind));
        let expected = [Ok(&2), Ok(&1), Ok(&2), Err(ErrorKind::NotFound)];
        assert_eq!(kinds.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn batch_without_a_result_has_an_unknown_effect() {
        let error = single_result::<()>(&call(), Vec::new()).unwrap_err();
        assert_eq!(
            (error.kind(), error.effect()),
            (ErrorKind::Unexpected, Effect::Unknown)
        );
        assert_eq!(single_result(&call(), vec![Ok(7), Ok(8)]).unwrap(), 7);
    }

    #[test]
    fn only_successes_are_replaced() {
        let (call, failed) = (call(), id("i-1"));
        let results = vec![Ok(()), Err(call.not_found(&failed)), Ok(()), Ok(())];
        let values = vec![Ok(1), Err(call.timeout(Effect::Done))];
        let replaced = replace_successes(&call, results, values);
        let kinds: Vec<_> = replaced
            .iter()
            .map(|result| result.as_ref().map_err(ProvisionError::kind))
            .collect();
        let expected = [
            Ok(&1),
            Err(ErrorKind::NotFound),
            Err(ErrorKind::Timeout),
            Err(ErrorKind::Unexpected),
        ];
        assert_eq!(kinds, expected);
        assert_eq!(
            repeat_error::<()>(&[failed.clone(), failed], &call.unsupported()).len(),
            2
        );
    }
}
