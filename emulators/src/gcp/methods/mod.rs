//! What each method means: a path, a query and a body into a request to the engine, the engine's answer
//! into documents.
//!
//! A method reads every parameter and field it knows, refuses the rest, and only then acts. It keeps no
//! state.

mod bulk;
mod catalog;
mod change;
mod disks;
mod images;
mod instances;
mod list;
mod operations;
mod order;
mod order_disks;
mod power;
mod scheduling;

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{
    engine::World,
    error::Refusal,
    views,
    wire::{
        body::{self, Field},
        method::Method,
        query::Query,
        route::{Scope, Target},
    },
};
use crate::cloud::{fault::Failure, index::Seq, strike::Served};

pub(crate) use operations::patience;

/// One call of a method.
#[derive(Clone, Debug)]
pub struct Call {
    pub(crate) method: Method,
    pub(crate) target: Target,
    pub(crate) query: Query,
    pub(crate) body: Bytes,
}

/// Carries out a call and answers its document.
pub(crate) fn act(call: &Call, world: &mut World, served: &Served) -> Result<String, Refusal> {
    check_place(call, world)?;
    let answer = match call.method {
        Method::InstancesInsert => instances::insert(call, world, served),
        Method::InstancesBulkInsert => bulk::insert(call, world, served),
        Method::InstancesGet => instances::get(call, world, served),
        Method::InstancesList => instances::list(call, world, served),
        Method::InstancesAggregatedList => instances::aggregated(call, world, served),
        Method::InstancesGetSerialPortOutput => instances::serial_port(call, world, served),
        Method::InstancesStop
        | Method::InstancesStart
        | Method::InstancesReset
        | Method::InstancesSuspend
        | Method::InstancesResume
        | Method::InstancesDelete => power::change(call, world, served),
        Method::InstancesSetLabels => change::labels(call, world, served),
        Method::InstancesSetMetadata => change::metadata(call, world, served),
        Method::InstancesSetMachineType => change::machine_type(call, world, served),
        Method::ZoneOperationsGet
        | Method::ZoneOperationsWait
        | Method::RegionOperationsGet
        | Method::RegionOperationsWait
        | Method::GlobalOperationsGet
        | Method::GlobalOperationsWait => operations::get(call, world, served),
        Method::ZoneOperationsList
        | Method::RegionOperationsList
        | Method::GlobalOperationsList => operations::list(call, world, served),
        Method::GlobalOperationsAggregatedList => operations::aggregated(call, world, served),
        Method::ImagesInsert => images::insert(call, world, served),
        Method::ImagesDelete => images::delete(call, world, served),
        Method::ImagesGet => images::get(call, world),
        Method::ImagesGetFromFamily => images::get_from_family(call, world),
        Method::ImagesList => images::list(call, world, served),
        Method::DisksDelete => disks::delete(call, world, served),
        Method::DisksGet => disks::get(call, world),
        Method::DisksList => disks::list(call, world, served),
        Method::DisksAggregatedList => disks::aggregated(call, world, served),
        Method::MachineTypesGet => catalog::machine_type(call, world),
        Method::MachineTypesList => catalog::machine_types(call, world, served),
        Method::MachineTypesAggregatedList => catalog::all_machine_types(call, world, served),
        Method::DiskTypesGet => catalog::disk_type(call),
        Method::DiskTypesList => catalog::disk_types(call, world, served),
        Method::DiskTypesAggregatedList => catalog::all_disk_types(call, world, served),
        Method::ZonesGet => catalog::zone(call, world),
        Method::ZonesList => catalog::zones(call, world, served),
        Method::RegionsGet => catalog::region(call, world),
        Method::RegionsList => catalog::regions(call, world, served),
        Method::ProjectsGet => Ok(views::project(&call.target.project)),
        Method::NetworksGet => catalog::network(call, world),
        Method::NetworksList => catalog::networks(call, world, served),
        Method::SubnetworksGet => catalog::subnetwork(call, world),
        Method::SubnetworksList => catalog::subnetworks(call, world, served),
        Method::SubnetworksAggregatedList => catalog::all_subnetworks(call, world, served),
        Method::AddressesList => catalog::addresses(call, world, served),
        Method::AddressesAggregatedList => catalog::all_addresses(call, world, served),
    }?;
    serde_json::to_string(&answer).map_err(|_unserializable| Refusal::internal())
}

