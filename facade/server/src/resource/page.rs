//! Pages of lists.

use fleetwright_identity::PageRequest;
use fleetwright_region::network::{Filter, RecordList};
use fleetwright_store::Key;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::{failure::Failure, http::extract, wire};

/// The position in a list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PageParameters {
    /// The size of the page.
    #[param(minimum = 1, maximum = 500)]
    pub(crate) limit: Option<u32>,
    /// The `next` of the last page.
    #[param(
        min_length = 1,
        max_length = 512,
        pattern = r"^[^\u0000-\u001f\u007f-\u009f]+$"
    )]
    pub(crate) after: Option<String>,
}

impl PageParameters {
    pub(crate) fn request(self) -> Result<PageRequest, Failure> {
        request(self.limit, self.after)
    }
}

pub(crate) fn request(limit: Option<u32>, after: Option<String>) -> Result<PageRequest, Failure> {
    let request = PageRequest::default().limit(extract::limit(limit)?);
    Ok(match after {
        Some(after) => {
            position(&after)?;
            request.after(after)
        }
        None => request,
    })
}

/// A position, which is a key of the store.
fn position(after: &str) -> Result<&str, Failure> {
    Key::new(after).map(|_| after).map_err(|_| not_a_position())
}

/// For a position that no page has returned.
pub(crate) fn not_a_position() -> Failure {
    Failure::invalid("after", "expected the `next` of a page of this list")
}

/// The filters of a list of networks, security groups or certificate authorities.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct RecordParameters {
    /// Only those of this organization.
    #[param(format = "uuid")]
    organization_id: Option<String>,
    /// Only those of this project, with its organization.
    #[param(format = "uuid")]
    project_id: Option<String>,
    /// Only those in this region.
    #[param(max_length = 63, pattern = r"^[0-9a-z](?:[0-9a-z._-]{0,61}[0-9a-z])?$")]
    region_id: Option<String>,
    /// Only those of this network.
    #[param(format = "uuid")]
    network_id: Option<String>,
    /// The size of the page.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u32>,
    /// The `next` of the last page.
    #[param(
        min_length = 1,
        max_length = 512,
        pattern = r"^[^\u0000-\u001f\u007f-\u009f]+$"
    )]
    after: Option<String>,
}

impl RecordParameters {
    pub(crate) fn filter(&self) -> Result<Filter, Failure> {
        let (organization, project) = (self.organization_id.as_deref(), self.project_id.as_deref());
        let mut filter = Filter::within(wire::tenancy::parse_scope(organization, project, "")?);
        if let Some(region) = &self.region_id {
            filter = filter.region(wire::parse("regionId", region)?);
        }
        if let Some(network) = &self.network_id {
            filter = filter.network(wire::parse("networkId", network)?);
        }
        Ok(filter)
    }

    /// One page of a list that is in the order of its keys, and where the next one starts.
    pub(crate) fn page<T, W>(
        &self,
        list: &RecordList<T>,
        convert: impl Fn(&T) -> W,
    ) -> Result<(Vec<W>, Option<String>), Failure> {
        let limit = extract::limit(self.limit)? as usize;
        let after = self.after.as_deref().map(position).transpose()?;
        let after = after.unwrap_or_default();
        // What a newer version of this program wrote is shown as far as it is understood.
        let newer = list
            .newer
            .iter()
            .map(|shown| (shown.key.as_str(), &shown.value));
        let items = list
            .items
            .iter()
            .map(|found| (found.key.as_str(), &found.value));
        let mut all: Vec<_> = items.chain(newer).filter(|(key, _)| *key > after).collect();
        all.sort_by_key(|(key, _)| *key);
        let has_more = all.len() > limit;
        all.truncate(limit);
        let last = all.last().filter(|_| has_more);
        let next = last.map(|(key, _)| (*key).to_owned());
        Ok((
            all.into_iter().map(|(_, value)| convert(value)).collect(),
            next,
        ))
    }
}
