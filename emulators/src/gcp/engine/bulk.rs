//! Creates many instances in one call: all of them, or at least a minimum.

use super::{
    Engine,
    operation::{About, Work},
    order::InstanceSpec,
};
use crate::{
    cloud::{fault::Failure, index::Seq},
    gcp::{error::Refusal, wire::route::Scope},
};

/// The parameters of a bulkInsert.
#[derive(Debug)]
pub(crate) struct BulkSpec {
    /// What they have in common.
    pub(crate) each: InstanceSpec,
    pub(crate) names: BulkNames,
    pub(crate) count: usize,
    pub(crate) least: usize,
}

/// What they are called.
#[derive(Debug)]
pub(crate) enum BulkNames {
    /// Numbered: the part before the number, and its digits.
    Pattern(String, usize),
    Given(Vec<String>),
}

impl Engine {
    /// Begins to create many instances, and returns their common operation.
    pub(crate) fn bulk_insert(
        &mut self,
        order: &BulkSpec,
        planned_failures: &[Failure],
    ) -> Result<Seq, Refusal> {
        let group = self.core.request_id();
        let (mut made, mut errors) = (Vec::new(), planned_failures.to_vec());
        let names = self.bulk_names(order);
        if errors.is_empty() {
            (made, errors) = self.valid_disk_names(order, &names)?;
        }
        let enough = made.len() >= order.least;
        let work = if enough {
            for order in &made {
                let operation = self.make(order, Vec::new());
                self.join(operation, &group);
            }
            Work::Nothing
        } else {
            if planned_failures.is_empty() {
                errors.insert(0, min_count_not_reached(order, made.len()));
            }
            Work::Fail(errors)
        };
        let timing = &self.core.knobs.timing;
        let takes = timing.provision.saturating_add(timing.stage);
        let each = &order.each;
        let operation = self.open_for(
            About {
                project: each.project.clone(),
                scope: Scope::Zone(each.zone.clone()),
                kind: "bulkInsert",
                target: format!("projects/{}/zones/{}", each.project, each.zone),
                target_id: None,
            },
            takes,
            work,
        );
        self.join(operation, &group);
        Ok(operation)
    }

    /// Which of the orders can be carried out together, and why the others can not.
    fn valid_disk_names(
        &mut self,
        order: &BulkSpec,
        names: &[String],
    ) -> Result<(Vec<InstanceSpec>, Vec<Failure>), Refusal> {
        let (mut fitting, mut errors) = (Vec::new(), Vec::new());
        let least = order.least;
        for name in names {
            let order = order.each.called(name);
            if let Err(refusal) = self.check_names(&order) {
                errors.push(Failure::new("RESOURCE_ALREADY_EXISTS", refusal.message));
                continue;
            }
            match self.check_more_limits(&order, fitting.len() as u64) {
                Ok(late) if late.is_empty() => fitting.push(order),
                Ok(late) => {
                    errors = late;
                    break;
                }
                Err(_) if fitting.len() >= least => break,
                Err(refusal) => return Err(refusal),
            }
        }
        Ok((fitting, errors))
    }

    fn bulk_names(&self, order: &BulkSpec) -> Vec<String> {
        match &order.names {
            BulkNames::Given(names) => names.clone(),
            BulkNames::Pattern(before, digits) => {
                let InstanceSpec { project, zone, .. } = &order.each;
                let names = (1_u64..).map(|number| format!("{before}{number:0digits$}"));
                let free = |name: &String| {
                    let address = (project.clone(), zone.clone(), name.clone());
                    self.live(&address).is_none()
                };
                names.filter(free).take(order.count).collect()
            }
        }
    }
}

fn min_count_not_reached(order: &BulkSpec, fits: usize) -> Failure {
    let message = format!(
        "Requested minimum count of {} VMs could not be created: only {fits} would fit.",
        order.least
    );
    Failure::new("VM_MIN_COUNT_NOT_REACHED", message)
}
