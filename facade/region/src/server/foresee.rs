//! What a spec would take of a machine, for an owner who wants to know it before it asks.

use fleetwright_identity::Principal;

use super::{Plan, ServerError, ServerId, ServerSpec, Servers};

impl Servers {
    /// What it would take to give a server's machine this spec, compared with what was last applied to it; nothing if it has no
    /// machine. Who may read a server may ask.
    ///
    /// Unlike [`plan_spec`](Self::plan_spec) it does not ask whether the spec may be asked for: an owner that asks in a tenant's
    /// stead has asked that in the tenant's name, of what the tenant changes. What the owner wished before and the server has not
    /// heard yet is no obstacle then.
    pub async fn foresee(
        &self,
        who: &Principal,
        id: ServerId,
        spec: &ServerSpec,
    ) -> Result<Plan, ServerError> {
        let view = self.read(who, id).await?;
        self.plan(&view.server, spec)
    }
}
