//! Checks of what the cloud, the store and the ledger have in the end.

use fleetwright_compute::{
    instance::{Instance, InstanceId},
    service::Inspection,
};
use fleetwright_identity::{Account, QuotaKind};
use fleetwright_store::{Kind, Query};

use crate::{Failure, cloud, story::Story};

impl Story<'_> {
    /// The number of machines of these instances. Fails unless they are exactly those that the records name.
    pub(crate) async fn machines(&self, ids: &[InstanceId]) -> Result<usize, Failure> {
        let mut recorded = Vec::new();
        for id in ids {
            let server = self.inspect(*id).await?.server;
            let machine = server.and_then(|view| view.server.machine);
            recorded.extend(machine.map(|machine| machine.id.to_string()));
        }
        let oracle = self.emulator.oracle();
        let alive = oracle.instances.iter().filter(|one| cloud::is_alive(one));
        let mut alive: Vec<_> = alive.map(|machine| machine.id.clone()).collect();
        alive.sort();
        recorded.sort();
        if alive == recorded {
            return Ok(alive.len());
        }
        Err(format!("the cloud has {alive:?}, and the store {recorded:?}").into())
    }

    /// The servers that the project is charged for. Fails unless each use of quota is the sum of its allocations.
    pub(crate) async fn ledger(&self, instances: usize) -> Result<u64, Failure> {
        let (organization, project) = self.tenant;
        let audit = self.facade.ledger.audit(organization).await?;
        let account = Account::Project(organization, project);
        let quota = self.facade.ledger.quota(&self.operator, &account).await?;
        let servers = QuotaKind::servers();
        let line = quota.lines.iter().find(|line| line.kind == servers);
        let used = line.map_or(0, |line| line.used);
        let is_sum = audit.differences.is_empty() && audit.unused.is_empty();
        if !is_sum || used != instances as u64 {
            return Err(
                format!("{used} servers are charged for {instances} instances: {audit:?}").into(),
            );
        }
        println!(
            "ledger: {used} servers are charged, and all use is the sum of {} allocations",
            audit.allocations
        );
        Ok(used)
    }

    /// The number of records of the tenant that the store still has.
    pub(crate) async fn leftovers(&self) -> Result<usize, Failure> {
        let mut left = 0;
        for kind in ["instance", "server", "allocation", "network"] {
            let query = Query::all(Kind::new(kind)?);
            left += self.facade.store.list(&query).await?.records.len();
        }
        Ok(left)
    }

    pub(crate) async fn inspect(&self, id: InstanceId) -> Result<Inspection, Failure> {
        Ok(self.facade.instances.inspect(&self.operator, id).await?)
    }

    pub(crate) fn describe_machines(&self, instance: &Instance) -> String {
        let machines = cloud::machines(self.emulator, instance.server);
        let descriptions = machines.iter().map(|machine| {
            let (id, size, state) = (&machine.id, &machine.instance_type, &machine.state);
            format!("{id} ({size}, {state})")
        });
        descriptions.collect::<Vec<_>>().join(" and ")
    }
}
