//! The story: a tenant's requests, the kills of the fleet process, and what the cloud has after each.

use std::path::Path;

use fleetwright_compute::{
    ComputeError, Facade,
    instance::{InstanceId, InstanceSpec},
    service::{NewInstance, UpdateInstance},
};
use fleetwright_emulators::ec2::Ec2Emulator;
use fleetwright_identity::{Account, Limits, OrganizationId, Principal, ProjectId, QuotaKind};
use fleetwright_region::{
    ids::NetworkId,
    name::Name,
    network::{Deletion, IfUsed, NewNetwork},
    server::{Consent, Plan},
};
use fleetwright_store::Transaction;

use crate::{
    Failure, cloud, error_chain, facade,
    fleet::Fleet,
    moment::Moment,
    tenants::{self, People},
};

const BEFORE: (&str, &str) = ("standard-2", "debian-13");
const AFTER: (&str, &str) = ("arm-2", "debian-13-arm");

/// Runs the whole story in a folder and prints a line for each step. An error names the step that failed.
pub(crate) async fn run(folder: &Path) -> Result<(), Failure> {
    let emulator = cloud::start()?;
    println!("cloud: an emulated EC2 listens at {}", emulator.endpoint());
    let changes = facade::prepare(folder).await?;
    println!("catalog: {}", changes.join(", "));
    let mut story = Story::begin(folder, &emulator).await?;

    let ids = story.create().await?;
    if let Some(first) = ids.first() {
        story.misfit(*first).await?;
    }
    for (id, moment) in ids.iter().zip(Moment::ALL) {
        story.replace(*id, moment).await?;
    }
    let machines = story.machines(&ids).await?;
    let charged = story.ledger(ids.len()).await?;
    let launched = emulator.oracle().instances.len();
    story.delete(&ids).await?;
    story.leave().await?;
    let leftovers = story.leftovers().await? + cloud::leftovers(&emulator);
    println!(
        "compute: instances={} machines={machines} killed={} launched={launched} charged={charged} leftovers={leftovers}",
        ids.len(),
        story.killed,
    );
    if machines != ids.len() || launched != 2 * ids.len() || leftovers != 0 {
        return Err("the numbers above are not what they should be".into());
    }
    Ok(())
}

pub(crate) struct Story<'a> {
    pub(crate) folder: &'a Path,
    pub(crate) emulator: &'a Ec2Emulator,
    pub(crate) facade: Facade,
    pub(crate) fleet: Fleet,
    pub(crate) ada: Principal,
    pub(crate) operator: Principal,
    pub(crate) tenant: (OrganizationId, ProjectId),
    pub(crate) network: NetworkId,
    pub(crate) killed: usize,
}

impl<'a> Story<'a> {
    /// An operator starts the fleet process; Ada has a project of five servers, and a network in it.
    async fn begin(folder: &'a Path, emulator: &'a Ec2Emulator) -> Result<Self, Failure> {
        let endpoint = emulator.endpoint();
        let facade = facade::open(folder, &endpoint).await?;
        let fleet = Fleet::start(&endpoint, folder)?;
        let database = folder.join(facade::DATABASE);
        println!(
            "fleet: process {} works on {}",
            fleet.id(),
            database.display()
        );

        let People {
            operator,
            ada,
            tenant,
        } = tenants::create(&facade).await?;
        let limits = Limits::new().with(QuotaKind::servers(), Moment::ALL.len() as u64);
        let account = Account::Project(tenant.0, tenant.1);
        let limited = facade
            .ledger
            .set_limits(Transaction::new(), &operator, &account, &limits)
            .await?;
        facade.store.commit(&limited).await?;
        let network = NewNetwork {
            organization: tenant.0,
            project: tenant.1,
            region: facade.regions[0].id.clone(),
            name: Name::new("blue")?,
            prefix: "10.0.0.0/16".parse()?,
            dns: Vec::new(),
        };
        let network = facade.networks.create(&ada, &network).await?.value.id;
        Ok(Self {
            folder,
            emulator,
            facade,
            fleet,
            ada,
            operator,
            tenant,
            network,
            killed: 0,
        })
    }

    /// Ada creates as many instances as her quota permits, and tries one more.
    async fn create(&mut self) -> Result<Vec<InstanceId>, Failure> {
        let mut ids = Vec::new();
        for number in 1..=Moment::ALL.len() {
            let new = self.new_instance(number)?;
            ids.push(
                self.facade
                    .instances
                    .create(&self.ada, &new)
                    .await?
                    .instance
                    .id,
            );
        }
        for id in &ids {
            self.until_running(*id).await?;
        }
        let machines = self.machines(&ids).await?;
        let (flavor, image) = BEFORE;
        println!(
            "create: {} instances of {flavor} with {image} run on {machines} machines",
            ids.len()
        );
        let more = self.new_instance(ids.len() + 1)?;
        match self.facade.instances.create(&self.ada, &more).await {
            Err(ComputeError::Ledger(error)) => println!("quota: one more is refused: {error}"),
            Err(error) => return Err(error.into()),
            Ok(_) => return Err("an instance was created beyond the quota".into()),
        }
        Ok(ids)
    }

