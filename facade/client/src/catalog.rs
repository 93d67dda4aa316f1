//! What is on offer, tenants' own images, and the service itself.

use fleetwright_api::{FlavorList, Image, ImageList, RegionList, Version};

use crate::{Client, Error, call::Call, operation};

impl Client {
    /// The regions that an organization can use.
    pub async fn list_regions(&self, organization: &str) -> Result<RegionList, Error> {
        self.fetch(Call::new(&operation::LIST_REGIONS, &[organization])?)
            .await
    }

    /// The flavors of a region.
    pub async fn list_flavors(
        &self,
        organization: &str,
        region: &str,
    ) -> Result<FlavorList, Error> {
        self.fetch(Call::new(
            &operation::LIST_FLAVORS,
            &[organization, region],
        )?)
        .await
    }

    /// The images of a region, with the organization's own.
    pub async fn list_images(&self, organization: &str, region: &str) -> Result<ImageList, Error> {
        self.fetch(Call::new(&operation::LIST_IMAGES, &[organization, region])?)
            .await
    }

    /// Reads an image.
    pub async fn read_image(&self, id: &str) -> Result<Image, Error> {
        self.fetch(Call::new(&operation::READ_IMAGE, &[id])?).await
    }

    /// Requests the deletion of an image that was created as a snapshot.
    pub async fn delete_image(&self, id: &str) -> Result<Image, Error> {
        self.fetch(Call::new(&operation::DELETE_IMAGE, &[id])?)
            .await
    }

    /// Shares an image of a project with its organization.
    pub async fn share_image(&self, id: &str) -> Result<Image, Error> {
        self.fetch(Call::new(&operation::SHARE_IMAGE, &[id])?).await
    }

    /// The version of the service.
    pub async fn read_version(&self) -> Result<Version, Error> {
        self.fetch(Call::new(&operation::READ_VERSION, &[])?).await
    }

    /// Whether the process lives. It is asked once, without a retry.
    pub async fn read_health(&self) -> Result<(), Error> {
        self.perform(Call::new(&operation::READ_HEALTH, &[])?.once())
            .await
    }

    /// Whether the service can serve. It is asked once, without a retry.
    pub async fn read_readiness(&self) -> Result<(), Error> {
        self.perform(Call::new(&operation::READ_READINESS, &[])?.once())
            .await
    }

    /// The metrics of the service, in the format of Prometheus.
    pub async fn read_metrics(&self) -> Result<String, Error> {
        let success = self.send(Call::new(&operation::READ_METRICS, &[])?).await?;
        Ok(success.text())
    }
}
