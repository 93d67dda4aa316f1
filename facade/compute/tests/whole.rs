//! The whole of it: a tenant asks the service, everybody works, and the tenant is told the truth.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::time::Duration;

use fleetwright_compute::{
    ComputeError,
    instance::{Instance, InstanceSpec, Provisioning},
    service::{NewInstance, UpdateInstance},
};
use fleetwright_facade_testkit::{
    TestFacade, flavor, image, is_running, is_settled, project_user, tenant,
};
use fleetwright_memory::MemoryCloud;
use fleetwright_region::{
    name::Name,
    server::{Consent, Health, Phase},
};

fn stopped(instance: &Instance) -> bool {
    instance.status.phase == Phase::Stopped && is_settled(instance)
}

#[tokio::test(start_paused = true)]
async fn a_tenant_lives_through_everything_an_instance_can() {
    let cloud = MemoryCloud::builder()
        .latency(Duration::from_millis(20))
        .read_lag(Duration::from_secs(3))
        .build();
    let facade = TestFacade::on(&cloud).await;
    facade
        .during(async {
            let (who, instances) = (project_user(tenant(1, 1)), &facade.instances);
            let network = facade.network("net").await;
            let spec = InstanceSpec::new(flavor("small"), image("debian"));
            let new = NewInstance::new(Name::new("web").unwrap(), tenant(1, 1), network, spec);
            let made = instances.create(&who, &new).await.unwrap();
            let id = made.instance.id;
            assert_eq!(made.provisioning, Provisioning::Pending);
            facade.until(id, is_running).await;
            let up = instances.read(&who, id).await.unwrap();
            assert_eq!(
                (up.provisioning, up.health),
                (Provisioning::Provisioned, Health::Healthy)
            );
            facade.assert_balanced(1).await;

            instances.stop(&who, id).await.unwrap();
            facade.until(id, stopped).await;
            instances.replace(&who, id).await.unwrap();
            facade.until(id, stopped).await;
            instances.start(&who, id).await.unwrap();
            facade.until(id, is_running).await;

            // In facade, and then by losing the disk, which takes a word more.
            let view = instances.read(&who, id).await.unwrap();
            let mut wanted = UpdateInstance::of(&view.instance);
            wanted.spec.flavor = flavor("large");
            instances.update(&who, id, &wanted).await.unwrap();
            facade.until(id, is_running).await;
            wanted.spec.image = image("rocky");
            let refused = instances.update(&who, id, &wanted).await.unwrap_err();
            assert!(matches!(refused, ComputeError::NeedsConsent { .. }));
            wanted.consent = Consent::Destroy;
            instances.update(&who, id, &wanted).await.unwrap();
            let done = facade.until(id, is_running).await;
            assert_eq!(done.status.observed_generation, done.generation);
            let machine = facade.server(id).await.unwrap().server.machine.unwrap();
            assert_eq!(machine.applied.image, image("rocky"));
            assert_eq!(machine.applied.flavor, flavor("large"));

            instances.delete(&who, id).await.unwrap();
            instances.delete(&who, id).await.unwrap();
            let again = instances.create(&who, &new).await.unwrap_err();
            assert!(
                matches!(again, ComputeError::NameDeleting { .. }),
                "{again}"
            );
            facade.until_gone(id).await;
            facade.assert_empty().await;
            // The name is free, and so is what paid for it.
            instances.create(&who, &new).await.unwrap();
            facade.until(id, is_running).await;
            facade.assert_balanced(1).await;
        })
        .await;
}
