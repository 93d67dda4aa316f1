//! Applying the complete desired state of an owner to its server.

use fleetwright_identity::{Principal, Verb};
use fleetwright_store::Check;

use super::{
    Consent, DesiredState, Intent, Plan, Power, Server, ServerError, ServerId, ServerView, Servers,
    create::{check_opened, check_size},
};

impl Servers {
    /// Replaces the desired state of a server in one transaction, and returns the plan. As for [`set_spec`](Self::set_spec), a destructive
    /// change needs consent; without it nothing is written. Requires the permission to update servers, and cannot delete one.
    pub async fn apply(
        &self,
        principal: &Principal,
        id: ServerId,
        desired: &DesiredState,
        consent: Consent,
    ) -> Result<(ServerView, Plan), ServerError> {
        self.apply_if(principal, id, desired, consent, &[]).await
    }

    /// Like [`apply`](Self::apply), with further checks in the transaction, such as that the owner's record is unchanged. A check that
    /// fails is returned as the store's conflict.
    pub async fn apply_if(
        &self,
        principal: &Principal,
        id: ServerId,
        desired: &DesiredState,
        consent: Consent,
        guards: &[Check],
    ) -> Result<(ServerView, Plan), ServerError> {
        check_size(id, &desired.spec)?;
        if desired.intent.power == Power::Deleted {
            return Err(ServerError::NotReady {
                id,
                found: "requested with the power state deleted",
                wanted: "requested to run or to stop; use delete to delete it",
            });
        }
        let mut plan = Plan::default();
        let view = self
            .change_if(principal, Verb::Update, id, guards, |server| {
                plan = self.plan(server, &desired.spec)?;
                if desired.holds_for(server) {
                    return Ok(None);
                }
                let intent = raised(&server.intent, &desired.intent);
                let destroys = server.spec != desired.spec && plan.destructive().next().is_some();
                if destroys && consent == Consent::KeepEverything {
                    let plan = plan.clone();
                    return Err(ServerError::NeedsConsent { id, plan });
                }
                if server.spec != desired.spec {
                    check_opened(id, &desired.spec)?;
                    server.spec = desired.spec.clone();
                }
                let message = message(server, &intent);
                server.intent = intent;
                Ok(Some(message))
            })
            .await?;
        Ok((view, plan))
    }
}

impl DesiredState {
    /// Returns whether the server has this desired state: applying it would change nothing.
    pub fn holds_for(&self, server: &Server) -> bool {
        server.spec == self.spec && server.intent == raised(&server.intent, &self.intent)
    }
}

/// Merges intents with counts that never fall, so that a late request takes nothing back.
fn raised(before: &Intent, requested: &Intent) -> Intent {
    let reboot_how = if requested.reboots > before.reboots {
        requested.reboot_how
    } else {
        before.reboot_how
    };
    Intent {
        power: requested.power,
        reboots: before.reboots.max(requested.reboots),
        reboot_how,
        replaces: before.replaces.max(requested.replaces),
    }
}

fn message(server: &Server, intent: &Intent) -> &'static str {
    if intent.replaces > server.intent.replaces {
        "requested a replacement"
    } else if intent.power != server.intent.power {
        match intent.power {
            Power::Running => "requested it to run",
            Power::Stopped => "requested it to stop",
            Power::Deleted => "requested its deletion",
        }
    } else if intent.reboots > server.intent.reboots {
        "requested a reboot"
    } else {
        "requested another spec"
    }
}
