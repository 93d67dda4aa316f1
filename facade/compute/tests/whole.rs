//! The whole façade: a tenant calls the service, every loop runs, and the tenant sees the true state.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::time::Duration;

use fleetwright_compute::{
    ComputeError,
    instance::{Instance, InstanceSpec, Provisioning},
    service::{NewInstance, UpdateInstance},
};
use fleetwright_facade_testkit::{
    TestFacade, flavor, image, is_applied, is_running, project_user, tenant,
};
use fleetwright_memory::MemoryCloud;
use fleetwright_region::{
    name::Name,
    server::{Consent, Health, Phase},
};

fn stopped(instance: &Instance) -> bool {
    instance.status.phase == Phase::Stopped && is_applied(instance)
}

#[tokio::test(start_paused = true)]
async fn whole_lifecycle_of_an_instance_works() {
    let cloud = MemoryCloud::builder()
        .latency(Duration::from_millis(20))
        .read_lag(Duration::from_secs(3))
        .build();
    TestFacade::run(&cloud, async |facade| {
        let (principal, instances) = (project_user(tenant(1, 1)), &facade.instances);
        let network = facade.network("net").await;
        let spec = InstanceSpec::new(flavor("small"), image("debian"));
        let new = NewInstance::new(Name::new("web").unwrap(), tenant(1, 1), network, spec);
        let created = instances.create(&principal, &new).await.unwrap();
        let id = created.instance.id;
        assert_eq!(created.provisioning, Provisioning::Pending);
        facade.until(id, is_running).await;
        let running = instances.read(&principal, id).await.unwrap();
        assert_eq!(
            (running.provisioning, running.health),
            (Provisioning::Provisioned, Health::Healthy)
        );
        facade.assert_balanced(1).await;

        instances.stop(&principal, id).await.unwrap();
        facade.until(id, stopped).await;
        instances.replace(&principal, id).await.unwrap();
        facade.until(id, stopped).await;
        instances.start(&principal, id).await.unwrap();
        facade.until(id, is_running).await;

        // In place first, then with the loss of the disk, which needs consent.
        let view = instances.read(&principal, id).await.unwrap();
        let mut wanted = UpdateInstance::of(&view.instance);
        wanted.spec.flavor = flavor("large");
        instances.update(&principal, id, &wanted).await.unwrap();
        facade.until(id, is_running).await;
        wanted.spec.image = image("rocky");
        let refused = instances.update(&principal, id, &wanted).await.unwrap_err();
        assert!(matches!(refused, ComputeError::NeedsConsent { .. }));
        wanted.consent = Consent::Destroy;
        instances.update(&principal, id, &wanted).await.unwrap();
        let done = facade.until(id, is_running).await;
        assert_eq!(done.status.observed_generation, done.generation);
        let machine = facade.server(id).await.unwrap().server.machine.unwrap();
        assert_eq!(machine.applied.image, image("rocky"));
        assert_eq!(machine.applied.flavor, flavor("large"));

        instances.delete(&principal, id).await.unwrap();
        instances.delete(&principal, id).await.unwrap();
        let again = instances.create(&principal, &new).await.unwrap_err();
        assert!(
            matches!(again, ComputeError::NameDeleting { .. }),
            "{again}"
        );
        facade.until_gone(id).await;
        facade.assert_empty().await;
        // The name and the quota are free again.
        instances.create(&principal, &new).await.unwrap();
        facade.until(id, is_running).await;
        facade.assert_balanced(1).await;
    })
    .await;
}
