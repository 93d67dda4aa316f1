//! Whether the region can launch what is requested, checked before the request is stored: mapping, user data with what is added to it,
//! and the provider's limits.
//!
//! The check is that of the region's controller, which makes it again right before it stops or terminates anything.

use fleetwright_region::{
    launch_config::LaunchRefusal,
    server::{ChangeMethod, Field, NewServer, Plan, Server, ServerSpec},
};
use fleetwright_store::StoreError;

use super::{Instances, access::server_error};
use crate::{
    ComputeError,
    instance::{Instance, InstanceId},
};

impl Instances {
    /// Refuses an instance without a machine that cannot be launched.
    pub(super) async fn check_launch(&self, instance: &Instance) -> Result<(), ComputeError> {
        let spec = instance.desired_state().spec;
        let refusal = self.refusal(instance, None, &spec).await?;
        refusal.map_or(Ok(()), |refusal| Err(refused(instance.id, &refusal)))
    }

    /// Refuses a replacement by a machine that cannot be launched.
    pub(super) async fn check_replacement(&self, instance: &Instance) -> Result<(), ComputeError> {
        let server = self.server_of(instance).await?.map(|view| view.server);
        let spec = instance.desired_state().spec;
        let refusal = self.refusal(instance, server.as_ref(), &spec).await?;
        refusal.map_or(Ok(()), |refusal| Err(refused(instance.id, &refusal)))
    }

    /// Refuses a change that cannot be launched.
    ///
    /// A change that keeps the machine is not refused for what the machine has already: tags can be changed, and a change can be taken
    /// back, although the region no longer offers the flavor.
    pub(super) async fn check_change(
        &self,
        instance: &Instance,
        server: Option<&Server>,
        wanted: &ServerSpec,
        plan: &Plan,
    ) -> Result<(), ComputeError> {
        let Some(refusal) = self.refusal(instance, server, wanted).await? else {
            return Ok(());
        };
        let is_disruptive = |method: &ChangeMethod| match method {
            ChangeMethod::Resize | ChangeMethod::Reimage | ChangeMethod::Replace => true,
            ChangeMethod::Retag | ChangeMethod::NextLaunch => false,
        };
        if !plan.methods.values().any(is_disruptive) {
            let machine = server.and_then(|server| server.machine.as_ref());
            let present = match machine {
                Some(machine) => machine.applied.clone(),
                None => instance.desired_state().spec,
            };
            let before = self.refusal(instance, server, &present).await?;
            if before.as_ref() == Some(&refusal) {
                return Ok(());
            }
        }
        Err(refused(instance.id, &refusal))
    }

    async fn refusal(
        &self,
        instance: &Instance,
        server: Option<&Server>,
        spec: &ServerSpec,
    ) -> Result<Option<LaunchRefusal>, ComputeError> {
        let refusal = match server {
            Some(server) => self.servers.refusal_of_spec(server, spec).await,
            None => {
                let tenant = (instance.organization, instance.project);
                let (owner, region) = (instance.id.owner(), instance.region.clone());
                let new = NewServer::new(instance.server, owner, region, tenant, spec.clone());
                self.servers.refusal_of_new(&new).await
            }
        };
        refusal.map_err(|error| server_error(instance.id, error))
    }
}

fn refused(id: InstanceId, refusal: &LaunchRefusal) -> ComputeError {
    if let LaunchRefusal::Sealed { key } = refusal {
        let key = key.clone();
        return ComputeError::Sealed { id, key };
    }
    if let LaunchRefusal::Newer { reason } = refusal {
        let reason = reason.clone();
        return StoreError::Incompatible { reason }.into();
    }
    let field = match refusal.field() {
        Some(Field::Flavor) => "spec.flavor",
        Some(Field::Image) => "spec.image",
        Some(Field::Network) => "network",
        Some(Field::SecurityGroups) => "spec.networking.securityGroups",
        Some(Field::PublicIp) => "spec.networking.publicIP",
        Some(Field::SshAuthority) => "spec.sshAuthority",
        Some(Field::UserData) => "spec.userData",
        Some(Field::Tags) => "metadata.tags",
        None => "spec",
    };
    ComputeError::Unprocessable {
        field: field.to_owned(),
        problem: refusal.message(),
    }
}
