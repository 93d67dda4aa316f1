//! Which instances there are, as far as their reader may see them.

use std::collections::{BTreeMap, BTreeSet};

use fleetwright::Tags;
use fleetwright_identity::{GrantedScopes, OrganizationId, Principal, ProjectId, Resource, Verb};
use fleetwright_region::{
    ids::{NetworkId, RegionId},
    server::Phase,
};
use fleetwright_store::Damaged;

use super::{InstanceView, Instances};
use crate::{
    ComputeError,
    instance::{Instance, InstanceId, Provisioning},
};

/// How many instances a page has at the most.
pub const MAX_PAGE: u32 = 500;
/// How many values a filter of one sort has at the most.
pub const MAX_FILTER: usize = 100;
/// How many records are looked at for one page at the most: then it ends, however few of them were wanted.
const LOOKED_AT: usize = 2000;
/// How many a page has if nobody says.
const USUAL_PAGE: u32 = 100;

/// Which instances are listed: those that fit every filter. An empty one leaves none out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListInstances {
    /// Those that have all these tags.
    pub tags: Tags,
    /// Those of these organizations. One that the caller cannot see has none.
    pub organizations: BTreeSet<OrganizationId>,
    /// Those of these projects.
    pub projects: BTreeSet<ProjectId>,
    /// Those in these regions.
    pub regions: BTreeSet<RegionId>,
    /// Those in these networks.
    pub networks: BTreeSet<NetworkId>,
    /// Those that are so far.
    pub provisioning: BTreeSet<Provisioning>,
    /// Those in these phases.
    pub phases: BTreeSet<Phase>,
    /// At most so many at once: 1 to [`MAX_PAGE`], which is what a larger number means too.
    pub limit: u32,
    /// Only those behind this one: where the last page ended.
    pub after: Option<InstanceId>,
}

impl Default for ListInstances {
    /// All that there are, a hundred at once.
    fn default() -> Self {
        Self {
            tags: Tags::new(),
            organizations: BTreeSet::new(),
            projects: BTreeSet::new(),
            regions: BTreeSet::new(),
            networks: BTreeSet::new(),
            provisioning: BTreeSet::new(),
            phases: BTreeSet::new(),
            limit: USUAL_PAGE,
            after: None,
        }
    }
}

/// Some instances, in the order of their ids. There may be more although a page has few.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct InstancePage {
    /// The instances.
    pub instances: Vec<InstanceView>,
    /// Where to go on; nothing if this page is the last.
    pub next: Option<InstanceId>,
    /// Records that cannot be read, for who sees everything: of such a record it is not known whose it is.
    pub damaged: Vec<Damaged>,
}

impl ListInstances {
    /// Whether an instance is among them.
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
                    problem: format!("{count} are given, and at most {MAX_FILTER} are taken"),
                });
            }
        }
        if self.limit == 0 {
            return Err(ComputeError::BadField {
                field: "limit".to_owned(),
                problem: format!("a page of none is asked for: want 1 to {MAX_PAGE}"),
            });
        }
        Ok(())
    }
}

impl Instances {
    /// A page of the instances that the caller may list, in the order of their ids. What it costs does not grow with the instances
    /// of others. What is written between two pages is in neither, in one or in both, as its id has it; what is there throughout
    /// is in exactly one.
    pub async fn list(
        &self,
        who: &Principal,
        wanted: &ListInstances,
    ) -> Result<InstancePage, ComputeError> {
        self.metered("list", None, self.page(who, wanted)).await
    }

    async fn page(
        &self,
        who: &Principal,
        wanted: &ListInstances,
    ) -> Result<InstancePage, ComputeError> {
        wanted.check()?;
        let reach = who
            .scopes_for(Verb::List, Resource::Instances)
            .map_err(ComputeError::Refused)?;
        let limit = wanted.limit.min(MAX_PAGE);
        let mut walk = self.walk(wanted, &reach, limit).await?;
        let (mut instances, mut pulses) = (Vec::new(), BTreeMap::new());
        let now = self.clock.now();
        let mut last = None;
        let mut looked_at = 0;
        let next = loop {
            let Some(found) = walk.next().await? else {
                break None;
            };
            if instances.len() >= limit as usize || looked_at >= LOOKED_AT {
                break last;
            }
            looked_at += 1;
            last = Some(found.value.id);
            if !wanted.wants(&found.value) || !reach.covers(&found.value.scope()) {
                continue;
            }
            let region = found.value.region.clone();
            if !pulses.contains_key(&region) {
                pulses.insert(region.clone(), self.pulse(&region).await?);
            }
            let pulse = pulses.get(&region).and_then(Option::as_ref);
            instances.push(InstanceView::new(found, pulse, now));
        };
        for damaged in &walk.damaged {
            tracing::warn!(record = %damaged.id, reason = damaged.reason, "an instance cannot be read");
        }
        let damaged = match reach {
            GrantedScopes::Everywhere => walk.damaged,
            GrantedScopes::Within(_) => Vec::new(),
        };
        Ok(InstancePage {
            instances,
            next,
            damaged,
        })
    }
}
