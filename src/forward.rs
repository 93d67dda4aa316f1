//! Implements the trait for `&P`, `Box<P>` and `Arc<P>`.
//!
//! Forwards every method, also those with a default body, so that a backend's own version is used
//! behind a pointer too.
//!
//! A function that takes `impl InstanceProvisioner` therefore also takes a reference or an
//! `Arc<dyn InstanceProvisioner>`, and layers can wrap either.

use std::{num::NonZeroU32, sync::Arc};

use async_trait::async_trait;

use crate::{
    AccountId, BoxStream, Capabilities, ConsoleOutput, ConsoleSession, ImageId, InstanceConfig,
    InstanceFilter, InstanceId, InstanceInfo, InstanceProvisioner, InstanceStatus, InstanceType,
    LaunchRecord, LaunchToken, ListItem, Reboot, Result, SnapshotRequest, TagChange,
};

macro_rules! forward {
    ($pointer:ty) => {
        #[async_trait]
        #[deny(clippy::missing_trait_methods)]
        impl<P: InstanceProvisioner + ?Sized> InstanceProvisioner for $pointer {
            fn capabilities(&self) -> &Capabilities {
                (**self).capabilities()
            }
            async fn launch_instance(&self, config: &InstanceConfig) -> Result<InstanceInfo> {
                (**self).launch_instance(config).await
            }
            async fn terminate_instance(&self, id: &InstanceId) -> Result<()> {
                (**self).terminate_instance(id).await
            }
            async fn stop_instance(&self, id: &InstanceId) -> Result<()> {
                (**self).stop_instance(id).await
            }
            async fn start_instance(&self, id: &InstanceId) -> Result<InstanceInfo> {
                (**self).start_instance(id).await
            }
            async fn describe_instance(&self, id: &InstanceId) -> Result<InstanceStatus> {
                (**self).describe_instance(id).await
            }
            async fn list_instances(&self, filter: &InstanceFilter) -> Result<Vec<InstanceInfo>> {
                (**self).list_instances(filter).await
            }
            async fn find_launch(&self, token: &LaunchToken) -> Result<LaunchRecord> {
                (**self).find_launch(token).await
            }
            async fn account_id(&self) -> Result<Option<AccountId>> {
                (**self).account_id().await
            }
            async fn launch_instances(
                &self,
                config: &InstanceConfig,
                count: NonZeroU32,
            ) -> Result<Vec<InstanceInfo>> {
                (**self).launch_instances(config, count).await
            }
            async fn terminate_instances(&self, ids: &[InstanceId]) -> Vec<Result<()>> {
                (**self).terminate_instances(ids).await
            }
            async fn stop_instances(&self, ids: &[InstanceId]) -> Vec<Result<()>> {
                (**self).stop_instances(ids).await
            }
            async fn start_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceInfo>> {
                (**self).start_instances(ids).await
            }
            async fn describe_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceStatus>> {
                (**self).describe_instances(ids).await
            }
            fn stream_instances<'a>(
                &'a self,
                filter: &'a InstanceFilter,
            ) -> BoxStream<'a, Result<ListItem>> {
                (**self).stream_instances(filter)
            }
            async fn update_tags(&self, id: &InstanceId, change: &TagChange) -> Result<()> {
                (**self).update_tags(id, change).await
            }
            async fn reboot_instance(&self, id: &InstanceId, how: Reboot) -> Result<()> {
                (**self).reboot_instance(id, how).await
            }
            async fn resize_instance(&self, id: &InstanceId, to: &InstanceType) -> Result<()> {
                (**self).resize_instance(id, to).await
            }
            async fn reimage_instance(&self, id: &InstanceId, image: &ImageId) -> Result<()> {
                (**self).reimage_instance(id, image).await
            }
            async fn console_output(&self, id: &InstanceId) -> Result<ConsoleOutput> {
                (**self).console_output(id).await
            }
            async fn console_session(&self, id: &InstanceId) -> Result<ConsoleSession> {
                (**self).console_session(id).await
            }
            async fn snapshot_image(
                &self,
                id: &InstanceId,
                request: &SnapshotRequest,
            ) -> Result<ImageId> {
                (**self).snapshot_image(id, request).await
            }
            async fn delete_image(&self, image: &ImageId) -> Result<()> {
                (**self).delete_image(image).await
            }
        }
    };
}

forward!(&P);
forward!(Box<P>);
forward!(Arc<P>);
