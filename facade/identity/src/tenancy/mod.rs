//! Organizations, their projects, and the bindings of roles to actors, as records.
//!
//! Owns these records and the rules about them: names are unique in their scope, nothing is created in a project or organization that
//! does not exist or is being deleted, nobody grants more than they have, and an organization keeps an administrator. Every call takes the
//! caller's principal, and adds an entry to the [audit log](crate::AuditLog) in the transaction of its change. It never deletes what is in
//! a project: a project with contents is not deleted.

mod binding;
mod contents;
mod delete;
mod error;
mod grant;
mod organization;
mod project;
pub(crate) mod record;
mod resolve;
mod show;

use std::{fmt, sync::Arc};

use fleetwright_runtime::{clock::Clock, entropy::Entropy};
use fleetwright_store::{
    Check, Invalid, Key, Part, RecordId, Store, StoreError, Table, Transaction, Versioned,
};

pub use binding::NewRoleBinding;
pub use contents::{Content, Remaining};
pub use error::{ScopeClosed, TenancyError};
pub use organization::NewOrganization;
pub use project::NewProject;
pub use record::{Organization, Project, RoleBinding, RoleBindingId, TenantState};
pub use resolve::ResolvedPrincipal;

use self::record::Closable;
use crate::{Access, AuditEvent, AuditLog, Principal, Roles, Scope, Verb};

/// How often a call is tried when others write the same records.
const ATTEMPTS: usize = 8;

/// The service of organizations, projects and role bindings. Clones share everything.
///
/// ```
/// use std::sync::Arc;
/// use fleetwright_identity::{
///     Actor, ActorName, AuditLog, NewOrganization, NewProject, NewRoleBinding, Resource, RoleName, Roles, Scope, Tenancy, TenantName,
///     Verb, schema,
/// };
/// use fleetwright_runtime::{clock::SystemClock, entropy::OsEntropy};
/// use fleetwright_store::{MemoryStore, Schema};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = Arc::new(MemoryStore::new(schema(Schema::builder()).build()?));
/// let audit = AuditLog::new(store.clone(), Arc::new(SystemClock), Arc::new(OsEntropy))?;
/// let tenancy = Tenancy::new(store, Arc::new(Roles::built_in()), audit)?;
///
/// // The operator names the first administrator, once.
/// let olga = Actor::User(ActorName::new("olga")?);
/// tenancy.bootstrap(&olga).await?;
/// let olga = tenancy.principal(&olga).await?.principal;
///
/// // She creates an organization and its administrator, who creates the rest.
/// let acme = tenancy.create_organization(&olga, &NewOrganization::new(TenantName::new("acme")?)).await?.id;
/// let admin = RoleName::new("organization-administrator")?;
/// let ada = Actor::User(ActorName::new("ada")?);
/// tenancy.bind(&olga, &NewRoleBinding::new(ada.clone(), admin, Scope::Organization(acme))).await?;
/// let ada = tenancy.principal(&ada).await?.principal;
///
/// let web = tenancy.create_project(&ada, &NewProject::new(acme, TenantName::new("web")?)).await?.id;
/// let scope = Scope::Project(acme, web);
/// let bob = Actor::User(ActorName::new("bob")?);
/// tenancy.bind(&ada, &NewRoleBinding::new(bob.clone(), RoleName::new("project-user")?, scope)).await?;
/// tenancy.principal(&bob).await?.principal.authorize(Verb::Create, Resource::Instances, &scope)?;
///
/// // Nobody grants more than they have.
/// let root = NewRoleBinding::new(bob, RoleName::new("platform-administrator")?, Scope::Global);
/// assert!(tenancy.bind(&ada, &root).await.is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Tenancy {
    store: Arc<dyn Store>,
    organizations: Table<Organization>,
    projects: Table<Project>,
    bindings: Table<RoleBinding>,
    roles: Arc<Roles>,
    audit: AuditLog,
    contents: Arc<[Content]>,
}

impl Tenancy {
    /// Opens the service over a store, with the roles of the installation. The audit log must be on the same store.
    ///
    /// # Errors
    ///
    /// The store's schema lacks a kind of [`schema`](crate::schema()).
    pub fn new(store: Arc<dyn Store>, roles: Arc<Roles>, audit: AuditLog) -> Result<Self, Invalid> {
        Ok(Self {
            organizations: Table::new(Arc::clone(&store))?,
            projects: Table::new(Arc::clone(&store))?,
            bindings: Table::new(Arc::clone(&store))?,
            contents: Arc::from([Content::ALLOCATIONS]),
            store,
            roles,
            audit,
        })
    }

