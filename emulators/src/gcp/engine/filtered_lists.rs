//! The quota of lists with a filter.
//!
//! Compute Engine charges a list with a filter for every record that it compares, not for those that
//! it returns, against a quota per minute that cannot be raised and that all such lists share
//! (Compute Engine documentation, "Compute Engine rate quotas and system limits": filtered list cost overhead;
//! openshift/installer#9169, openshift/release#59207). The quota is full again at the next full
//! minute. Google has one quota for each region and one for lists of all of them; here a project has
//! one for all.

use std::collections::BTreeMap;

use super::Engine;
use crate::gcp::{
    error::Refusal,
    wire::{
        method::Method,
        route::{Scope, Target},
    },
};

/// What the filtered lists of each project have compared in one minute.
#[derive(Debug, Default)]
pub(super) struct FilteredLists {
    /// The minute, counted from 1970.
    minute: i64,
    /// The number of records by project.
    compared: BTreeMap<String, u64>,
}

impl Engine {
    /// Charges a list with a filter.
    ///
    /// # Errors
    ///
    /// 403 `rateLimitExceeded` if the project has used up the knob `filtered_list_quota` in this
    /// minute. A list that is refused is not charged.
    pub(crate) fn charge_filtered_list(
        &mut self,
        method: Method,
        target: &Target,
    ) -> Result<(), Refusal> {
        let minute = self.calendar(self.now()).timestamp().div_euclid(60);
        let records = self.records_in(method, target);
        let limit = self.core.knobs.filtered_list_quota;
        let used = &mut self.filtered_lists;
        if used.minute != minute {
            *used = FilteredLists {
                minute,
                compared: BTreeMap::new(),
            };
        }
        let compared = used.compared.entry(target.project.clone()).or_default();
        if *compared >= limit {
            return Err(Refusal::filtered_list_quota(&target.project));
        }
        *compared = compared.saturating_add(records);
        Ok(())
    }

    /// Counts the instances or operations that a list compares. Other lists are short and cost
    /// nothing here.
    fn records_in(&self, method: Method, target: &Target) -> u64 {
        let of_instances = matches!(
            method,
            Method::InstancesList | Method::InstancesAggregatedList
        );
        let of_operations = matches!(
            method,
            Method::ZoneOperationsList
                | Method::RegionOperationsList
                | Method::GlobalOperationsList
                | Method::GlobalOperationsAggregatedList
        );
        let of_all = matches!(
            method,
            Method::InstancesAggregatedList | Method::GlobalOperationsAggregatedList
        );
        let count = if of_instances {
            let matching = self.instances.values().filter(|instance| {
                let in_zone =
                    matches!(&target.scope, Scope::Zone(zone) if *zone == instance.fixed.zone);
                !instance.is_gone()
                    && instance.fixed.project == target.project
                    && (of_all || in_zone)
            });
            matching.count()
        } else if of_operations {
            let matching = self.operations.values().filter(|operation| {
                operation.project == target.project && (of_all || operation.scope == target.scope)
            });
            matching.count()
        } else {
            0
        };
        count as u64
    }
}
