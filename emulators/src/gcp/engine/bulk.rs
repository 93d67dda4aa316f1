//! Creates many instances in one call: all of them, or at least a minimum.

use super::{
    Engine,
    operation::{NewOperation, Work},
    spec::InstanceSpec,
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
    pub(crate) min_count: usize,
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
        spec: &BulkSpec,
        planned_failures: &[Failure],
    ) -> Result<Seq, Refusal> {
        let group = self.core.request_id();
        let (mut specs, mut errors) = (Vec::new(), planned_failures.to_vec());
        let names = self.bulk_names(spec);
        if errors.is_empty() {
            (specs, errors) = self.valid_disk_names(spec, &names)?;
        }
        let reaches_minimum = specs.len() >= spec.min_count;
        let work = if reaches_minimum {
            for spec in &specs {
                let operation = self.create_instance(spec, Vec::new());
                self.set_group(operation, &group);
            }
            Work::Nothing
        } else {
            if planned_failures.is_empty() {
                errors.insert(0, min_count_not_reached(spec, specs.len()));
            }
            Work::Fail(errors)
        };
        let timing = &self.core.knobs.timing;
        let duration = timing.provision.saturating_add(timing.stage);
        let each = &spec.each;
        let operation = self.create_operation_with_work(
            NewOperation {
                project: each.project.clone(),
                scope: Scope::Zone(each.zone.clone()),
                kind: "bulkInsert",
                target: format!("projects/{}/zones/{}", each.project, each.zone),
                target_id: None,
            },
            duration,
            work,
        );
        self.set_group(operation, &group);
        Ok(operation)
    }

    /// Which of the orders can be carried out together, and why the others can not.
    fn valid_disk_names(
        &mut self,
        spec: &BulkSpec,
        names: &[String],
    ) -> Result<(Vec<InstanceSpec>, Vec<Failure>), Refusal> {
        let (mut accepted, mut errors) = (Vec::new(), Vec::new());
        let min_count = spec.min_count;
        for name in names {
            let spec = spec.each.with_name(name);
            if let Err(refusal) = self.check_names(&spec) {
                errors.push(Failure::new("RESOURCE_ALREADY_EXISTS", refusal.message));
                continue;
            }
            match self.check_limits_with_pending(&spec, accepted.len() as u64) {
                Ok(late_failures) if late_failures.is_empty() => accepted.push(spec),
                Ok(late_failures) => {
                    errors = late_failures;
                    break;
                }
                Err(_) if accepted.len() >= min_count => break,
                Err(refusal) => return Err(refusal),
            }
        }
        Ok((accepted, errors))
    }

    fn bulk_names(&self, spec: &BulkSpec) -> Vec<String> {
        match &spec.names {
            BulkNames::Given(names) => names.clone(),
            BulkNames::Pattern(before, digits) => {
                let InstanceSpec { project, zone, .. } = &spec.each;
                let names = (1_u64..).map(|number| format!("{before}{number:0digits$}"));
                let free = |name: &String| {
                    let address = (project.clone(), zone.clone(), name.clone());
                    self.live_instance(&address).is_none()
                };
                names.filter(free).take(spec.count).collect()
            }
        }
    }
}

fn min_count_not_reached(spec: &BulkSpec, available: usize) -> Failure {
    let message = format!(
        "Requested minimum count of {} VMs could not be created: only {available} would fit.",
        spec.min_count
    );
    Failure::new("VM_MIN_COUNT_NOT_REACHED", message)
}
