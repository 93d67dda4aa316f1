//! A town whose servers are launched, and what their machines boot with.

use std::{sync::Arc, time::Duration};

use fleetwright::{InstanceConfig, InstanceProvisioner};
use fleetwright_memory::MemoryCloud;
use fleetwright_region::{
    controller::Controller,
    mapping::{LaunchPlanner, LaunchSpec, Unplannable},
    monitor::Monitor,
    server::{Phase, Servers},
};

use super::{Town, north, server_id, service};

/// Launches with whatever user data it is given.
struct Plain;

impl LaunchPlanner for Plain {
    fn plan(&self, spec: &LaunchSpec) -> Result<InstanceConfig, Unplannable> {
        let mut config = InstanceConfig::builder("img-1", "m1").build().unwrap();
        config.user_data.clone_from(&spec.user_data);
        Ok(config)
    }
}

/// Controller and monitor of a town, until `story` is over.
pub(crate) async fn during<T>(
    town: &Town,
    cloud: &MemoryCloud,
    story: impl Future<Output = T>,
) -> T {
    let cloud: Arc<dyn InstanceProvisioner> = Arc::new(cloud.provisioner());
    let (store, clock) = (&town.store, &town.clock);
    let controller = Controller::new(
        north(),
        store.clone(),
        cloud.clone(),
        Arc::new(Plain),
        clock.clone(),
    );
    let monitor = Monitor::new(north(), store.clone(), cloud, clock.clone());
    let (controller, monitor) = (controller.unwrap(), monitor.unwrap());
    tokio::select! {
        told = story => told,
        () = controller.run() => panic!("a controller works until it is dropped"),
        () = monitor.run() => panic!("a monitor works until it is dropped"),
    }
}

pub(crate) async fn until(what: impl AsyncFn() -> bool) {
    for _ in 0..1800 {
        if what().await {
            return;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    panic!("never came");
}

pub(crate) async fn runs(servers: &Servers) {
    let is_up = async || {
        let read = servers.read(&service(), server_id(1)).await;
        read.unwrap().phase == Phase::Running
    };
    until(is_up).await;
}

pub(crate) fn user_data_of(cloud: &MemoryCloud) -> String {
    let truth = cloud.oracle().instances().pop().unwrap();
    let data = truth.user_data.unwrap();
    String::from_utf8(data.as_bytes().to_vec()).unwrap()
}
