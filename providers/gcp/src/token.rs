//! Everything that a launch token has launched, from lists of instances and, if wanted, of operations.
//!
//! Owns how the two lists are joined. Reads only.
//!
//! 1. List the instances whose name matches the token, in all configured zones.
//! 2. Instances with the owner mark: one per name, terminating if they are being deleted.
//! 3. If spent tokens are remembered, list the operations on such names: an instance that was deleted spends
//!    the token, and one that was created and does not show is hidden and awaited.

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
    resolve::Unclear,
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
        let mut natives = self.list_token_instances(call, &pattern).await?;
        let targets = self.list_token_targets(call, &pattern).await?;
        // A stale list can show an instance whose insert has failed. Its name is free.
        let failed = |native: &Instance| {
            let listed = targets.iter().any(|target| {
                matches!(target.history, History::CreateFailed(_))
                    && Some(target.address.number) == native.id
            });
            let ended = native.id.and_then(|number| self.memory.end(number));
            listed || ended.is_some_and(|info| info.launch_failure.is_some())
        };
        natives.retain(|native| !failed(native));
        let owner = owner(token);
        let owned = natives
            .iter()
            .filter(|native| convert::owner(native) == Some(owner.as_str()));
        let owned: Vec<_> = owned.cloned().collect();
        let infos = self.infos(call, &owned)?;
        let infos = self.resolve_shown(infos, Unclear::Fail).await;
        let infos = infos.map_err(|failure| unread(call, failure))?;
        let (mut by_name, twins) = by_name(&owned, infos);
        let mut has_hidden = false;
        for Target { address, history } in absent_targets(&natives, targets) {
            let absent = match &history {
                History::Created(activity) => {
                    // It does not show yet, or something other than an operation ended it.
                    has_hidden |= activity.preemption.is_none();
                    let reason = activity.preemption.as_deref();
                    convert::gone_info(&address, reason.unwrap_or("gone: no record of its end"))
                }
                History::Creating => {
                    has_hidden = true;
                    None
                }
                History::Empty
                | History::Deleting
                | History::Deleted(_)
                | History::CreateFailed(_) => convert::absent_info(&address, &history),
            };
            let name = address.name;
            if let Some(info) = absent.filter(|info| is_preferred(info, by_name.get(&name))) {
                by_name.insert(name, info);
            }
        }
        Ok(TokenLaunches {
            natives,
            by_name,
            twins,
            has_hidden,
        })
    }

    /// Lists the instances with a name of the token. Sorted by zone, last one first, so that a
    /// replay returns the same one of two twins each time.
    pub(crate) async fn list_token_instances(
        &self,
        call: &Call,
        pattern: &str,
    ) -> Result<Vec<Instance>> {
        let natives = self
            .list_own_zones(&convert::name_pattern_filter(pattern))
            .await;
        let mut natives = natives.map_err(|failure| unread(call, failure))?;
        natives.sort_by(|one, other| other.zone.cmp(&one.zone));
        Ok(natives)
    }

    /// Lists the operations on instances with a name of the token, and sums them up for each
    /// instance. Empty if spent tokens are not remembered.
    async fn list_token_targets(&self, call: &Call, pattern: &str) -> Result<Vec<Target>> {
        if !self.options.remember_spent_tokens {
            return Ok(Vec::new());
        }
        let operations = self
            .operations_in_own_zones(&convert::operations_on_names(pattern))
            .await;
        let operations = operations.map_err(|failure| unread(call, failure))?;
        let mut by_number = BTreeMap::<u64, (Address, Vec<NativeOperation>)>::new();
        for operation in operations {
            if let Some(address) = convert::operation_target(self.client.project(), &operation) {
                if history::is_delete(&operation) {
                    self.memory.record_delete(&operation);
                }
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

/// Sorts the instances of a token by name: one of each name, and the other ones of that name.
///
/// Two instances of one name are in different zones. If only one of them is not ending, it is kept.
/// Otherwise the one whose zone sorts first is kept, so that each replay returns the same one.
fn by_name(
    natives: &[Instance],
    infos: Vec<InstanceInfo>,
) -> (BTreeMap<String, InstanceInfo>, Vec<InstanceInfo>) {
    let (mut by_name, mut twins) = (BTreeMap::<String, InstanceInfo>::new(), Vec::new());
    for (native, info) in natives.iter().zip(infos) {
        let Some(name) = native.name.clone() else {
            continue;
        };
        let current = by_name.get(&name);
        if info.state.is_ending() && current.is_some_and(|current| !current.state.is_ending()) {
            twins.push(info);
        } else {
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
