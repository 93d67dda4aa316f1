//! Batches: one bulk insert for many instances.
//!
//! Owns what became of each name of a bulk insert. Compute Engine returns one operation for all of them, which has
//! neither numbers nor the error of one instance ("About bulk creation of VMs"). A launch needs both, so:
//!
//! 1. Each name is given (`perInstanceProperties`), so that a replay requests the same names and Compute Engine
//!    creates none of them twice. The minimum is one, so that Compute Engine removes nothing that it has created.
//! 2. A list by name shows the numbers. In the normal case it is the only further call.
//! 3. If names are missing when the operation has ended, the operations of its group are listed: they have the
//!    number or the error of each instance. Reads of operations are not stale.
//!
//! Google does not document whether a taken name refuses the call or fails alone. Both are handled: after a refused
//! call each name is inserted by itself. It must never create an instance under another name than the given ones.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use fleetwright::Effect;
use fleetwright_provider_support::{
    launch::{CreateError, LaunchCalls as _},
    poll::{deadline_after, poll_delays, sleep_before},
};
use futures_util::{StreamExt as _, stream};
use google_cloud_compute_v1::model::{Instance, Operation as NativeOperation, operation::Status};
use uuid::Uuid;

use crate::{
    client::ListScope,
    convert,
    error::{Failure, GcpFailure as _},
    history,
    launch::GcpLaunch,
    token::TokenLaunches,
};

/// The most instances of one call. The documentation allows 5,000 ("About bulk creation of VMs"), and earlier
/// versions of it 1,000.
const MOST: usize = 1_000;

/// The result of one creation.
type Created = Result<NativeOperation, CreateError>;

