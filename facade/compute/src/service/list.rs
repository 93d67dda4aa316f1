//! Listing the instances that the caller may see, in pages ordered by id.

use std::collections::{BTreeMap, BTreeSet};

use fleetwright::Tags;
use fleetwright_identity::{GrantedScopes, OrganizationId, Principal, ProjectId, Resource, Verb};
use fleetwright_region::{
    ids::{NetworkId, RegionId},
    server::Phase,
};
use fleetwright_store::Damaged;

use super::{InstanceView, Instances, ListedInstance, summary::ListAccess};
use crate::{
    ComputeError,
    instance::{Instance, InstanceId, Provisioning},
};

/// The largest page: 500 instances.
pub const MAX_PAGE: u32 = 500;
/// The most values that one filter of a list takes: 100.
pub const MAX_FILTER: usize = 100;
/// The most records that are examined for one page. Then the page ends, however few of them match.
const MAX_EXAMINED: usize = 2000;
/// The default size of a page.
const DEFAULT_PAGE: u32 = 100;

/// The filters and the position of a list. An instance is listed if it matches every filter; an empty filter matches every instance.
///
/// ```
/// use fleetwright_compute::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut wanted = ListInstances::default();
/// wanted.regions.insert("north".parse()?);
/// wanted.phases.extend([Phase::Running, Phase::Stopped]);
/// wanted.tags = Tags::new().with("team", "shop")?;
/// assert_eq!(wanted.limit, 100);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListInstances {
    /// Instances that have all these tags.
    pub tags: Tags,
    /// Instances of these organizations. One that is not visible to the caller has none.
    pub organizations: BTreeSet<OrganizationId>,
    /// Instances of these projects.
    pub projects: BTreeSet<ProjectId>,
    /// Instances in these regions.
    pub regions: BTreeSet<RegionId>,
    /// Instances in these networks.
    pub networks: BTreeSet<NetworkId>,
    /// Instances with this progress.
    pub provisioning: BTreeSet<Provisioning>,
    /// Instances in these phases.
    pub phases: BTreeSet<Phase>,
    /// The size of the page, from 1 to [`MAX_PAGE`]; a larger number means `MAX_PAGE`. Default: 100.
    pub limit: u32,
    /// Only instances with a greater id: pass the [`next`](InstancePage::next) of the last page. Default: `None`, from the start.
    pub after: Option<InstanceId>,
}

impl Default for ListInstances {
    /// Every visible instance, 100 per page.
    fn default() -> Self {
        Self {
            tags: Tags::new(),
            organizations: BTreeSet::new(),
            projects: BTreeSet::new(),
            regions: BTreeSet::new(),
            networks: BTreeSet::new(),
            provisioning: BTreeSet::new(),
            phases: BTreeSet::new(),
            limit: DEFAULT_PAGE,
            after: None,
        }
    }
}

/// A page of instances, in the order of their ids. Only [`next`](Self::next) says whether more exist: a page can be short or empty before the last
/// one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct InstancePage {
    /// The instances.
    pub instances: Vec<ListedInstance>,
    /// Where the next page starts, or `None` if this page is the last.
    pub next: Option<InstanceId>,
    /// Records that cannot be read. Only for callers that may list everything, since the tenant of such a record is not known.
    pub damaged: Vec<Damaged>,
}

impl ListInstances {
    /// Whether an instance matches every filter.
    pub fn wants(&self, instance: &Instance) -> bool {
        fn among<T: Ord>(set: &BTreeSet<T>, value: &T) -> bool {
            set.is_empty() || set.contains(value)
        }
        instance.tags.contains_all(&self.tags)
            && among(&self.organizations, &instance.organization)
            && among(&self.projects, &instance.project)
            && among(&self.regions, &instance.region)
            && among(&self.networks, &instance.network)
            && among(&self.provisioning, &instance.provisioning())
            && among(&self.phases, &instance.status.phase)
    }

