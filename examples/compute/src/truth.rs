//! What there is in the end, in the cloud, in the store and in the ledger.

use fleetwright_compute::{
    instance::{Instance, InstanceId},
    service::Inspection,
};
use fleetwright_identity::{Account, QuotaKind};
use fleetwright_store::{Kind, Query};

use crate::{Failure, cloud, story::Story};

impl Story<'_> {
    /// How many machines there are for these instances, each of which must be the one that its record names.
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

    /// What the project is charged, which must be the sum of what its instances are.
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
            "ledger: {used} servers are charged, the sum of {} allocations",
            audit.allocations
        );
        Ok(used)
    }

    /// What the store still has of a tenant's.
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

    pub(crate) fn machines_in_words(&self, instance: &Instance) -> String {
        let machines = cloud::machines(self.emulator, instance.server);
        let words = machines.iter().map(|machine| {
            let (id, size, state) = (&machine.id, &machine.instance_type, &machine.state);
            format!("{id} ({size}, {state})")
        });
        words.collect::<Vec<_>>().join(" and ")
    }
}
