//! Rule: nothing in another account is changed, and no machine is left there unknown to the operator.

use std::sync::Arc;

use fleetwright::InstanceId;
use fleetwright_region::{account::RegionAccount, server::Server};
use fleetwright_store::Document as _;

use super::Rules;

impl Rules {
    /// Checks a machine that is about to be changed: it is not one of somebody else, in whichever account.
    pub fn check_owner(&self, machine: &InstanceId) {
        let foreign = self.journal.facts(|facts| facts.foreign.contains(machine));
        if foreign {
            self.report(format!("machine {machine} of another owner is changed"));
        }
    }

    /// Checks the machines that were launched in another account, because the credentials were exchanged meanwhile: a record of a server
    /// names each of them, or the region's account lists it for the operator.
    pub async fn check_strays(&self) -> Result<(), String> {
        let servers: Vec<Arc<Server>> = self.all(Server::KIND).await;
        let accounts: Vec<Arc<RegionAccount>> = self.all(RegionAccount::KIND).await;
        let of_servers = servers.iter().filter_map(|server| server.machine.as_ref());
        let named: Vec<_> = of_servers.map(|machine| &machine.id).collect();
        let leaked: Vec<_> = accounts
            .iter()
            .flat_map(|account| &account.leaked)
            .collect();
        for (info, token) in self.oracle.elsewhere() {
            let foreign = self.journal.facts(|facts| facts.foreign.contains(&info.id));
            let is_listed = leaked.iter().any(|leak| {
                leak.machine.as_ref() == Some(&info.id) || token.as_ref() == Some(&leak.token)
            });
            let known = named.contains(&&info.id) || is_listed;
            if !foreign && !known {
                return Err(format!(
                    "machine {} is left in another account, unknown to the operator",
                    info.id
                ));
            }
        }
        Ok(())
    }
}