    fn check(&self) -> Result<(), ComputeError> {
        let counts = [
            ("tag", self.tags.len()),
            ("organizationID", self.organizations.len()),
            ("projectID", self.projects.len()),
            ("regionID", self.regions.len()),
            ("networkID", self.networks.len()),
        ];
        for (field, count) in counts {
            if count > MAX_FILTER {
                return Err(ComputeError::BadField {
                    field: field.to_owned(),
                    problem: format!(
                        "{count} values are too many: at most {MAX_FILTER} are allowed"
                    ),
                });
            }
        }
        if self.limit == 0 {
            return Err(ComputeError::BadField {
                field: "limit".to_owned(),
                problem: format!("a page of 0 is not possible: use 1 to {MAX_PAGE}"),
            });
        }
        Ok(())
    }
}

impl Instances {
    /// Returns a page of the instances that the caller may list, in the order of their ids.
    ///
    /// No page has user data or events, whoever lists: [`read`](Self::read) returns them.
    ///
    /// An instance that exists during the whole list is on exactly one page. One that is created or deleted meanwhile may or may not be
    /// listed. The cost does not grow with the number of other tenants' instances.
    ///
    /// ```no_run
    /// use fleetwright_compute::prelude::*;
    ///
    /// # async fn example(instances: &Instances, ada: &Principal) -> Result<(), ComputeError> {
    /// let mut wanted = ListInstances::default();
    /// loop {
    ///     let page = instances.list(ada, &wanted).await?;
    ///     for view in &page.instances {
    ///         println!("{} {:?}", view.instance.name, view.provisioning);
    ///     }
    ///     let Some(next) = page.next else { break };
    ///     wanted.after = Some(next);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`BadField`](ComputeError::BadField) if a filter has more than [`MAX_FILTER`] values or the limit is 0;
    /// [`Refused`](ComputeError::Refused) if the caller may list instances nowhere.
    pub async fn list(
        &self,
        principal: &Principal,
        wanted: &ListInstances,
    ) -> Result<InstancePage, ComputeError> {
        self.measure("list", None, self.page(principal, wanted))
            .await
    }

    async fn page(
        &self,
        principal: &Principal,
        wanted: &ListInstances,
    ) -> Result<InstancePage, ComputeError> {
        wanted.check()?;
        let scopes = principal
            .scopes_for(Verb::List, Resource::Instances)
            .map_err(ComputeError::Refused)?;
        let limit = wanted.limit.min(MAX_PAGE);
        let mut merged = self.merge_ranges(wanted, &scopes, limit).await?;
        let (mut instances, mut scans) = (Vec::new(), BTreeMap::new());
        let now = self.clock.now();
        let mut last = None;
        let mut examined = 0;
        let next = loop {
            let Some(found) = merged.next().await? else {
                break None;
            };
            if instances.len() >= limit as usize || examined >= MAX_EXAMINED {
                break last;
            }
            examined += 1;
            last = Some(found.value.id);
            if !wanted.wants(&found.value) || !scopes.covers(&found.value.scope()) {
                continue;
            }
            let region = found.value.region.clone();
            if !scans.contains_key(&region) {
                scans.insert(region.clone(), self.region_scan(&region).await?);
            }
            let scan = scans.get(&region).and_then(Option::as_ref);
            let readable =
                principal.authorize(Verb::Read, Resource::Instances, &found.value.scope());
            let access = readable.map_or(ListAccess::ListOnly, |()| ListAccess::Read);
            let unknown = merged.unknown.remove(&found.key).unwrap_or_default();
            let view = InstanceView::new(found, scan, now).with_unknown(unknown);
            instances.push(ListedInstance::new(view, access));
        };
        for damaged in &merged.damaged {
            tracing::warn!(record = %damaged.id, reason = damaged.reason, "an instance cannot be read");
        }
        let damaged = match scopes {
            GrantedScopes::Everywhere => merged.damaged,
            GrantedScopes::Within(_) => Vec::new(),
        };
        Ok(InstancePage {
            instances,
            next,
            damaged,
        })
    }
}
