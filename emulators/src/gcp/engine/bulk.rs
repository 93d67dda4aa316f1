//! `bulkInsert`: creates many instances in one call, all of them or at least a minimum.
//!
//! Compute Engine returns one operation for the call, and one more for each instance; all of them
//! share an operation group id. If fewer than the minimum can be created, none is, and the common
//! operation fails with `VM_MIN_COUNT_NOT_REACHED`. Otherwise the common operation succeeds, and the
//! operation of each instance that can not be created fails.

use super::{
    Engine,
    operation::{NewOperation, Work},
    spec::InstanceSpec,
};
use crate::{
    cloud::{fault::Failure, index::Seq},
    gcp::{error::Refusal, wire::route::Scope},
};

/// A spec that cannot be created, and why.
type RefusedSpec = (InstanceSpec, Failure);

/// The parsed parameters of a bulkInsert.
#[derive(Debug)]
pub(crate) struct BulkSpec {
    /// The properties that all instances have in common; the name is empty.
    pub(crate) each: InstanceSpec,
    /// The names of the instances.
    pub(crate) names: BulkNames,
    /// How many instances to create.
    pub(crate) count: usize,
    /// How many are enough. Default: `count`.
    pub(crate) min_count: usize,
}

/// How the instances are named.
#[derive(Debug)]
pub(crate) enum BulkNames {
    /// Numbered names: the part before the number, and the minimum number of digits.
    ///
    /// Numbering starts at 1 and skips names that are in use.
    Pattern(String, usize),
    /// One given name for each instance.
    Given(Vec<String>),
}

impl Engine {
    /// Begins to create many instances and returns their common operation.
    ///
    /// With `planned_failures`, no instance is created and the operation fails with them.
    ///
    /// # Errors
    ///
    /// A quota or capacity refusal that the knobs report immediately, if it prevents the minimum.
    pub(crate) fn bulk_insert(
        &mut self,
        spec: &BulkSpec,
        planned_failures: &[Failure],
    ) -> Result<Seq, Refusal> {
        let group = self.core.request_id();
        let (mut specs, mut refused) = (Vec::new(), Vec::new());
        let mut errors = planned_failures.to_vec();
        let names = self.bulk_names(spec);
        if errors.is_empty() {
            (specs, refused) = self.accepted_specs(spec, &names)?;
            for (_, failure) in &refused {
                if !errors.contains(failure) {
                    errors.push(failure.clone());
                }
            }
        }
        let reaches_minimum = specs.len() >= spec.min_count;
        let work = if reaches_minimum {
            for spec in &specs {
                let operation = self.create_instance(spec, Vec::new());
                self.set_group(operation, &group);
            }
            for (spec, failure) in refused {
                let operation = self.create_operation_with_work(
                    NewOperation {
                        project: spec.project.clone(),
                        scope: Scope::Zone(spec.zone.clone()),
                        kind: "insert",
                        target: spec.path(),
                        target_id: None,
                    },
                    self.core.knobs.timing.provision,
                    Work::Fail(vec![failure]),
                );
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

    /// Returns the specs that can be created together, and the others with their errors.
    ///
    /// A name that is in use costs one instance; an exhausted limit all that follow. Each spec is
    /// checked with the accepted ones counted as in use.
    ///
    /// # Errors
    ///
    /// The refusal of an exhausted limit, if fewer than `min_count` specs are accepted before it.
    fn accepted_specs(
        &mut self,
        spec: &BulkSpec,
        names: &[String],
    ) -> Result<(Vec<InstanceSpec>, Vec<RefusedSpec>), Refusal> {
        let (mut accepted, mut refused) = (Vec::new(), Vec::new());
        let min_count = spec.min_count;
        let mut limit: Option<Failure> = None;
        for name in names {
            let spec = spec.each.with_name(name);
            if let Err(refusal) = self.check_names(&spec) {
                let failure = Failure::new("RESOURCE_ALREADY_EXISTS", refusal.message);
                refused.push((spec, failure));
                continue;
            }
            if let Some(limit) = &limit {
                refused.push((spec, limit.clone()));
                continue;
            }
            let failure = match self.check_limits_with_pending(&spec, accepted.len() as u64) {
                Ok(late_failures) => late_failures.into_iter().next(),
                Err(refusal) if accepted.len() >= min_count => {
                    let code = match &*refusal.reason {
                        "quotaExceeded" => "QUOTA_EXCEEDED",
                        code => code,
                    };
                    Some(Failure::new(code, &refusal.message))
                }
                Err(refusal) => return Err(refusal),
            };
            match failure {
                None => accepted.push(spec),
                Some(failure) => {
                    limit = Some(failure.clone());
                    refused.push((spec, failure));
                }
            }
        }
        Ok((accepted, refused))
    }

    /// Returns the names to create: the given ones, or the first free names of the pattern.
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

/// Returns the error of an operation that cannot create the minimum.
fn min_count_not_reached(spec: &BulkSpec, available: usize) -> Failure {
    let message = format!(
        "Requested minimum count of {} VMs could not be created: only {available} would fit.",
        spec.min_count
    );
    Failure::new("VM_MIN_COUNT_NOT_REACHED", message)
}
