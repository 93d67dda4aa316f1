//! Implements the trait for `&P`, `Box<P>` and `Arc<P>`.
//!
//! Forwards every method, also those with a default body, so that a backend's own version is used
//! behind a pointer too.
//!
//! A function that takes `impl InstanceProvisioner` therefore also takes a reference or an
//! `Arc<dyn InstanceProvisioner>`, and layers can wrap either.

use std::{num::NonZeroU32, sync::Arc};

use crate::{
    AccountId, BoxStream, Capabilities, ConsoleOutput, ConsoleSession, ImageId, InstanceConfig,
    InstanceFilter, InstanceId, InstanceInfo, InstanceProvisioner, InstanceStatus, InstanceType,
    LaunchRecord, LaunchToken, ListItem, Reboot, Result, SnapshotRequest, TagChange,
};

/// Writes async methods of [`InstanceProvisioner`] that return the future of another call as it is.
///
/// `async_trait` would put it into a second box. A body gets `this`, which is `self` with the lifetime of the future.
macro_rules! forwarding_methods {
    ($(fn $name:ident<$($life:lifetime),*>($this:ident $(, $arg:ident: $type:ty)*) -> $output:ty $body:block)*) => {
        $(fn $name<'this: 'future, $($life: 'future,)* 'future>(
            &'this self $(, $arg: $type)*
        ) -> $crate::BoxFuture<'future, $output>
        where
            Self: 'future,
        {
            let $this: &'future Self = self;
            $body
        })*
    };
}

pub(crate) use forwarding_methods;

macro_rules! forward {
    ($pointer:ty) => {
        #[deny(clippy::missing_trait_methods)]
        impl<P: InstanceProvisioner + ?Sized> InstanceProvisioner for $pointer {
            fn capabilities(&self) -> &Capabilities {
                (**self).capabilities()
            }
            fn stream_instances<'a>(
                &'a self,
                filter: &'a InstanceFilter,
            ) -> BoxStream<'a, Result<ListItem>> {
                (**self).stream_instances(filter)
            }
            forwarding_methods! {
                fn launch_instance<'a>(this, config: &'a InstanceConfig) -> Result<InstanceInfo> {
                    (**this).launch_instance(config)
                }
                fn terminate_instance<'a>(this, id: &'a InstanceId) -> Result<()> {
                    (**this).terminate_instance(id)
                }
                fn stop_instance<'a>(this, id: &'a InstanceId) -> Result<()> {
                    (**this).stop_instance(id)
                }
                fn start_instance<'a>(this, id: &'a InstanceId) -> Result<InstanceInfo> {
                    (**this).start_instance(id)
                }
                fn describe_instance<'a>(this, id: &'a InstanceId) -> Result<InstanceStatus> {
                    (**this).describe_instance(id)
                }
                fn list_instances<'a>(this, filter: &'a InstanceFilter) -> Result<Vec<InstanceInfo>> {
                    (**this).list_instances(filter)
                }
                fn find_launch<'a>(this, token: &'a LaunchToken) -> Result<LaunchRecord> {
                    (**this).find_launch(token)
                }
                fn account_id<>(this) -> Result<Option<AccountId>> {
                    (**this).account_id()
                }
                fn launch_instances<'a>(this, config: &'a InstanceConfig, count: NonZeroU32) -> Result<Vec<InstanceInfo>> {
                    (**this).launch_instances(config, count)
                }
                fn terminate_instances<'a>(this, ids: &'a [InstanceId]) -> Vec<Result<()>> {
                    (**this).terminate_instances(ids)
                }
                fn stop_instances<'a>(this, ids: &'a [InstanceId]) -> Vec<Result<()>> {
                    (**this).stop_instances(ids)
                }
                fn start_instances<'a>(this, ids: &'a [InstanceId]) -> Vec<Result<InstanceInfo>> {
                    (**this).start_instances(ids)
                }
                fn describe_instances<'a>(this, ids: &'a [InstanceId]) -> Vec<Result<InstanceStatus>> {
                    (**this).describe_instances(ids)
                }
                fn update_tags<'a, 'b>(this, id: &'a InstanceId, change: &'b TagChange) -> Result<()> {
                    (**this).update_tags(id, change)
                }
                fn reboot_instance<'a>(this, id: &'a InstanceId, how: Reboot) -> Result<()> {
                    (**this).reboot_instance(id, how)
                }
                fn resize_instance<'a, 'b>(this, id: &'a InstanceId, to: &'b InstanceType) -> Result<()> {
                    (**this).resize_instance(id, to)
                }
                fn reimage_instance<'a, 'b>(this, id: &'a InstanceId, image: &'b ImageId) -> Result<()> {
                    (**this).reimage_instance(id, image)
                }
                fn console_output<'a>(this, id: &'a InstanceId) -> Result<ConsoleOutput> {
                    (**this).console_output(id)
                }
                fn console_session<'a>(this, id: &'a InstanceId) -> Result<ConsoleSession> {
                    (**this).console_session(id)
                }
                fn snapshot_image<'a, 'b>(this, id: &'a InstanceId, request: &'b SnapshotRequest) -> Result<ImageId> {
                    (**this).snapshot_image(id, request)
                }
                fn delete_image<'a>(this, image: &'a ImageId) -> Result<()> {
                    (**this).delete_image(image)
                }
            }
        }
    };
}

forward!(&P);
forward!(Box<P>);
forward!(Arc<P>);
