//! Deleting projects and organizations: closed in one transaction that checks that they are empty, then removed with their bindings and
//! their quota account.
//!
//! The first transaction is the deletion: from then on nothing can be created in the scope, and the entry is in the audit log. The rest
//! removes what only the deleted record needed. If it is interrupted, a repeated call or [`Tenancy::finish_deletions`] continues it.

use fleetwright_store::{Document, IndexName, Key, StoreError, Table, Transaction, Versioned};

use super::{
    ATTEMPTS, Tenancy, TenancyError, TenantState,
    contents::is_not_empty,
    record::{self, Closable},
};
use crate::{
    Account, AuditEvent, OrganizationId, Principal, ProjectId, Scope, Verb, account::AccountRecord,
};

/// How many bindings one transaction removes.
const BINDINGS_AT_ONCE: u32 = 100;

impl Tenancy {
    /// Deletes a project that contains nothing, with its role bindings and its quota account.
    ///
    /// # Errors
    ///
    /// [`NotEmpty`](TenancyError::NotEmpty) with the numbers of what it contains, as far as the caller may list it; or it does not exist,
    /// is not visible, or the caller may not delete it.
    pub async fn delete_project(
        &self,
        principal: &Principal,
        organization: OrganizationId,
        id: ProjectId,
    ) -> Result<(), TenancyError> {
        let find = || self.find_project(principal, Verb::Delete, organization, id);
        let scope = Scope::Project(organization, id);
        self.close(principal, scope, &self.projects, find).await?;
        Ok(self
            .remove_closed(
                &scope,
                &self.projects,
                &record::project_key(organization, id)?,
            )
            .await?)
    }

    /// Deletes an organization that has no project and contains nothing, with its role bindings and its quota account. Its audit log stays.
    ///
    /// # Errors
    ///
    /// As [`delete_project`](Self::delete_project).
    pub async fn delete_organization(
        &self,
        principal: &Principal,
        id: OrganizationId,
    ) -> Result<(), TenancyError> {
        let find = || self.find_organization(principal, Verb::Delete, id);
        let scope = Scope::Organization(id);
        self.close(principal, scope, &self.organizations, find)
            .await?;
        let key = record::organization_key(id)?;
        Ok(self
            .remove_closed(&scope, &self.organizations, &key)
            .await?)
    }

    /// Continues the deletions that were interrupted, and returns how many. For a loop; it costs one read per kind if there are none.
    ///
    /// # Errors
    ///
    /// The store fails. The next call continues.
    pub async fn finish_deletions(&self) -> Result<usize, StoreError> {
        let index = IndexName::new(record::STATE_INDEX)?;
        let deleting = TenantState::Deleting.as_str();
        let projects = self.projects.by(&index, deleting);
        let projects = self.projects.list(&projects).await?.items;
        for found in &projects {
            let scope = found.value.scope();
            self.remove_closed(&scope, &self.projects, &found.key)
                .await?;
        }
        let organizations = self.organizations.by(&index, deleting);
        let organizations = self.organizations.list(&organizations).await?.items;
        for found in &organizations {
            let scope = Scope::Organization(found.value.id);
            self.remove_closed(&scope, &self.organizations, &found.key)
                .await?;
        }
        Ok(projects.len() + organizations.len())
    }

    /// Closes an empty scope. Nothing happens if it is closed already.
    async fn close<T, F>(
        &self,
        principal: &Principal,
        scope: Scope,
        table: &Table<T>,
        find: impl Fn() -> F,
    ) -> Result<(), TenancyError>
    where
        T: Closable,
        F: Future<Output = Result<Versioned<T>, TenancyError>>,
    {
        for _ in 0..ATTEMPTS {
            let found = find().await?;
            let Some(closed) = found.value.closed() else {
                return Ok(());
            };
            let mut transaction = table.replace(Transaction::new(), &found, &closed)?;
            transaction.checks.extend(self.checks_empty(&scope)?);
            let id = found.value.id();
            let event = AuditEvent::new(principal.actor(), Verb::Delete, T::RESOURCE, &id, scope);
            let transaction = self
                .audit
                .add(transaction, &event.named(found.value.name()))?;
            match self.store.commit(&transaction).await {
                Ok(_) => return Ok(()),
                Err(error) if is_not_empty(&error) => {
                    return Err(TenancyError::NotEmpty {
                        what: T::KIND,
                        id,
                        remaining: self.remaining(principal, &scope).await?,
                    });
                }
                Err(error) if error.conflict().is_some() => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(TenancyError::Busy {
            what: T::KIND,
            id: record::place(&scope),
        })
    }

    /// Removes the bindings, the quota account and the record of a closed scope. It needs no checks: nothing is added to a closed scope.
    async fn remove_closed<T: Document>(
        &self,
        scope: &Scope,
        table: &Table<T>,
        key: &Key,
    ) -> Result<(), StoreError> {
        let index = IndexName::new(record::PLACE_INDEX)?;
        let place = record::place(scope);
        loop {
            let query = self
                .bindings
                .by(&index, place.as_str())
                .limit(BINDINGS_AT_ONCE);
            let page = self.bindings.list(&query).await?;
            let mut transaction = Transaction::new();
            let readable = page.items.iter().map(|found| self.bindings.id(&found.key));
            for id in readable.chain(page.damaged.iter().map(|damaged| damaged.id.clone())) {
                transaction = transaction.delete(id);
            }
            let is_last = page.next.is_none();
            if is_last {
                let account = match scope {
                    Scope::Global => None,
                    Scope::Organization(organization) => Some(Account::Organization(*organization)),
                    Scope::Project(organization, project) => {
                        Some(Account::Project(*organization, *project))
                    }
                };
                if let Some(account) = account {
                    transaction = transaction.delete(AccountRecord::id(&account)?);
                }
                transaction = transaction.delete(table.id(key));
            }
            self.store.commit(&transaction).await?;
            if is_last {
                return Ok(());
            }
        }
    }
}
