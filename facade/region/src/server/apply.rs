//! What an owner asks of its server, all at once: how a level is made of wishes.

use fleetwright_identity::{Principal, Verb};
use fleetwright_store::Check;

use super::{
    Consent, DesiredState, Intent, Plan, Power, Server, ServerError, ServerId, ServerView, Servers,
    create::check_size,
};

impl Servers {
    /// Makes all that is asked of a server what its owner asks of it, in one write, and answers what it takes. What differs in
    /// the spec is as for [`set_spec`](Self::set_spec): what it destroys needs consent, and without it nothing is written at
    /// all. Who may change what a server is may do this, whichever wishes are among it; deleting is not among them.
    pub async fn apply(
        &self,
        who: &Principal,
        id: ServerId,
        wish: &DesiredState,
        consent: Consent,
    ) -> Result<(ServerView, Plan), ServerError> {
        self.apply_if(who, id, wish, consent, &[]).await
    }

    /// The same while everything of `guards` holds in the transaction that writes it, such as that the owner still asks for this;
    /// what does not is handed back as the store's conflict.
    pub async fn apply_if(
        &self,
        who: &Principal,
        id: ServerId,
        wish: &DesiredState,
        consent: Consent,
        guards: &[Check],
    ) -> Result<(ServerView, Plan), ServerError> {
        check_size(id, &wish.spec)?;
        if wish.intent.power == Power::Deleted {
            return Err(ServerError::NotReady {
                id,
                found: "asked to be what is deleted",
                wanted: "asked to run or to be stopped, or deleted by that call",
            });
        }
        let mut plan = Plan::default();
        let view = self
            .change_if(who, Verb::Update, id, guards, |server| {
                plan = self.plan(server, &wish.spec)?;
                if wish.holds_for(server) {
                    return Ok(None);
                }
                let intent = raised(&server.intent, &wish.intent);
                let destroys = server.spec != wish.spec && plan.destructive().next().is_some();
                if destroys && consent == Consent::KeepEverything {
                    let plan = plan.clone();
                    return Err(ServerError::NeedsConsent { id, plan });
                }
                server.spec = wish.spec.clone();
                let words = words(server, &intent);
                server.intent = intent;
                Ok(Some(words))
            })
            .await?;
        Ok((view, plan))
    }
}

impl DesiredState {
    /// Whether the server was asked for just this: applying it would change nothing.
    pub fn holds_for(&self, server: &Server) -> bool {
        server.spec == self.spec && server.intent == raised(&server.intent, &self.intent)
    }
}

/// What is asked for, with counts that never fall: a wish that comes late takes nothing back.
fn raised(before: &Intent, asked: &Intent) -> Intent {
    let reboot_how = if asked.reboots > before.reboots {
        asked.reboot_how
    } else {
        before.reboot_how
    };
    Intent {
        power: asked.power,
        reboots: before.reboots.max(asked.reboots),
        reboot_how,
        replaces: before.replaces.max(asked.replaces),
    }
}

fn words(server: &Server, intent: &Intent) -> &'static str {
    if intent.replaces > server.intent.replaces {
        "asks for another machine"
    } else if intent.power != server.intent.power {
        match intent.power {
            Power::Running => "wants it to run",
            Power::Stopped => "wants it stopped",
            Power::Deleted => "wants it deleted",
        }
    } else if intent.reboots > server.intent.reboots {
        "asks for a reboot"
    } else {
        "asks for another spec"
    }
}
