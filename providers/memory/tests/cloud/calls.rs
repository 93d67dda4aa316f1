//! Every native call as a function, for sweeps over all of them.

use std::fmt::Write as _;

use fleetwright::{
    ImageId, InstanceConfig, InstanceId, InstanceProvisioner as _, InstanceType, Reboot, Result,
    SnapshotRequest, TagChange,
};
use fleetwright_memory::{MemoryCloud, MemoryCloudBuilder, MemoryProvisioner, WireCall};

use crate::support::{all_blue, open, running, stopped, token, with_token};

/// The calls for an instance. The deletion of an image has its own tests, in `images.rs`.
pub(crate) const ALL: [WireCall; 14] = {
    let [calls @ .., WireCall::DeleteImage] = WireCall::ALL else {
        panic!("the deletion of an image is the last call");
    };
    calls
};

/// A cloud that is prepared for a call.
pub(crate) struct Prepared {
    pub(crate) cloud: MemoryCloud,
    pub(crate) provisioner: MemoryProvisioner,
    /// The instance that the call is for.
    pub(crate) id: InstanceId,
}

/// The config that [`send`] launches.
pub(crate) fn launch_config() -> InstanceConfig {
    with_token("swept")
}

/// Prepares a cloud with one instance in a state that `call` accepts, and no transition running.
pub(crate) async fn prepare(call: WireCall, builder: MemoryCloudBuilder) -> Prepared {
    let (cloud, provisioner) = open(builder);
    let id = if matches!(call, WireCall::Start | WireCall::Resize) {
        stopped(&provisioner).await.id
    } else {
        running(&provisioner).await.id
    };
    Prepared {
        cloud,
        provisioner,
        id,
    }
}

/// Sends `call` and drops the value of its result.
pub(crate) async fn send(
    call: WireCall,
    provisioner: &MemoryProvisioner,
    id: &InstanceId,
) -> Result<()> {
    match call {
        WireCall::Launch => provisioner
            .launch_instance(&launch_config())
            .await
            .map(drop),
        WireCall::Terminate => provisioner.terminate_instance(id).await,
        WireCall::Stop => provisioner.stop_instance(id).await,
        WireCall::Start => provisioner.start_instance(id).await.map(drop),
        WireCall::Describe => provisioner.describe_instance(id).await.map(drop),
        WireCall::ListPage => provisioner.list_instances(&all_blue()).await.map(drop),
        WireCall::FindLaunch => provisioner.find_launch(&token("swept")).await.map(drop),
        WireCall::UpdateTags => {
            let change = TagChange::new().set("swept", "yes").unwrap();
            provisioner.update_tags(id, &change).await
        }
        WireCall::Reboot => provisioner.reboot_instance(id, Reboot::Soft).await,
        WireCall::Resize => {
            let to = InstanceType::new("large").unwrap();
            provisioner.resize_instance(id, &to).await
        }
        WireCall::Reimage => {
            let image = ImageId::new("image-2").unwrap();
            provisioner.reimage_instance(id, &image).await
        }
        WireCall::ConsoleOutput => provisioner.console_output(id).await.map(drop),
        WireCall::ConsoleSession => provisioner.console_session(id).await.map(drop),
        WireCall::Snapshot => {
            let request = SnapshotRequest::new("swept").unwrap();
            provisioner.snapshot_image(id, &request).await.map(drop)
        }
        WireCall::DeleteImage => panic!("images.rs has the cases of {call}"),
        other => panic!("{other} has no case here"),
    }
}

/// Whether `call` changes something if it succeeds.
pub(crate) fn changes(call: WireCall) -> bool {
    !matches!(
        call,
        WireCall::Describe
            | WireCall::ListPage
            | WireCall::FindLaunch
            | WireCall::ConsoleOutput
            | WireCall::ConsoleSession
    )
}

/// Returns the full state of the oracle, for comparisons.
pub(crate) fn snapshot_state(cloud: &MemoryCloud) -> String {
    let oracle = cloud.oracle();
    let mut text = format!("{:?}\n{:?}\n", oracle.leftovers(), oracle.images());
    for truth in oracle.instances() {
        writeln!(text, "{truth:?}").unwrap();
    }
    text
}

/// Returns the state that a repeated call must reproduce: everything except launch time, number of
/// boots and disk name.
pub(crate) fn outcome(cloud: &MemoryCloud) -> String {
    let oracle = cloud.oracle();
    let images: Vec<_> = oracle
        .images()
        .into_iter()
        .map(|image| image.name)
        .collect();
    let mut text = format!("{images:?}\n");
    for truth in oracle.instances() {
        let (mut info, token) = (truth.info, truth.token);
        info.launch_time = None;
        let disks = truth.disk.iter().count();
        writeln!(text, "{info:?} {token:?} {disks} {}", truth.holds_machine).unwrap();
    }
    text
}
