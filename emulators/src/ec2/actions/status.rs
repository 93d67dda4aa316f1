//! DescribeInstanceStatus.
//!
//! By default only running instances have a status. System and instance checks are `initializing`
//! for `timing.checks` after the boot and `ok` from then on; they never fail.

use std::time::Duration;

use serde::Serialize;

use super::{Call, view};
use crate::ec2::{
    engine::{
        Engine, Seq,
        filter::Filter,
        record::{State, Version},
    },
    error::Refusal,
    shapes::instance::{Check, Checks, InstanceStatus},
    wire::xml::Set,
};

/// The response.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    /// The statuses.
    instance_status_set: Set<InstanceStatus>,
    /// The token of the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_token: Option<String>,
}

/// The filter names: those of instances, and those of the status.
const FILTERS: [&str; 5] = [
    "availability-zone",
    "instance-state-code",
    "instance-state-name",
    "instance-status.status",
    "system-status.status",
];

/// Describes the status of instances. The read may lag.
///
/// # Errors
///
/// `InvalidParameterValue` for an unknown filter, `InvalidInstanceID.NotFound` if any id is
/// missing, `InvalidParameterCombination` for ids together with page parameters.
pub(super) fn describe(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let root = call.root();
    let ids = root.list("InstanceId");
    let all = root.flag("IncludeAllInstances")?.unwrap_or(false);
    let (checks, mut filters): (Vec<Filter>, Vec<Filter>) = call
        .filters()?
        .into_iter()
        .partition(|filter| filter.name.ends_with("-status.status"));
    let paging = call.paging(engine)?;
    call.finish_read()?;
    if let Some(unknown) = filters
        .iter()
        .chain(&checks)
        .find(|filter| !FILTERS.contains(&filter.name.as_str()))
    {
        return Err(Refusal::invalid(format!(
            "The filter '{}' is invalid",
            unknown.name
        )));
    }
    if !all {
        filters.push(Filter {
            name: "instance-state-name".to_owned(),
            values: vec!["running".to_owned()],
        });
    }
    let page = call.read_instances(engine, &ids, &filters, &paging)?;
    let statuses = page
        .items
        .iter()
        .filter_map(|(seq, version)| status(call, engine, *seq, version));
    let passes = |status: &InstanceStatus| {
        checks.iter().all(|filter| {
            filter
                .values
                .iter()
                .any(|value| value == status.instance_status.status)
        })
    };
    call.respond(&Response {
        instance_status_set: statuses.filter(passes).collect(),
        next_token: call.next_token(page.next),
    })
}

/// Returns the status of an instance, with the same outcome for both checks.
fn status(call: &Call<'_>, engine: &Engine, seq: Seq, version: &Version) -> Option<InstanceStatus> {
    let fixed = &engine.instances.get(&seq)?.fixed;
    Some(InstanceStatus {
        instance_id: fixed.id.clone(),
        availability_zone: fixed.zone.clone(),
        instance_state: view::state(version.state, call.context.state.as_deref()),
        system_status: checks(engine, version),
        instance_status: checks(engine, version),
    })
}

/// Returns the outcome of the checks: `not-applicable` for an instance that does not run.
fn checks(engine: &Engine, version: &Version) -> Checks {
    if version.state != State::Running {
        return Checks {
            status: "not-applicable",
            details: None,
        };
    }
    let runs = engine
        .now()
        .saturating_sub(version.running_since.unwrap_or(Duration::MAX));
    let passed = runs >= engine.core.knobs.timing.checks;
    let detail = Check {
        name: "reachability",
        status: if passed { "passed" } else { "initializing" },
    };
    Checks {
        status: if passed { "ok" } else { "initializing" },
        details: Some([detail].into_iter().collect()),
    }
}
