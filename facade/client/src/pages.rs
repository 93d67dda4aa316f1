//! Whole lists as streams: the next page is read when the items of the last one are used up.

use std::{future::Future, vec};

use fleetwright_api::{
    AuditEntry, InstanceSummary, Network, Organization, Project, RoleBinding, Scope, SecurityGroup,
    SshAuthority,
};
use futures_util::{StreamExt as _, stream, stream::BoxStream};

use crate::{AuditFilter, Client, Error, InstanceFilter, RecordFilter};

/// The items of a page, and where the next page starts.
type Page<T> = (Vec<T>, Option<String>);

/// Whole lists. The streams end after an error.
impl Client {
    /// All instances that a filter accepts, in the order of their ids.
    pub fn instances(
        &self,
        filter: &InstanceFilter,
    ) -> BoxStream<'static, Result<InstanceSummary, Error>> {
        let (client, filter) = (self.clone(), filter.clone());
        all(move |after| {
            let (client, filter) = (client.clone(), filter.clone());
            async move {
                let page = client.list_instances(&filter, after.as_deref()).await?;
                Ok((page.items, page.next))
            }
        })
    }

    /// All networks that a filter accepts, in the order of their ids.
    pub fn networks(&self, filter: &RecordFilter) -> BoxStream<'static, Result<Network, Error>> {
        let (client, filter) = (self.clone(), filter.clone());
        all(move |after| {
            let (client, filter) = (client.clone(), filter.clone());
            async move {
                let page = client.list_networks(&filter, after.as_deref()).await?;
                Ok((page.items, page.next))
            }
        })
    }

    /// All security groups that a filter accepts, in the order of their ids.
    pub fn security_groups(
        &self,
        filter: &RecordFilter,
    ) -> BoxStream<'static, Result<SecurityGroup, Error>> {
        let (client, filter) = (self.clone(), filter.clone());
        all(move |after| {
            let (client, filter) = (client.clone(), filter.clone());
            async move {
                let page = client
                    .list_security_groups(&filter, after.as_deref())
                    .await?;
                Ok((page.items, page.next))
            }
        })
    }

    /// All certificate authorities that a filter accepts, in the order of their ids.
    pub fn ssh_authorities(
        &self,
        filter: &RecordFilter,
    ) -> BoxStream<'static, Result<SshAuthority, Error>> {
        let (client, filter) = (self.clone(), filter.clone());
        all(move |after| {
            let (client, filter) = (client.clone(), filter.clone());
            async move {
                let page = client
                    .list_ssh_authorities(&filter, after.as_deref())
                    .await?;
                Ok((page.items, page.next))
            }
        })
    }

    /// All organizations that the caller may read.
    pub fn organizations(&self) -> BoxStream<'static, Result<Organization, Error>> {
        let client = self.clone();
        all(move |after| {
            let client = client.clone();
            async move {
                let page = client.list_organizations(after.as_deref()).await?;
                Ok((page.items, page.next))
            }
        })
    }

    /// All projects of an organization that the caller may read.
    pub fn projects(&self, organization: &str) -> BoxStream<'static, Result<Project, Error>> {
        let (client, organization) = (self.clone(), organization.to_owned());
        all(move |after| {
            let (client, organization) = (client.clone(), organization.clone());
            async move {
                let page = client
                    .list_projects(&organization, after.as_deref())
                    .await?;
                Ok((page.items, page.next))
            }
        })
    }

    /// All role bindings of a scope.
    pub fn role_bindings(&self, scope: &Scope) -> BoxStream<'static, Result<RoleBinding, Error>> {
        let (client, scope) = (self.clone(), scope.clone());
        all(move |after| {
            let (client, scope) = (client.clone(), scope.clone());
            async move {
                let page = client.list_role_bindings(&scope, after.as_deref()).await?;
                Ok((page.items, page.next))
            }
        })
    }

    /// All entries of the audit log that a filter accepts, oldest first.
    pub fn audit_log(&self, filter: &AuditFilter) -> BoxStream<'static, Result<AuditEntry, Error>> {
        let (client, filter) = (self.clone(), filter.clone());
        all(move |after| {
            let (client, filter) = (client.clone(), filter.clone());
            async move {
                let page = client.list_audit_log(&filter, after.as_deref()).await?;
                Ok((page.items, page.next))
            }
        })
    }
}

/// Where a list is.
enum Position<T> {
    /// The items of a page that are left, and where the next page starts.
    In(vec::IntoIter<T>, Next),
    Ended,
}

enum Next {
    Page(Option<String>),
    None,
}

/// All items of a list, whose pages `read` returns.
fn all<T, F, P>(read: F) -> BoxStream<'static, Result<T, Error>>
where
    T: Send + 'static,
    F: Fn(Option<String>) -> P + Send + 'static,
    P: Future<Output = Result<Page<T>, Error>> + Send + 'static,
{
    let start = Position::In(Vec::new().into_iter(), Next::Page(None));
    stream::unfold((read, start), |(read, mut position)| async move {
        loop {
            let Position::In(mut items, next) = position else {
                return None;
            };
            if let Some(item) = items.next() {
                return Some((Ok(item), (read, Position::In(items, next))));
            }
            let Next::Page(after) = next else { return None };
            match read(after.clone()).await {
                // A page without items can have a next one.
                Ok((_, Some(next))) if after.as_ref() == Some(&next) => {
                    let problem = format!("the page after {next:?} names itself as the next one");
                    return Some((
                        Err(Error::invalid("list", problem)),
                        (read, Position::Ended),
                    ));
                }
                Ok((items, next)) => {
                    let next = next.map_or(Next::None, |next| Next::Page(Some(next)));
                    position = Position::In(items.into_iter(), next);
                }
                Err(error) => return Some((Err(error), (read, Position::Ended))),
            }
        }
    })
    .boxed()
}
