//! Everything that a launch token has launched, from lists of instances and of operations.
//!
//! Owns how the two lists are joined. A list of instances can lag and forgets deleted instances;
//! the operations know inserts and deletions that it does not show. Reads only.
//!
//! 1. List the instances whose name matches the token, in all configured zones.
//! 2. List the operations on such names, and sum them up for each instance.
//! 3. Failed inserts: their names are free, and their operations change the next request id.
//! 4. Instances with the owner mark: one per name, terminating if operations delete them.
//! 5. Instances that only operations know: ended ones spend the token, others are hidden and awaited.

use std::collections::{BTreeMap, BTreeSet};

use fleetwright::{Call, InstanceInfo, LaunchToken, Result};
use google_cloud_compute_v1::model::{Instance, Operation as NativeOperation};

use crate::{
    GcpProvisioner, address,
    address::Address,
    convert,
    error::{ErrorContext, Failure},
    history::{self, History},
    plan::owner,
};

/// Everything that a token has launched, alive or not.
#[derive(Debug, Default)]
pub(crate) struct TokenLaunches {
    /// Every instance that has a name of the token, also those of another owner.
    pub(crate) natives: Vec<Instance>,
    /// The token's instance of each name. One that exists or is being created is preferred over one
    /// of the same name that has ended.
    pub(crate) by_name: BTreeMap<String, InstanceInfo>,
    /// Further instances of a name in other zones, from two handles that launched at the same time.
    pub(crate) twins: Vec<InstanceInfo>,
    /// By name, the operations of inserts that failed. Such a name is free again.
    pub(crate) failed_attempts: BTreeMap<String, BTreeSet<String>>,
    /// Whether operations know of an instance that no read shows yet.
    pub(crate) has_hidden: bool,
}

/// The summed-up operations of one instance.
struct Target {
    /// Where the instance is or was.
    address: Address,
    /// What all its operations say together.
    history: History,
}

impl GcpProvisioner {
    /// Reads everything that a token has launched.
    pub(crate) async fn find_token_launches(
        &self,
        call: &Call,
        token: &LaunchToken,
    ) -> Result<TokenLaunches> {
        let pattern = address::pattern_of(token);
        let natives = self.list_token_instances(call, &pattern).await?;
        let infos = self.infos(call, &natives)?;
        let targets = self.list_token_targets(call, &pattern).await?;
        let failed_attempts = failed_attempts(&targets);
        let (mut by_name, twins) = owned_instances(&owner(token), &natives, infos, &targets);
        let mut has_hidden = false;
        for target in absent_targets(&natives, targets) {
            let window = self.capabilities.consistency_window;
            let absent = convert::absent_info(&target.address, &target.history, window);
            has_hidden |= absent.as_ref().is_none_or(|info| !info.state.is_ending());
            let name = target.address.name;
            if let Some(info) = absent.filter(|info| is_preferred(info, by_name.get(&name))) {
                by_name.insert(name, info);
            }
        }
        Ok(TokenLaunches {
            natives,
            by_name,
            twins,
            failed_attempts,
            has_hidden,
        })
    }

    /// Lists the instances with a name of the token. Sorted by zone, last one first, so that a
    /// replay returns the same one of two twins each time.
    async fn list_token_instances(&self, call: &Call, pattern: &str) -> Result<Vec<Instance>> {
        let natives = self
            .list_own_zones(&convert::name_pattern_filter(pattern))
            .await;
        let mut natives = natives.map_err(|failure| unread(call, failure))?;
        natives.sort_by(|one, other| other.zone.cmp(&one.zone));
        Ok(natives)
    }

    /// Lists the operations on instances with a name of the token, and sums them up for each
    /// instance. Empty if operations are not used; an instance that is being deleted then looks
    /// like a stopping one.
    async fn list_token_targets(&self, call: &Call, pattern: &str) -> Result<Vec<Target>> {
        if self.options.operations_kept.is_zero() {
            return Ok(Vec::new());
        }
        let operations = self
            .operations_in_own_zones(&convert::operations_on_names(pattern))
            .await;
        let operations = operations.map_err(|failure| unread(call, failure))?;
        let mut by_number = BTreeMap::<u64, (Address, Vec<NativeOperation>)>::new();
        for operation in operations {
            if let Some(address) = convert::operation_target(self.client.project(), &operation) {
                let entry = by_number.entry(address.number);
                let (_, operations) = entry.or_insert_with(|| (address, Vec::new()));
                operations.push(operation);
            }
        }
        let targets = by_number.into_values().map(|(address, operations)| Target {
            address,
            history: history::summarize(&operations),
        });
        Ok(targets.collect())
    }
}

/// Converts the failure of a lookup.
fn unread(call: &Call, failure: Failure) -> fleetwright::ProvisionError {
    failure.into_error(call, ErrorContext::default())
}

/// The operations of failed inserts by name.
fn failed_attempts(targets: &[Target]) -> BTreeMap<String, BTreeSet<String>> {
    let mut attempts = BTreeMap::<String, BTreeSet<String>>::new();
    for target in targets {
        let History::CreateFailed(failure) = &target.history else {
            continue;
        };
        if let Some(operation) = &failure.request_id {
            let of_name = attempts.entry(target.address.name.clone()).or_default();
            of_name.insert(operation.clone());
        }
    }
    attempts
}

/// The instances that carry the owner mark: the last one of each name, and the other ones of that
/// name. One that is being deleted is terminating, though Compute Engine lists it as stopping.
///
/// Two instances of one name are in different zones. The one in the zone that sorts first is kept,
/// so that each replay returns the same one.
fn owned_instances(
    owner: &str,
    natives: &[Instance],
    infos: Vec<InstanceInfo>,
    targets: &[Target],
) -> (BTreeMap<String, InstanceInfo>, Vec<InstanceInfo>) {
    let deleted: BTreeSet<_> = targets
        .iter()
        .filter(|target| matches!(target.history, History::Deleting | History::Deleted(_)))
        .map(|target| target.address.number)
        .collect();
    let (mut by_name, mut twins) = (BTreeMap::new(), Vec::new());
    for (native, info) in natives.iter().zip(infos) {
        if convert::owner(native) != Some(owner) {
            continue;
        }
        let is_deleted = native.id.is_some_and(|number| deleted.contains(&number));
        let info = if is_deleted {
            convert::mark_terminating(info)
        } else {
            info
        };
        if let Some(name) = native.name.clone() {
            twins.extend(by_name.insert(name, info));
        }
    }
    (by_name, twins)
}

/// The instances that operations name and no read shows, without failed inserts.
fn absent_targets(natives: &[Instance], targets: Vec<Target>) -> impl Iterator<Item = Target> {
    let shown: BTreeSet<_> = natives.iter().filter_map(|native| native.id).collect();
    targets.into_iter().filter(move |target| {
        let failed = matches!(target.history, History::CreateFailed(_));
        !failed && !shown.contains(&target.address.number)
    })
}

/// Whether an absent instance says more about its name than the current one does.
fn is_preferred(absent: &InstanceInfo, current: Option<&InstanceInfo>) -> bool {
    current.is_none_or(|current| current.state.is_ending() && !absent.state.is_ending())
}