/// Refuses projects, zones and regions that are not there, and zones that do not answer.
fn check_place(call: &Call, world: &World) -> Result<(), Refusal> {
    let Target { project, scope, .. } = &call.target;
    let knobs = &world.knobs;
    let known = knobs.projects.is_empty() || knobs.projects.contains(project);
    if !known && !world.is_public(project) {
        return Err(Refusal::not_found(&format!("projects/{project}")));
    }
    let of_itself = matches!(call.method, Method::ZonesGet | Method::RegionsGet);
    match scope {
        Scope::Zone(zone) if !knobs.zones.contains(zone) => Err(if of_itself {
            Refusal::not_found(&format!("projects/{project}/zones/{zone}"))
        } else {
            Refusal::invalid("zone", zone, "Unknown zone.")
        }),
        Scope::Zone(zone) if knobs.unreachable_zones.contains(zone) && !of_itself => Err(
            Refusal::unreachable(&format!("projects/{project}/zones/{zone}")),
        ),
        Scope::Region(region) if !world.has_region(region) => Err(if of_itself {
            Refusal::not_found(&format!("projects/{project}/regions/{region}"))
        } else {
            Refusal::invalid("region", region, "Unknown region.")
        }),
        Scope::Zone(_) | Scope::Region(_) | Scope::Global => Ok(()),
    }
}

impl Call {
    /// The body, as an object of these fields.
    fn body(&self, fields: &[Field]) -> Result<Map<String, Value>, Refusal> {
        body::read(&self.body, fields)
    }

    /// Begins something once, however often this very request comes, and answers its operation.
    fn once(
        &self,
        world: &mut World,
        begin: impl FnOnce(&mut World) -> Result<Seq, Refusal>,
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
            if let Some(before) = world.replay(key, digest)? {
                return show(world, before);
            }
        }
        let operation = begin(world)?;
        if let Some(key) = request {
            world.remember(key, digest, operation);
        }
        show(world, operation)
    }

    /// The same for what can be made to fail: then nothing happens but an operation with the errors.
    fn once_or_fail(
        &self,
        world: &mut World,
        doom: &[Failure],
        begin: impl FnOnce(&mut World) -> Result<Seq, Refusal>,
    ) -> Result<Value, Refusal> {
        self.once(world, |world| {
            if doom.is_empty() {
                return begin(world);
            }
            let what = self.method.name().split_once('.').unwrap_or_default();
            world.fail_later(&self.target, what, doom)
        })
    }

    /// What the record of the call shows.
    pub(crate) fn shown(&self) -> BTreeMap<String, String> {
        let mut shown = self.query.shown();
        let Target {
            project,
            scope,
            name,
        } = &self.target;
        shown.insert("project".to_owned(), project.clone());
        match scope {
            Scope::Zone(zone) => drop(shown.insert("zone".to_owned(), zone.clone())),
            Scope::Region(region) => drop(shown.insert("region".to_owned(), region.clone())),
            Scope::Global => {}
        }
        if !name.is_empty() {
            shown.insert("name".to_owned(), name.clone());
        }
        if let Ok(Value::Object(fields)) = serde_json::from_slice(&self.body) {
            let field =
                |(name, value): (String, Value)| (format!("body.{name}"), value.to_string());
            shown.extend(fields.into_iter().map(field));
        }
        shown
    }
}

fn show(world: &World, operation: Seq) -> Result<Value, Refusal> {
    let operation = world.operations.get(&operation);
    let operation = operation.ok_or_else(Refusal::internal)?;
    Ok(views::operation(world, operation))
}

/// A body without the order in which its fields were written: a client that repeats itself may write
/// them in another one.
fn canonical(body: &[u8]) -> String {
    match serde_json::from_slice::<Value>(body) {
        Ok(mut document) => {
            document.sort_all_objects();
            document.to_string()
        }
        Err(_) => String::from_utf8_lossy(body).into_owned(),
    }
}
