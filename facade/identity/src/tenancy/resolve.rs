//! From an actor to its principal, and the first administrator of an installation.

use fleetwright_store::{Check, Claim, IndexName, Invalid};

use super::{NewRoleBinding, RoleBinding, Tenancy, TenancyError, record};
use crate::{Actor, ActorName, Binding, Principal, RoleName, Scope};

/// The role of the first administrator.
const FIRST_ROLE: &str = "platform-administrator";

/// The principal of an actor, as its bindings say.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ResolvedPrincipal {
    /// The principal. Without bindings it may do nothing.
    pub principal: Principal,
    /// Bindings whose role the installation does not have, or that cannot be read. They grant nothing.
    pub ignored: Vec<String>,
}

impl Tenancy {
    /// Returns the principal of an actor that was authenticated, with the roles that are bound to it now.
    ///
    /// It costs one indexed read of the actor's own bindings, however many actors and bindings there are. Resolve for each request: a
    /// principal that is kept has the roles of the time at which it was resolved.
    ///
    /// # Errors
    ///
    /// The store fails. A role that the installation no longer has is [ignored](ResolvedPrincipal::ignored), so that one binding does not
    /// lock an actor out.
    pub async fn principal(&self, actor: &Actor) -> Result<ResolvedPrincipal, TenancyError> {
        self.principal_with(actor, &[]).await
    }

    /// Returns the principal of an actor as [`principal`](Self::principal) does, with further bindings that are in no record: those that the
    /// component that authenticated the actor knows, such as the groups of an identity provider. They last as long as the principal.
    ///
    /// # Errors
    ///
    /// The store fails. A further binding whose role does not exist, or that is at a scope of another level, is
    /// [ignored](ResolvedPrincipal::ignored).
    pub async fn principal_with(
        &self,
        actor: &Actor,
        further: &[Binding],
    ) -> Result<ResolvedPrincipal, TenancyError> {
        let (kind, name) = actor.parts();
        let index = IndexName::new(record::ACTOR_INDEX)?;
        let query = self.bindings.by(&index, [kind, name.as_str()]);
        let page = self.bindings.list_all(&query).await?;
        let damaged = page.damaged.into_iter();
        let mut ignored: Vec<_> = damaged.map(|damaged| damaged.id.key.to_string()).collect();
        let mut bindings = Vec::new();
        for RoleBinding { id, binding, .. } in page.items.into_iter().map(|found| found.value) {
            match self.bindable(&binding) {
                Ok(_) => bindings.push(binding),
                Err(_) => ignored.push(id.to_string()),
            }
        }
        for binding in further {
            match self.bindable(binding) {
                Ok(_) => bindings.push(binding.clone()),
                Err(error) => ignored.push(error.to_string()),
            }
        }
        let principal = self.roles.principal(actor.clone(), &bindings)?;
        Ok(ResolvedPrincipal { principal, ignored })
    }

    /// Makes a user the first platform administrator. For the operator who sets up an installation: it needs no principal, because there is
    /// none yet, and works only while nobody is platform administrator. A repeated call for the same user returns the binding.
    ///
    /// # Errors
    ///
    /// [`AlreadyBootstrapped`](TenancyError::AlreadyBootstrapped) if another user is platform administrator.
    pub async fn bootstrap(&self, actor: &Actor) -> Result<RoleBinding, TenancyError> {
        let operator = ActorName::new("operator").map_err(|name| Invalid::new(name.to_string()))?;
        let role = RoleName::from_static(FIRST_ROLE);
        let new = NewRoleBinding::new(actor.clone(), role, Scope::Global);
        let checks = vec![Check::Unclaimed(first_claim()?)];
        let by = Actor::Service(operator);
        self.create_binding(&by, &new, checks).await
    }

    /// Returns whether there is a platform administrator.
    pub(super) async fn is_bootstrapped(&self) -> Result<bool, TenancyError> {
        let Claim { index, value, .. } = first_claim()?;
        let page = self
            .bindings
            .list(&self.bindings.by(&index, value).limit(1))
            .await?;
        Ok(!page.items.is_empty() || !page.damaged.is_empty())
    }
}

/// Any binding of the first role.
fn first_claim() -> Result<Claim, Invalid> {
    use fleetwright_store::{Document as _, Kind};
    let (kind, index) = (
        Kind::new(RoleBinding::KIND)?,
        IndexName::new(record::PLACE_ROLE_INDEX)?,
    );
    let value = [record::place(&Scope::Global), FIRST_ROLE.to_owned()];
    Ok(Claim::new(kind, index, value))
}
