//! The methods: each parses path, query and body, calls the engine, and turns the result
//! into documents.
//!
//! A method reads every parameter and field that it knows, refuses the rest, and only then calls
//! the engine. It keeps no state.

mod bulk;
mod catalog;
mod change;
mod disk_body;
mod disks;
mod images;
mod instance_body;
mod instances;
mod list;
mod operations;
mod power;
mod scheduling;

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{
    engine::Engine,
    error::Refusal,
    views,
    wire::{
        body::{self, Field},
        method::Method,
        query::Query,
        route::{Scope, Target},
    },
};
use crate::cloud::{fault::Failure, index::Seq, inject::CallContext};

pub(crate) use operations::remaining_wait;

/// One call of a method, with everything parsed but the body.
#[derive(Clone, Debug)]
pub struct Call {
    /// The method.
    pub(crate) method: Method,
    /// The project, scope and name in the path.
    pub(crate) target: Target,
    /// The query parameters, all known to the method.
    pub(crate) query: Query,
    /// The body, not parsed yet.
    pub(crate) body: Bytes,
}

/// Executes a call and returns its document as JSON.
///
/// # Errors
///
/// 404 or 400 for an unknown project, zone or region, 503 for an unreachable zone, 403
/// `rateLimitExceeded` for a list with a filter beyond its quota, and the errors of the method.
pub(crate) fn execute(
    call: &Call,
    engine: &mut Engine,
    context: &CallContext,
) -> Result<String, Refusal> {
    check_scope(call, engine)?;
    if call.query.text("filter").is_some() {
        engine.charge_filtered_list(call.method, &call.target)?;
    }
    let document = match call.method {
        Method::InstancesInsert => instances::insert(call, engine, context),
        Method::InstancesBulkInsert => bulk::insert(call, engine, context),
        Method::InstancesGet => instances::get(call, engine, context),
        Method::InstancesList => instances::list(call, engine, context),
        Method::InstancesAggregatedList => instances::aggregated(call, engine, context),
        Method::InstancesGetSerialPortOutput => instances::serial_port(call, engine, context),
        Method::InstancesStop
        | Method::InstancesStart
        | Method::InstancesReset
        | Method::InstancesSuspend
        | Method::InstancesResume
        | Method::InstancesDelete => power::change(call, engine, context),
        Method::InstancesSetLabels => change::labels(call, engine, context),
        Method::InstancesSetMetadata => change::metadata(call, engine, context),
        Method::InstancesSetMachineType => change::machine_type(call, engine, context),
        Method::ZoneOperationsGet
        | Method::ZoneOperationsWait
        | Method::RegionOperationsGet
        | Method::RegionOperationsWait
        | Method::GlobalOperationsGet
        | Method::GlobalOperationsWait => operations::get(call, engine, context),
        Method::ZoneOperationsList
        | Method::RegionOperationsList
        | Method::GlobalOperationsList => operations::list(call, engine, context),
        Method::GlobalOperationsAggregatedList => operations::aggregated(call, engine, context),
        Method::ImagesInsert => images::insert(call, engine, context),
        Method::ImagesDelete => images::delete(call, engine, context),
        Method::ImagesGet => images::get(call, engine),
        Method::ImagesGetFromFamily => images::get_from_family(call, engine),
        Method::ImagesList => images::list(call, engine, context),
        Method::DisksDelete => disks::delete(call, engine, context),
        Method::DisksGet => disks::get(call, engine),
        Method::DisksList => disks::list(call, engine, context),
        Method::DisksAggregatedList => disks::aggregated(call, engine, context),
        Method::MachineTypesGet => catalog::machine_type(call, engine),
        Method::MachineTypesList => catalog::machine_types(call, engine, context),
        Method::MachineTypesAggregatedList => catalog::all_machine_types(call, engine, context),
        Method::DiskTypesGet => catalog::disk_type(call),
        Method::DiskTypesList => catalog::disk_types(call, engine, context),
        Method::DiskTypesAggregatedList => catalog::all_disk_types(call, engine, context),
        Method::ZonesGet => catalog::zone(call, engine),
        Method::ZonesList => catalog::zones(call, engine, context),
        Method::RegionsGet => catalog::region(call, engine),
        Method::RegionsList => catalog::regions(call, engine, context),
        Method::ProjectsGet => Ok(views::project(&call.target.project)),
        Method::NetworksGet => catalog::network(call, engine),
        Method::NetworksList => catalog::networks(call, engine, context),
        Method::SubnetworksGet => catalog::subnetwork(call, engine),
        Method::SubnetworksList => catalog::subnetworks(call, engine, context),
        Method::SubnetworksAggregatedList => catalog::all_subnetworks(call, engine, context),
        Method::AddressesList => catalog::addresses(call, engine, context),
        Method::AddressesAggregatedList => catalog::all_addresses(call, engine, context),
    }?;
    serde_json::to_string(&document).map_err(|_unserializable| Refusal::internal())
}