    fn new_instance(&self, number: usize) -> Result<NewInstance, Failure> {
        let spec = InstanceSpec::new(BEFORE.0.parse()?, BEFORE.1.parse()?);
        let name = Name::new(format!("web-{number}"))?;
        Ok(NewInstance::new(name, self.tenant, self.network, spec))
    }

    /// Ada requests only the other flavor, whose architecture is not the image's.
    async fn misfit(&self, id: InstanceId) -> Result<(), Failure> {
        let view = self.facade.instances.read(&self.ada, id).await?;
        let mut wanted = UpdateInstance::of(&view.instance);
        wanted.spec.flavor = AFTER.0.parse()?;
        match self
            .facade
            .instances
            .plan_update(&self.ada, id, &wanted)
            .await
        {
            Err(error @ ComputeError::Dependency(_)) => {
                println!("misfit: {}: {}", view.instance.name, error_chain(&error));
                Ok(())
            }
            Err(error) => Err(error.into()),
            Ok(_) => Err("an image was accepted that does not boot".into()),
        }
    }

    /// Ada moves an instance to the other flavor, the fleet process is killed at a moment of the replacement, and the next one
    /// continues.
    ///
    /// EC2 resizes a machine in place, but it cannot change the image of one. A flavor of another architecture needs another image, so
    /// the machine is replaced and its data is lost.
    async fn replace(&mut self, id: InstanceId, moment: Moment) -> Result<(), Failure> {
        let view = self.facade.instances.read(&self.ada, id).await?;
        let name = view.instance.name.clone();
        let mut wanted = UpdateInstance::of(&view.instance);
        wanted.spec.flavor = AFTER.0.parse()?;
        wanted.spec.image = AFTER.1.parse()?;
        let plan = self
            .facade
            .instances
            .plan_update(&self.ada, id, &wanted)
            .await?;
        println!("plan: {name} to {} takes {}", AFTER.0, by_field(&plan));
        match self.facade.instances.update(&self.ada, id, &wanted).await {
            Err(ComputeError::NeedsConsent { lost, .. }) => println!("refused: {name}: {lost}"),
            Err(error) => return Err(error.into()),
            Ok(_) => return Err(format!("{name} was changed without consent").into()),
        }

        moment.hold(self.emulator);
        wanted.consent = Consent::Destroy;
        self.facade.instances.update(&self.ada, id, &wanted).await?;
        println!("agreed: {name} may lose that");
        self.until_moment(id, moment).await?;
        let status = self.fleet.kill()?;
        self.killed += 1;
        println!(
            "killed: {name}: process {} is gone ({status}) while {}; the cloud has {}",
            self.fleet.id(),
            moment.description(),
            self.describe_machines(&view.instance),
        );
        moment.release(self.emulator);

        self.fleet = Fleet::start(&self.emulator.endpoint(), self.folder)?;
        self.until_running(id).await?;
        let machines = cloud::machines(self.emulator, view.instance.server);
        let alive: Vec<_> = machines.iter().filter(|one| cloud::is_alive(one)).collect();
        let mapping = facade::mapping(self.folder, &self.facade)?;
        let size = mapping.flavors.get(&wanted.spec.flavor);
        let is_moved = |native: &str| size.is_some_and(|size| size.as_str() == native);
        match (alive.as_slice(), machines.len()) {
            ([machine], 2) if is_moved(&machine.instance_type) => {
                println!(
                    "restarted: {name}: process {} completed the change; the cloud has {}",
                    self.fleet.id(),
                    self.describe_machines(&view.instance),
                );
                Ok(())
            }
            (alive, launched) => Err(format!(
                "{name} has {} machines of {launched} that were launched, and should have one of two, of the new flavor: {}",
                alive.len(),
                self.describe_machines(&view.instance),
            )
            .into()),
        }
    }

    /// Deletes everything, and ends the fleet process.
    async fn delete(&mut self, ids: &[InstanceId]) -> Result<(), Failure> {
        for id in ids {
            self.facade.instances.delete(&self.ada, *id).await?;
        }
        for id in ids {
            self.until_gone(*id).await?;
        }
        let networks = &self.facade.networks;
        let deletion = networks
            .delete(&self.ada, self.network, IfUsed::Refuse)
            .await?;
        let ended = self.fleet.stop()?;
        println!(
            "delete: {} instances are gone, and so is {}; the fleet process ended ({ended})",
            ids.len(),
            match deletion {
                Deletion::Deleted => "their network",
                Deletion::Waiting => "nothing else",
            }
        );
        Ok(())
    }
}

/// A plan, field by field.
fn by_field(plan: &Plan) -> String {
    let changes = plan.methods.iter();
    let changes = changes.map(|(field, method)| format!("{field:?} by {method:?}").to_lowercase());
    changes.collect::<Vec<_>>().join(", ")
}