    /// Adds kinds of records that are in projects. A project that has one is not deleted.
    ///
    /// # Errors
    ///
    /// The store's schema lacks a kind or its index.
    pub fn with_contents(
        mut self,
        contents: impl IntoIterator<Item = Content>,
    ) -> Result<Self, Invalid> {
        let mut all = self.contents.to_vec();
        for content in contents {
            content.check_schema(self.store.schema())?;
            all.push(content);
        }
        self.contents = all.into();
        Ok(self)
    }

    /// Returns the audit log.
    pub fn audit(&self) -> &AuditLog {
        &self.audit
    }

    /// Returns the roles of the installation.
    pub fn roles(&self) -> &Roles {
        &self.roles
    }

    /// Returns the check for the transaction of everything that is created in a scope: that the project or organization has not changed
    /// since it was found to be open. With it, nothing is created in a project that is deleted at the same time. `None` for the global
    /// scope. Costs one read.
    ///
    /// Authorize the caller first: a caller with no permission in the scope must not learn whether it exists.
    ///
    /// # Errors
    ///
    /// It does not exist, or is being deleted.
    pub async fn check_open(&self, scope: &Scope) -> Result<Option<Check>, ScopeClosed> {
        match scope {
            Scope::Global => Ok(None),
            Scope::Organization(organization) => {
                let key = record::organization_key(*organization)?;
                let found = self.organizations.get(&key).await?;
                let found = found.map(|found| (found.revision, found.value.state));
                open(
                    "organization",
                    organization,
                    self.organizations.id(&key),
                    found,
                )
                .map(Some)
            }
            Scope::Project(organization, project) => {
                let key = record::project_key(*organization, *project)?;
                let found = self.projects.get(&key).await?;
                let found = found.map(|found| (found.revision, found.value.state));
                open("project", project, self.projects.id(&key), found).map(Some)
            }
        }
    }

    /// Starts a transaction with the check that a scope is open.
    async fn begin(&self, scope: &Scope) -> Result<Transaction, ScopeClosed> {
        let mut transaction = Transaction::new();
        transaction.checks.extend(self.check_open(scope).await?);
        Ok(transaction)
    }

    /// Returns a record whose scope the caller named, if the caller has the permission. The outcome for a caller who may not read it does
    /// not depend on whether it exists.
    async fn find<T: Closable>(
        &self,
        principal: &Principal,
        verb: Verb,
        (table, key): (&Table<T>, Key),
        scope: &Scope,
        id: String,
    ) -> Result<Versioned<T>, TenancyError> {
        let what = T::KIND;
        let missing = TenancyError::NotFound { what, id };
        let refused = match principal.access(verb, T::RESOURCE, scope) {
            Access::Allowed => return table.get(&key).await?.ok_or(missing),
            Access::NotVisible => return Err(missing),
            Access::Refused(refused) => refused,
        };
        if let Some(found) = table.get(&key).await? {
            let name = found.value.name().as_str();
            self.audit
                .record_refusal(&refused, found.value.id(), Some(name))
                .await;
        }
        Err(refused.into())
    }

    /// Adds the entry and commits. `Ok(None)` means that others changed the records: read again and retry.
    async fn commit(
        &self,
        transaction: Transaction,
        event: &AuditEvent,
    ) -> Result<Option<()>, StoreError> {
        match self
            .store
            .commit(&self.audit.add(transaction, event)?)
            .await
        {
            Ok(_) => Ok(Some(())),
            Err(error) => match error.conflict().map(|conflict| conflict.part) {
                Some(Part::Check(_)) => Ok(None),
                Some(Part::Write(_)) | None => Err(error),
            },
        }
    }

    fn clock(&self) -> &dyn Clock {
        self.audit.clock()
    }

    fn entropy(&self) -> &dyn Entropy {
        self.audit.entropy()
    }
}

impl fmt::Debug for Tenancy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tenancy")
            .field("contents", &self.contents)
            .finish_non_exhaustive()
    }
}

fn open(
    what: &'static str,
    id: impl fmt::Display,
    record: RecordId,
    found: Option<(fleetwright_store::Revision, TenantState)>,
) -> Result<Check, ScopeClosed> {
    let id = id.to_string();
    match found {
        Some((revision, TenantState::Open)) => Ok(Check::At(record, revision)),
        Some((_, TenantState::Deleting)) => Err(ScopeClosed::Deleting { what, id }),
        None => Err(ScopeClosed::Missing { what, id }),
    }
}

/// Returns whether a commit failed because a unique value is taken, and by which record.
fn taken(error: &StoreError) -> Option<Key> {
    let conflict = error.conflict()?;
    match (&conflict.part, &conflict.found) {
        (Part::Write(_), fleetwright_store::Found::HeldBy(key)) => Some(key.clone()),
        (Part::Write(_) | Part::Check(_), _) => None,
    }
}
