//! DescribeVolumes and DescribeNetworkInterfaces.
//!
//! Reads of volumes and interfaces never lag.

use serde::Serialize;

use super::{
    Call,
    view_nic::{NicContext, network_interface},
};
use crate::ec2::{
    engine::{
        Engine,
        filter::Filter,
        page::PageRequest,
        read::check_ids,
        storage::Volume,
        tags::{nic_not_found, volume_not_found},
    },
    error::Refusal,
    shapes::{storage as shape, tag_set},
    wire::xml::Set,
};

/// The response of DescribeVolumes.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Volumes {
    /// The volumes.
    volume_set: Set<shape::Volume>,
    /// The token of the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_token: Option<String>,
}

/// Describes volumes by id and filters.
///
/// # Errors
///
/// `InvalidVolume.NotFound` or `InvalidVolumeID.Malformed` for an id,
/// `InvalidParameterCombination` for ids together with page parameters.
pub(super) fn volumes(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let ids = call.root().list("VolumeId");
    let mut filters = call.filters()?;
    let (mut paging, paged) = call.paging(engine)?;
    call.finish_read()?;
    check_ids(&ids, "vol", "InvalidVolumeID.Malformed")?;
    if let Some(id) = ids.iter().find(|id| engine.volume(id).is_none()) {
        return Err(volume_not_found(id));
    }
    by_ids(&mut filters, "volume-id", ids, &mut paging, paged)?;
    let page = engine.volumes_page(&filters, &paging)?;
    call.respond(&Volumes {
        volume_set: page
            .items
            .into_iter()
            .map(|volume| volume_shape(engine, volume))
            .collect(),
        next_token: call.next_token(page.next),
    })
}

/// Turns ids into a filter. Ids cannot be combined with page parameters, and all of them fit on
/// one page.
///
/// # Errors
///
/// `InvalidParameterCombination`
fn by_ids(
    filters: &mut Vec<Filter>,
    name: &str,
    ids: Vec<String>,
    paging: &mut PageRequest,
    paged: bool,
) -> Result<(), Refusal> {
    if ids.is_empty() {
        return Ok(());
    }
    if paged {
        let message = format!("The parameter {name} cannot be used with the parameter maxResults");
        return Err(Refusal::combination(message));
    }
    paging.limit = usize::MAX;
    filters.push(Filter {
        name: name.to_owned(),
        values: ids,
    });
    Ok(())
}

/// Returns a volume as EC2 returns it: `in-use` while attached, else `available`. A `gp3` volume
/// has 3000 IOPS and 125 MiB per second by default (Amazon EBS user guide, "General Purpose SSD volumes").
pub(super) fn volume_shape(engine: &Engine, volume: Volume) -> shape::Volume {
    let Volume {
        id,
        zone,
        device,
        created,
        tags,
        attached_to,
        attached,
        modified: _,
    } = volume;
    let stamp = engine.stamp(created);
    shape::Volume {
        size: device.gib,
        snapshot_id: device.snapshot.unwrap_or_default(),
        availability_zone: zone,
        status: if attached_to.is_some() {
            "in-use"
        } else {
            "available"
        },
        create_time: stamp,
        attachment_set: attached_to
            .into_iter()
            .map(|instance_id| shape::VolumeAttachment {
                volume_id: id.clone(),
                instance_id,
                device: device.name.clone(),
                status: "attached",
                attach_time: engine.stamp(attached),
                delete_on_termination: device.delete_on_termination,
            })
            .collect(),
        tag_set: tag_set(&tags),
        iops: device
            .iops
            .or_else(|| (device.kind == "gp3").then_some(3000)),
        throughput: device
            .throughput
            .or_else(|| (device.kind == "gp3").then_some(125)),
        volume_type: device.kind,
        encrypted: device.encrypted,
        multi_attach_enabled: false,
        volume_id: id,
    }
}

/// The response of DescribeNetworkInterfaces.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Nics {
    /// The network interfaces.
    network_interface_set: Set<shape::NetworkInterface>,
    /// The token of the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_token: Option<String>,
}

/// Describes network interfaces by id and filters.
///
/// # Errors
///
/// `InvalidNetworkInterfaceID.NotFound` or `InvalidNetworkInterfaceId.Malformed` for an id,
/// `InvalidParameterCombination` for ids together with page parameters.
pub(super) fn nics(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let ids = call.root().list("NetworkInterfaceId");
    let mut filters = call.filters()?;
    let (mut paging, paged) = call.paging(engine)?;
    call.finish_read()?;
    check_ids(&ids, "eni", "InvalidNetworkInterfaceId.Malformed")?;
    if let Some(id) = ids.iter().find(|id| engine.nic(id).is_none()) {
        return Err(nic_not_found(id));
    }
    by_ids(
        &mut filters,
        "network-interface-id",
        ids,
        &mut paging,
        paged,
    )?;
    let page = engine.nics_page(&filters, &paging)?;
    let volume_shape = page.items.iter().map(|nic| {
        let instance = nic
            .attached_to
            .as_deref()
            .and_then(|id| engine.instance(id));
        let public = instance.and_then(|instance| instance.current().public_ip);
        network_interface(engine, nic, public, NicContext::Standalone)
    });
    call.respond(&Nics {
        network_interface_set: volume_shape.collect(),
        next_token: call.next_token(page.next),
    })
}