/// Refuses missing projects, zones and regions, and unreachable zones.
///
/// A get of the zone or region itself is a 404 where other methods return 400 `invalid`, and it
/// works for an unreachable zone. Without the knob `projects` every project exists.
fn check_scope(call: &Call, engine: &Engine) -> Result<(), Refusal> {
    let Target { project, scope, .. } = &call.target;
    let knobs = &engine.core.knobs;
    let known = knobs.projects.is_empty() || knobs.projects.contains(project);
    if !known && !engine.is_public(project) {
        return Err(Refusal::not_found(&format!("projects/{project}")));
    }
    let is_catalog_read = matches!(call.method, Method::ZonesGet | Method::RegionsGet);
    match scope {
        Scope::Zone(zone) if !knobs.zones.contains(zone) => Err(if is_catalog_read {
            Refusal::not_found(&format!("projects/{project}/zones/{zone}"))
        } else {
            Refusal::invalid("zone", zone, "Unknown zone.")
        }),
        Scope::Zone(zone) if knobs.unreachable_zones.contains(zone) && !is_catalog_read => Err(
            Refusal::unreachable(&format!("projects/{project}/zones/{zone}")),
        ),
        Scope::Region(region) if !engine.has_region(region) => Err(if is_catalog_read {
            Refusal::not_found(&format!("projects/{project}/regions/{region}"))
        } else {
            Refusal::invalid("region", region, "Unknown region.")
        }),
        Scope::Zone(_) | Scope::Region(_) | Scope::Global => Ok(()),
    }
}

impl Call {
    /// Parses the body as an object with these fields.
    fn body(&self, fields: &[Field]) -> Result<Map<String, Value>, Refusal> {
        body::read(&self.body, fields)
    }

    /// Begins the work of a request once, however often the request is repeated, and returns its
    /// operation.
    ///
    /// Two requests are the same if they have the same request id, method, target and body.
    /// Without a request id every request is new.
    ///
    /// # Errors
    ///
    /// 400 `invalid` for an id that was used with another body, and the errors of `begin`.
    fn begin_once(
        &self,
        engine: &mut Engine,
        begin: impl FnOnce(&mut Engine) -> Result<Seq, Refusal>,
    ) -> Result<Value, Refusal> {
        let request = self.query.request_id()?.map(|id| {
            let Target {
                project,
                scope,
                name,
            } = &self.target;
            (id, self.method, format!("{project}/{scope}/{name}"))
        });
        let digest = Uuid::new_v5(&Uuid::NAMESPACE_OID, canonical(&self.body).as_bytes());
        if let Some(key) = &request {
            if let Some(replayed) = engine.replay(key, digest)? {
                return operation_document(engine, replayed);
            }
        }
        let operation = begin(engine)?;
        if let Some(key) = request {
            engine.remember(key, digest, operation);
        }
        operation_document(engine, operation)
    }

    /// As `begin_once`, but with `planned_failures` nothing happens except an operation with these
    /// errors.
    fn begin_once_or_fail(
        &self,
        engine: &mut Engine,
        planned_failures: &[Failure],
        begin: impl FnOnce(&mut Engine) -> Result<Seq, Refusal>,
    ) -> Result<Value, Refusal> {
        self.begin_once(engine, |engine| {
            if planned_failures.is_empty() {
                return begin(engine);
            }
            let name = self.method.name().split_once('.').unwrap_or_default();
            engine.create_failing_operation(&self.target, name, planned_failures)
        })
    }

    /// Returns path, query and the fields of the body, for the call record.
    pub(crate) fn recorded_parameters(&self) -> BTreeMap<String, String> {
        let mut parameters = self.query.recorded_parameters();
        let Target {
            project,
            scope,
            name,
        } = &self.target;
        parameters.insert("project".to_owned(), project.clone());
        match scope {
            Scope::Zone(zone) => drop(parameters.insert("zone".to_owned(), zone.clone())),
            Scope::Region(region) => drop(parameters.insert("region".to_owned(), region.clone())),
            Scope::Global => {}
        }
        if !name.is_empty() {
            parameters.insert("name".to_owned(), name.clone());
        }
        if let Ok(Value::Object(fields)) = serde_json::from_slice(&self.body) {
            let field =
                |(name, value): (String, Value)| (format!("body.{name}"), value.to_string());
            parameters.extend(fields.into_iter().map(field));
        }
        parameters
    }
}

/// Returns the document of an operation.
fn operation_document(engine: &Engine, operation: Seq) -> Result<Value, Refusal> {
    let operation = engine.operations.get(&operation);
    let operation = operation.ok_or_else(Refusal::internal)?;
    Ok(views::operation(engine, operation))
}

/// Returns a body with its fields sorted, because a client may write them in another order when it
/// repeats a request. A body that is not JSON stays as it is.
fn canonical(body: &[u8]) -> String {
    match serde_json::from_slice::<Value>(body) {
        Ok(mut document) => {
            document.sort_all_objects();
            document.to_string()
        }
        Err(_) => String::from_utf8_lossy(body).into_owned(),
    }
}
