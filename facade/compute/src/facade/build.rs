//! Building a façade: every part once, over one store.

use std::{collections::BTreeSet, sync::Arc};

use fleetwright_identity::{AuditLog, Ledger, QuotaKinds, Roles, Tenancy};
use fleetwright_region::{
    account::{ConfirmedAccount, RegionAccounts},
    controller as servers,
    launch_config::LaunchConfigs,
    machine::MachineAccess,
    monitor::Monitor,
    network::{Networks, SecurityGroups, SshAuthorities},
    secret::{SealedStore, ServerKeys, SshKeys},
    server::{DependencyChecker, Servers, TenantDependencies},
    snapshot::Snapshots,
};
use fleetwright_runtime::{clock::SystemClock, entropy::OsEntropy};
use fleetwright_store::{Invalid, Store};

use super::{
    Facade, FacadeBuilder, FacadeError, FacadeRegion,
    builder::KeyPairs,
    check::{check_deleters, check_policies},
    sources::{Planned, open_catalog, plan_regions},
};
use crate::{
    ComputeError,
    controller::Controller,
    networks::NetworkDeletionController,
    schema,
    service::{InstanceDependencies, Instances, UserDataSupport, compute_principal},
};

impl FacadeBuilder {
    /// Builds every service and loop. No loop runs yet, and no cloud is called.
    ///
    /// # Errors
    ///
    /// [`FacadeError`] says which part is missing or wrong, and what to do:
    /// - a required part is missing: [`MissingStore`](FacadeError::MissingStore), [`MissingRegion`](FacadeError::MissingRegion),
    ///   [`MissingKeyring`](FacadeError::MissingKeyring), [`MissingCatalog`](FacadeError::MissingCatalog);
    /// - a part would be ignored: [`Repeated`](FacadeError::Repeated), [`DuplicateDeleter`](FacadeError::DuplicateDeleter),
    ///   [`NoRegionForDeleter`](FacadeError::NoRegionForDeleter), [`OtherProvider`](FacadeError::OtherProvider);
    /// - a policy has a setting that cannot be used: [`Policy`](FacadeError::Policy);
    /// - the catalog or a mapping has problems: [`Catalog`](FacadeError::Catalog), [`Mapping`](FacadeError::Mapping),
    ///   [`DuplicateRegion`](FacadeError::DuplicateRegion);
    /// - the store does not fit or fails: [`Schema`](FacadeError::Schema), [`Store`](FacadeError::Store).
    pub async fn build(self) -> Result<Facade, FacadeError> {
        if let Some(repeated) = self.repeated {
            return Err(repeated);
        }
        check_policies(
            &self.instance_policy,
            &self.server_policy,
            &self.monitor_policy,
            &self.snapshot_policy,
        )?;
        let store = self.store.ok_or(FacadeError::MissingStore)?;
        if self.regions.is_empty() {
            return Err(FacadeError::MissingRegion);
        }
        let keyring = self.keyring;
        let clock = self.clock.unwrap_or_else(|| Arc::new(SystemClock));
        let entropy = self.entropy.unwrap_or_else(|| Arc::new(OsEntropy));
        let user_data = match keyring {
            Some(_) => UserDataSupport::Accepted,
            None => UserDataSupport::NoKeyring,
        };
        let sealed_store = Arc::new(SealedStore::new(
            store,
            keyring.clone(),
            entropy.clone(),
            schema::sealed_fields(),
        ));
        let store: Arc<dyn Store> = sealed_store.clone();
        let server_keys = match (self.key_pairs, keyring) {
            (KeyPairs::Disabled, _) => SshKeys::Disabled,
            (KeyPairs::OnePerServer, None) => return Err(FacadeError::MissingKeyring),
            (KeyPairs::OnePerServer, Some(keyring)) => {
                let keys = ServerKeys::new(store.clone(), keyring, entropy.clone())?;
                SshKeys::OnePerServer(keys)
            }
        };
        let audit = AuditLog::new(store.clone(), clock.clone(), entropy.clone())?
            .with_retention(self.audit_retention);
        let roles = Arc::new(self.roles.unwrap_or_else(Roles::built_in));
        let tenancy = Tenancy::new(store.clone(), roles, audit.clone())?
            .with_contents(crate::schema::contents())?;
        let accounts = RegionAccounts::new(store.clone(), clock.clone())?.with_audit(audit.clone());
        let catalog = open_catalog(&store, self.catalog, &tenancy).await?;
        let planned = plan_regions(self.regions, &catalog)?;
        let region_ids: Vec<_> = planned.iter().map(|region| &region.id).collect();
        check_deleters(&self.image_deleters, &region_ids)?;

        let ids: BTreeSet<_> = planned.iter().map(|region| region.id.clone()).collect();
        let kinds = self.quota_kinds.unwrap_or_else(QuotaKinds::standard);
        let ledger = Ledger::new(store.clone(), Arc::new(kinds))?.with_tenancy(tenancy.clone());
        let networks = Networks::new(
            store.clone(),
            ids,
            entropy.clone(),
            &crate::schema::references(),
        )?;
        let networks = networks
            .with_ledger(ledger.clone())
            .with_tenancy(tenancy.clone());
        let networks = Arc::new(networks);
        let security_groups = SecurityGroups::new(
            store.clone(),
            networks.clone(),
            entropy.clone(),
            &crate::schema::references(),
        )?;
        let security_groups = Arc::new(security_groups.with_tenancy(tenancy.clone()));
        let ssh_authorities =
            SshAuthorities::new(store.clone(), entropy.clone(), &crate::schema::references())?;
        let ssh_authorities = ssh_authorities
            .with_ledger(ledger.clone())
            .with_tenancy(tenancy.clone());
        let ssh_authorities = Arc::new(ssh_authorities);
        let dependencies: Arc<dyn DependencyChecker> = Arc::new(TenantDependencies::new(
            networks.clone(),
            security_groups.clone(),
            ssh_authorities.clone(),
            catalog.clone(),
        ));
        let mut servers = Servers::new(
            store.clone(),
            clock.clone(),
            dependencies.clone(),
            server_keys.clone(),
        )
        .map_err(ComputeError::from)?
        .with_audit(audit.clone());
        let mut machines = MachineAccess::new(
            store.clone(),
            clock.clone(),
            catalog.clone(),
            server_keys.clone(),
        )?;
        machines = machines
            .with_ledger(ledger.clone())
            .with_audit(audit.clone());
        let mut deleters = self.image_deleters;
        let mut regions = Vec::new();
        for Planned {
            id,
            provisioner,
            planner,
        } in planned
        {
            let verbs = provisioner.capabilities().verbs.clone();
            let configs = LaunchConfigs::new(store.clone(), provisioner.clone(), planner.clone())?;
            servers = servers
                .with_region(id.clone(), verbs)
                .with_launch_configs(id.clone(), configs);
            let confirmed = ConfirmedAccount::default();
            machines = machines.with_confirmed_region(id.clone(), provisioner.clone(), &confirmed);
            let controller = servers::Controller::new(
                id.clone(),
                store.clone(),
                provisioner.clone(),
                planner.clone(),
                clock.clone(),
            )?;
            let monitor = Monitor::new(
                id.clone(),
                store.clone(),
                provisioner.clone(),
                clock.clone(),
            )?;
            let snapshots = Snapshots::new(
                id.clone(),
                store.clone(),
                catalog.clone(),
                provisioner.clone(),
                clock.clone(),
            )?;
            let mut snapshots = snapshots
                .with_ledger(ledger.clone())
                .with_references(&crate::schema::references());
            if let Some(deleter) = deleters.remove(&id) {
                snapshots = snapshots.with_deleter(deleter);
            }
            regions.push(FacadeRegion {
                id,
                provisioner,
                planner,
                controller: controller
                    .with_policy(self.server_policy.clone())
                    .with_confirmed_account(&confirmed),
                monitor: monitor
                    .with_policy(self.monitor_policy.clone())
                    .with_confirmed_account(&confirmed),
                snapshots: snapshots
                    .with_policy(self.snapshot_policy.clone())
                    .with_confirmed_account(&confirmed),
            });
        }
        let service = compute_principal().map_err(|name| Invalid::new(name.to_string()))?;
        let parts = InstanceDependencies::new(
            store.clone(),
            clock.clone(),
            dependencies.clone(),
            networks.clone(),
            catalog.clone(),
            ledger.clone(),
            servers.clone(),
            tenancy.clone(),
        );
        let parts = parts.with_machines(machines.clone());
        let instances = Instances::new(parts.with_user_data(user_data))?;
        let instance_controller = Controller::new(
            store.clone(),
            servers.clone(),
            ledger.clone(),
            clock.clone(),
            service.clone(),
        )?;
        let network_controller = NetworkDeletionController::new(
            store.clone(),
            networks.clone(),
            clock.clone(),
            service,
        )?;
        Ok(Facade {
            instance_controller: instance_controller.with_policy(self.instance_policy.clone()),
            network_controller: network_controller
                .with_audit(audit.clone())
                .with_policy(self.instance_policy),
            tenancy,
            audit,
            accounts: Arc::new(accounts),
            store,
            sealed_store,
            clock,
            catalog,
            networks,
            security_groups,
            ssh_authorities,
            ledger,
            instances,
            servers,
            machines,
            server_keys,
            dependencies,
            regions: regions.into(),
        })
    }
}