impl GcpLaunch<'_> {
    /// Creates many instances. Returns one result for each name, in the same order.
    pub(crate) async fn create_bulk(
        &self,
        names: &[String],
        known: &TokenLaunches,
    ) -> Vec<Created> {
        let mut created = Vec::with_capacity(names.len());
        for some in names.chunks(MOST) {
            created.extend(self.create_some(some, known).await);
        }
        created
    }

    /// Sends one bulk insert.
    async fn create_some(&self, names: &[String], known: &TokenLaunches) -> Vec<Created> {
        let (zone, client) = (self.plan.zone.as_str(), &self.gcp.client);
        let request_id = Uuid::new_v4().to_string();
        let sent = client
            .bulk_insert(zone, self.plan.bulk(names), &request_id)
            .await;
        match sent {
            Ok(operation) => self.settle_bulk(names, operation).await,
            Err(failure) if failure.is_taken() => {
                let each: Vec<_> = names.iter().map(|name| self.create(name, known)).collect();
                let each = stream::iter(each).buffered(self.context.concurrency);
                each.collect().await
            }
            Err(failure) => {
                let error = self.launch_error(failure);
                let each = names.iter();
                each.map(|_| Err(CreateError::Failed(error.clone())))
                    .collect()
            }
        }
    }

    /// Finds out what became of each name of an accepted bulk insert.
    async fn settle_bulk(&self, names: &[String], mut bulk: NativeOperation) -> Vec<Created> {
        let zone = self.plan.zone.as_str();
        let filter = convert::name_pattern_filter(&self.pattern);
        let deadline = deadline_after(self.gcp.options.call_timeout);
        let mut shown = BTreeMap::new();
        for delay in poll_delays(self.gcp.options.poll_interval) {
            match self.gcp.list_all(ListScope::Zone(zone), &filter).await {
                Ok(natives) => shown = by_name(natives),
                // A launch does not wait until a quota is full again.
                Err(failure) if failure.may_pass() && !failure.is_throttled() => {}
                Err(_) => break,
            }
            let complete = names.iter().all(|name| shown.contains_key(name));
            if complete
                || history::is_over(&bulk)
                || !sleep_before(deadline, delay, Duration::ZERO).await
            {
                break;
            }
            let Some(name) = bulk.name.clone() else { break };
            match self.gcp.client.operation(zone, &name).await {
                Ok(current) => bulk = current,
                Err(failure) if failure.may_pass() => {}
                Err(_) => break,
            }
        }
        let complete = names.iter().all(|name| shown.contains_key(name));
        let group = if complete {
            Ok(HashMap::new())
        } else {
            self.read_group(&bulk).await
        };
        let results = names.iter().map(|name| match (shown.get(name), &group) {
            (Some(native), _) => self.shown(name, native),
            (None, Ok(group)) => self.hidden(name, group.get(name), &bulk),
            (None, Err(failure)) => {
                let error = self.launch_error(failure.clone());
                Err(CreateError::Failed(error.with_effect(Effect::Unknown)))
            }
        });
        let results: Vec<_> = results.collect();
        for operation in results.iter().flatten() {
            self.gcp.memory.record_insert(operation);
        }
        results
    }

    /// Lists the operations of the instances of a bulk insert, by the name of the instance.
    async fn read_group(
        &self,
        bulk: &NativeOperation,
    ) -> Result<HashMap<String, NativeOperation>, Failure> {
        let Some(group) = &bulk.operation_group_id else {
            return Ok(HashMap::new());
        };
        let filter = format!("operationGroupId = \"{group}\"");
        let scope = ListScope::Zone(self.plan.zone.as_str());
        let operations = self.gcp.client.operations(scope, &filter).await?;
        let named = operations.into_iter().filter_map(|operation| {
            let (_, name) = operation
                .target_link
                .as_deref()?
                .rsplit_once("/instances/")?;
            Some((name.to_owned(), operation))
        });
        Ok(named.collect())
    }

    /// Returns the result of a name that a read shows. An instance of another launch or owner has taken the name.
    fn shown(&self, name: &str, native: &Instance) -> Created {
        let marks = self.marks(native);
        let is_own = marks.owner == self.context.owner
            && marks.fingerprint == Some(self.context.fingerprint);
        if !is_own {
            return Err(CreateError::NameTaken(self.name_taken(name)));
        }
        let zone = self.plan.zone.as_str();
        let link = format!(
            "projects/{}/zones/{zone}/instances/{name}",
            self.gcp.client.project()
        );
        let mut insert = NativeOperation::new()
            .set_operation_type("insert")
            .set_status(Status::Running)
            .set_zone(zone)
            .set_target_link(link);
        insert.target_id = native.id;
        insert.insert_time = native.creation_timestamp.clone();
        Ok(insert)
    }

    /// Returns the result of a name that no read shows, from its own operation or from that of the bulk insert.
    fn hidden(&self, name: &str, own: Option<&NativeOperation>, bulk: &NativeOperation) -> Created {
        let failure = own
            .and_then(history::failure)
            .or_else(|| history::failure(bulk));
        match (failure, own) {
            (Some(failure), _) if failure.is_taken() && self.context.token.is_some() => {
                Err(CreateError::NameTaken(self.name_taken(name)))
            }
            (Some(failure), _) => Err(CreateError::Failed(self.launch_error(failure))),
            (None, Some(own)) if own.target_id.is_some() => Ok(own.clone()),
            (None, _) => {
                let message = format!("neither a read nor an operation shows the instance {name}");
                let error = self.context.call.unexpected(Effect::Unknown, &message);
                Err(CreateError::Failed(error))
            }
        }
    }
}

/// Sorts instances by name, without those that are being removed: an operation has the reason.
fn by_name(natives: Vec<Instance>) -> BTreeMap<String, Instance> {
    let is_ending = |native: &Instance| {
        let state = native.status.as_ref().and_then(|status| status.name());
        state == Some("STOPPING")
    };
    let staying = natives.into_iter().filter(|native| !is_ending(native));
    let named = staying.filter_map(|native| Some((native.name.clone()?, native)));
    named.collect()
}
