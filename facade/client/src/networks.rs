//! Networks, security groups and certificate authorities.

use fleetwright_api::{
    Network, NetworkCreate, NetworkPage, SecurityGroup, SecurityGroupCreate, SecurityGroupPage,
    SecurityGroupUpdate, SshAuthority, SshAuthorityCreate, SshAuthorityPage,
};

use crate::{Client, Error, RecordFilter, call::Call, operation};

/// What happens to the instances of a network that is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NetworkContents {
    /// A network with instances is not deleted.
    Keep,
    /// They are deleted first.
    Delete,
}

impl Client {
    /// One page of networks, from `after` on. [`networks`](Self::networks) returns all of them.
    pub async fn list_networks(
        &self,
        filter: &RecordFilter,
        after: Option<&str>,
    ) -> Result<NetworkPage, Error> {
        let call = filter.add_to(Call::new(&operation::LIST_NETWORKS, &[])?);
        self.fetch(call.query("after", after)).await
    }

    /// Creates a network.
    pub async fn create_network(&self, new: &NetworkCreate) -> Result<Network, Error> {
        self.fetch(Call::new(&operation::CREATE_NETWORK, &[])?.body(new)?)
            .await
    }

    /// Reads a network.
    pub async fn read_network(&self, id: &str) -> Result<Network, Error> {
        self.fetch(Call::new(&operation::READ_NETWORK, &[id])?)
            .await
    }

    /// Deletes a network.
    pub async fn delete_network(&self, id: &str, contents: NetworkContents) -> Result<(), Error> {
        let delete = match contents {
            NetworkContents::Keep => None,
            NetworkContents::Delete => Some(true),
        };
        let call = Call::new(&operation::DELETE_NETWORK, &[id])?;
        self.perform(call.query("deleteInstances", delete)).await
    }

    /// One page of security groups, from `after` on. [`security_groups`](Self::security_groups) returns all of them.
    pub async fn list_security_groups(
        &self,
        filter: &RecordFilter,
        after: Option<&str>,
    ) -> Result<SecurityGroupPage, Error> {
        let call = filter.add_to(Call::new(&operation::LIST_SECURITY_GROUPS, &[])?);
        self.fetch(call.query("after", after)).await
    }

    /// Creates a security group.
    pub async fn create_security_group(
        &self,
        new: &SecurityGroupCreate,
    ) -> Result<SecurityGroup, Error> {
        self.fetch(Call::new(&operation::CREATE_SECURITY_GROUP, &[])?.body(new)?)
            .await
    }

    /// Reads a security group.
    pub async fn read_security_group(&self, id: &str) -> Result<SecurityGroup, Error> {
        self.fetch(Call::new(&operation::READ_SECURITY_GROUP, &[id])?)
            .await
    }

    /// Replaces the rules of a security group.
    pub async fn update_security_group(
        &self,
        id: &str,
        update: &SecurityGroupUpdate,
    ) -> Result<SecurityGroup, Error> {
        self.fetch(Call::new(&operation::UPDATE_SECURITY_GROUP, &[id])?.body(update)?)
            .await
    }

    /// Deletes a security group that no instance uses.
    pub async fn delete_security_group(&self, id: &str) -> Result<(), Error> {
        self.perform(Call::new(&operation::DELETE_SECURITY_GROUP, &[id])?)
            .await
    }

    /// One page of certificate authorities, from `after` on. [`ssh_authorities`](Self::ssh_authorities) returns all of them.
    pub async fn list_ssh_authorities(
        &self,
        filter: &RecordFilter,
        after: Option<&str>,
    ) -> Result<SshAuthorityPage, Error> {
        let call = filter.add_to(Call::new(&operation::LIST_SSH_AUTHORITIES, &[])?);
        self.fetch(call.query("after", after)).await
    }

    /// Registers a certificate authority.
    pub async fn create_ssh_authority(
        &self,
        new: &SshAuthorityCreate,
    ) -> Result<SshAuthority, Error> {
        self.fetch(Call::new(&operation::CREATE_SSH_AUTHORITY, &[])?.body(new)?)
            .await
    }

    /// Reads a certificate authority.
    pub async fn read_ssh_authority(&self, id: &str) -> Result<SshAuthority, Error> {
        self.fetch(Call::new(&operation::READ_SSH_AUTHORITY, &[id])?)
            .await
    }

    /// Deletes a certificate authority that no instance uses.
    pub async fn delete_ssh_authority(&self, id: &str) -> Result<(), Error> {
        self.perform(Call::new(&operation::DELETE_SSH_AUTHORITY, &[id])?)
            .await
    }
}
