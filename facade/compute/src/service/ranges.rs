//! The index ranges that a list reads, each in the order of ids, and their merge into one sequence.
//!
//! A range has one exact value under its index, so it is ordered by its records' keys; a list that starts after an id starts there in
//! each range. Instances that are not visible to the caller are in no range.

use std::collections::{BTreeMap, BTreeSet};

use fleetwright_identity::{GrantedScopes, OrganizationId, ProjectId, Scope};
use fleetwright_region::network::RecordError;
use fleetwright_store::{
    Cursor, Damaged, IndexName, IndexValue, Key, Query, Store as _, TypedPage, Versioned,
};

use super::{Instances, ListInstances};
use crate::{
    ComputeError,
    instance::Instance,
    schema::{ORGANIZATION_INDEX, PROJECT_INDEX, REGION_INDEX},
};

/// The fewest records that are read of a range at once.
const MIN_READ: u32 = 8;

/// One range, with the records that were read ahead.
pub(super) struct Source {
    query: Query,
    /// Records that were read and not returned yet, in reverse order.
    read: Vec<Versioned<Instance>>,
    next: Next,
}

enum Next {
    Page(Option<Cursor>),
    End,
}

/// Ranges that are merged by id.
pub(super) struct MergedRanges<'a> {
    instances: &'a Instances,
    sources: Vec<Source>,
    pub(super) damaged: Vec<Damaged>,
    /// The places that this version does not understand, of the instances that it returns nevertheless, to be shown.
    pub(super) unknown: BTreeMap<Key, Vec<String>>,
}

impl<'a> MergedRanges<'a> {
    /// Returns the instance with the next id of all ranges, or `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Versioned<Instance>>, ComputeError> {
        for source in &mut self.sources {
            while let (true, Next::Page(cursor)) = (source.read.is_empty(), &source.next) {
                let mut query = source.query.clone();
                query.after.clone_from(cursor);
                let mut page = self.instances.table.list(&query).await?;
                let newer = page.take_newer();
                let TypedPage {
                    mut items,
                    damaged,
                    next,
                    ..
                } = page;
                for shown in newer {
                    self.unknown.insert(shown.key.clone(), shown.unknown);
                    items.push(Versioned::created(shown.key, shown.revision, shown.value));
                }
                self.damaged.extend(damaged);
                items.sort_by(|one, two| two.key.cmp(&one.key));
                for item in items {
                    match self.instances.check_id(item) {
                        Ok(item) => source.read.push(item),
                        Err(damaged) => self.damaged.push(damaged),
                    }
                }
                source.next = next.map_or(Next::End, |cursor| Next::Page(Some(cursor)));
            }
        }
        let heads = self.sources.iter().enumerate();
        let heads = heads.filter_map(|(at, source)| Some((&source.read.last()?.key, at)));
        let first = heads.min().map(|(_, at)| at);
        Ok(first.and_then(|at| self.sources[at].read.pop()))
    }
}

