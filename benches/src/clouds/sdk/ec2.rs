//! EC2's SDK.

use std::time::{Duration, Instant};

use async_trait::async_trait;
use aws_sdk_ec2::{
    Client,
    config::StalledStreamProtectionConfig,
    types::{
        Filter, HttpTokensState, Instance, InstanceMetadataOptionsRequest, InstanceStateName,
        ResourceType, ShutdownBehavior, Tag, TagSpecification,
    },
};
use fleetwright_ec2::aws_config::{BehaviorVersion, Region, SdkConfig};

use super::{Sdk, Seen, TAG, Token};

/// The image of every instance.
pub const IMAGE: &str = "ami-00000000000000001";
/// Their type.
pub const TYPE: &str = "t3.micro";

/// Returns the settings of the SDK for an emulator.
pub fn settings(endpoint: &str) -> SdkConfig {
    let keys = aws_credential_types::Credentials::new("test", "test", None, None, "emulator");
    let keys = aws_credential_types::provider::SharedCredentialsProvider::new(keys);
    SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .endpoint_url(endpoint)
        .credentials_provider(keys)
        // The emulator shares the machine with its clients. Where it gets no processor for some seconds, the SDK would give up a read.
        .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
        .build()
}

/// The client with its default settings.
#[derive(Debug)]
pub struct Ec2Sdk(Client);

impl Ec2Sdk {
    /// Creates a client for an emulator.
    pub fn new(endpoint: &str) -> Self {
        Self(Client::new(&settings(endpoint)))
    }
}

fn seen(instance: &Instance) -> Seen {
    match instance.state().and_then(|state| state.name()) {
        Some(InstanceStateName::Running) => Seen::Running,
        Some(InstanceStateName::Terminated) => Seen::Gone,
        _ => Seen::Changing,
    }
}

fn tags(kind: ResourceType) -> TagSpecification {
    let tag = Tag::builder().key(TAG.0).value(TAG.1).build();
    let tags = TagSpecification::builder().resource_type(kind).tags(tag);
    tags.build()
}

#[async_trait]
impl Sdk for Ec2Sdk {
    async fn launch(&self, name: &str, token: Token, count: u32) -> Vec<String> {
        let count = i32::try_from(count).expect("a small count");
        let metadata = InstanceMetadataOptionsRequest::builder()
            .http_tokens(HttpTokensState::Required)
            .http_put_response_hop_limit(2)
            .build();
        let call = self
            .0
            .run_instances()
            .image_id(IMAGE)
            .instance_type(TYPE.into())
            .min_count(count)
            .max_count(count)
            .metadata_options(metadata)
            .instance_initiated_shutdown_behavior(ShutdownBehavior::Stop)
            .tag_specifications(tags(ResourceType::Instance))
            .tag_specifications(tags(ResourceType::Volume))
            .tag_specifications(tags(ResourceType::NetworkInterface))
            .set_client_token((token == Token::Sent).then(|| name.to_owned()));
        let launched = call.send().await.expect("a launch").instances;
        let launched = launched.unwrap_or_default().into_iter();
        launched.filter_map(|one| one.instance_id).collect()
    }

    async fn describe(&self, id: &str) -> Seen {
        self.poll(&[id.to_owned()]).await[0]
    }

    async fn poll(&self, ids: &[String]) -> Vec<Seen> {
        let mut all = Vec::new();
        for some in ids.chunks(1000) {
            let call = self
                .0
                .describe_instances()
                .set_instance_ids(Some(some.to_vec()));
            let read = call.send().await.expect("a read");
            let read = read.reservations().iter();
            all.extend(read.flat_map(|one| one.instances()).map(seen));
        }
        all
    }

    async fn list(&self) -> (usize, Duration) {
        let (began, mut first, mut count) = (Instant::now(), None, 0);
        let filter = Filter::builder().name(format!("tag:{}", TAG.0));
        let call = self
            .0
            .describe_instances()
            .filters(filter.values(TAG.1).build());
        let mut pages = call.into_paginator().page_size(1000).send();
        while let Some(page) = pages.next().await {
            let page = page.expect("a page");
            first.get_or_insert_with(|| began.elapsed());
            count += page
                .reservations()
                .iter()
                .map(|one| one.instances().len())
                .sum::<usize>();
        }
        (count, first.unwrap_or_default())
    }

    async fn stop(&self, id: &str) {
        let call = self.0.stop_instances().instance_ids(id);
        call.send().await.expect("a stop");
    }

    async fn start(&self, id: &str) {
        let call = self.0.start_instances().instance_ids(id);
        call.send().await.expect("a start");
    }

    async fn terminate(&self, ids: &[String]) {
        let call = self
            .0
            .terminate_instances()
            .set_instance_ids(Some(ids.to_vec()));
        call.send().await.expect("a termination");
    }
}
