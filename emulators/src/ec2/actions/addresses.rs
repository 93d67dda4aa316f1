//! DescribeAddresses. There are no elastic addresses, so the list is always empty.
//!
//! Ids and filters are still checked as EC2 checks them, so that a client with a wrong one fails
//! here too.

use serde::Serialize;

use super::Call;
use crate::ec2::{
    engine::{
        filter::{self, Filtered},
        record::Tags,
    },
    error::Refusal,
    wire::xml::Set,
};

/// The response.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    /// Always empty.
    addresses_set: Set<()>,
}

/// An elastic address. There is never one; the type only names its filters.
#[derive(Debug)]
enum Address {}

/// Executes DescribeAddresses.
///
/// # Errors
///
/// `InvalidAddress.NotFound` or `InvalidAllocationID.NotFound` for any named address,
/// `InvalidParameterValue` for an unknown filter.
pub(super) fn describe(call: &Call<'_>) -> Result<String, Refusal> {
    let root = call.root();
    let (addresses, allocations) = (root.list("PublicIp"), root.list("AllocationId"));
    let filters = call.filters()?;
    call.finish_read()?;
    filter::check::<Address>(&filters)?;
    if let Some(address) = addresses.first() {
        let message = format!("Address '{address}' not found.");
        return Err(Refusal::client("InvalidAddress.NotFound", message));
    }
    if let Some(id) = allocations.first() {
        let message = format!("The allocation ID '{id}' does not exist");
        return Err(Refusal::client("InvalidAllocationID.NotFound", message));
    }
    call.respond(&Response {
        addresses_set: Set::default(),
    })
}

impl Filtered for Address {
    /// The filters that EC2 has for addresses.
    const NAMES: &'static [&'static str] = &[
        "allocation-id",
        "association-id",
        "domain",
        "instance-id",
        "network-interface-id",
        "private-ip-address",
        "public-ip",
    ];

    fn values(&self, _name: &str) -> Vec<String> {
        match *self {}
    }

    fn tags(&self) -> Option<&Tags> {
        match *self {}
    }
}