impl Instances {
    /// Merges the ranges that contain every wanted and visible instance after an id.
    pub(super) async fn merge_ranges<'a>(
        &'a self,
        wanted: &ListInstances,
        scopes: &GrantedScopes,
        limit: u32,
    ) -> Result<MergedRanges<'a>, ComputeError> {
        let after = wanted.after.map(|id| id.key()).transpose()?;
        let ranges = self.ranges(wanted, scopes).await?;
        let share = limit / u32::try_from(ranges.len()).unwrap_or(u32::MAX).max(1);
        // One more than the page has shows whether another page follows.
        let page_size = share.max(MIN_READ).saturating_add(1);
        let mut sources = Vec::new();
        for (index, value) in ranges {
            let mut query = self.table.by(&index, value.clone()).limit(page_size);
            if let Some(key) = &after {
                query.after = Some(self.cursor_after(&query, key.clone(), &value)?);
            }
            sources.push(source(query));
        }
        let narrowed = !wanted.networks.is_empty() || !wanted.regions.is_empty();
        let all = matches!(scopes, GrantedScopes::Everywhere) && wanted.organizations.is_empty();
        if all && !narrowed {
            let mut query = self.table.all().limit(page_size);
            if let Some(key) = after {
                query.after = Some(query.plan(self.store.schema())?.cursor_after(key, None));
            }
            sources.push(source(query));
        }
        Ok(MergedRanges {
            instances: self,
            sources,
            damaged: Vec::new(),
            unknown: BTreeMap::new(),
        })
    }

    /// A cursor in a range after a key, at which no page has ended.
    fn cursor_after(
        &self,
        query: &Query,
        key: Key,
        value: &IndexValue,
    ) -> Result<Cursor, ComputeError> {
        let plan = query.plan(self.store.schema())?;
        Ok(plan.cursor_after(key, Some(value.encoded()?)))
    }

    async fn ranges(
        &self,
        wanted: &ListInstances,
        scopes: &GrantedScopes,
    ) -> Result<Vec<(IndexName, IndexValue)>, ComputeError> {
        if !wanted.networks.is_empty() {
            return self.by_networks(wanted, scopes).await;
        }
        let scopes: BTreeSet<Scope> = match scopes {
            GrantedScopes::Everywhere if wanted.organizations.is_empty() => {
                let regions = wanted.regions.iter();
                let index = IndexName::new(REGION_INDEX)?;
                let each = regions.map(|region| (index.clone(), region.as_str().into()));
                return Ok(each.collect());
            }
            GrantedScopes::Everywhere => {
                let organizations = wanted.organizations.iter();
                organizations.copied().map(Scope::Organization).collect()
            }
            GrantedScopes::Within(scopes) => scopes.clone(),
        };
        let (by_organization, by_project) = (
            IndexName::new(ORGANIZATION_INDEX)?,
            IndexName::new(PROJECT_INDEX)?,
        );
        let mut ranges = Vec::new();
        for scope in narrowed(scopes, wanted) {
            ranges.push(match scope {
                Scope::Global => continue,
                Scope::Organization(organization) => {
                    let value = organization.to_string();
                    (by_organization.clone(), value.into())
                }
                Scope::Project(organization, project) => {
                    let value = [organization.to_string(), project.to_string()];
                    (by_project.clone(), value.into())
                }
            });
        }
        Ok(ranges)
    }

    /// One range for each visible network. All instances in a network are of its project, so the index of a network outside the
    /// caller's scopes is not read at all.
    async fn by_networks(
        &self,
        wanted: &ListInstances,
        scopes: &GrantedScopes,
    ) -> Result<Vec<(IndexName, IndexValue)>, ComputeError> {
        let (_, index) = crate::schema::INSTANCE_NETWORK.names()?;
        let mut ranges = Vec::new();
        for network in &wanted.networks {
            let visible = match scopes {
                GrantedScopes::Everywhere => true,
                GrantedScopes::Within(_) => {
                    match self.networks.get(&self.service, *network).await {
                        Ok(found) => {
                            let found = found.value;
                            scopes.covers(&Scope::Project(found.organization, found.project))
                        }
                        Err(RecordError::NotFound { .. }) => false,
                        Err(error) => return Err(error.into()),
                    }
                }
            };
            if visible {
                ranges.push((index.clone(), network.to_string().into()));
            }
        }
        Ok(ranges)
    }
}

fn source(query: Query) -> Source {
    let next = Next::Page(query.after.clone());
    Source {
        query,
        read: Vec::new(),
        next,
    }
}

/// Narrows the caller's scopes to the wanted organizations and projects.
fn narrowed(scopes: BTreeSet<Scope>, wanted: &ListInstances) -> BTreeSet<Scope> {
    let has_organization =
        |id: OrganizationId| wanted.organizations.is_empty() || wanted.organizations.contains(&id);
    let has_project = |id: ProjectId| wanted.projects.is_empty() || wanted.projects.contains(&id);
    let mut found = BTreeSet::new();
    for scope in scopes {
        match scope {
            Scope::Global => {}
            Scope::Project(organization, project) => {
                if has_organization(organization) && has_project(project) {
                    found.insert(scope);
                }
            }
            Scope::Organization(organization) if !has_organization(organization) => {}
            Scope::Organization(organization) => {
                // Each becomes a range of its own: there are few, since both filters have a limit.
                let projects = wanted.projects.iter();
                let each = projects.map(|project| Scope::Project(organization, *project));
                found.extend(each);
                if wanted.projects.is_empty() {
                    found.insert(scope);
                }
            }
        }
    }
    found
}
