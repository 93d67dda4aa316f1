//! The whole of it: a tenant asks the service, everybody works, and the tenant is told the truth.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test says what is wrong by failing"
)]

mod support;

use std::time::Duration;

use fleetwright_compute::{
    ComputeError,
    instance::{Instance, InstanceSpec, Provisioning},
    service::{NewInstance, UpdateInstance},
};
use fleetwright_memory::MemoryCloud;
use fleetwright_region::{
    name::Name,
    server::{Consent, Health, Phase},
};

use support::{Place, flavor, image, settled, tenant, user};

fn runs(instance: &Instance) -> bool {
    instance.status.phase == Phase::Running && settled(instance)
}

fn stopped(instance: &Instance) -> bool {
    instance.status.phase == Phase::Stopped && settled(instance)
}

#[tokio::test(start_paused = true)]
async fn a_tenant_lives_through_everything_an_instance_can() {
    let cloud = MemoryCloud::builder()
        .latency(Duration::from_millis(20))
        .read_lag(Duration::from_secs(3))
        .build();
    let place = Place::new(&cloud).await;
    place
        .during(async {
            let (who, instances) = (user(), &place.instances);
            let network = place.network("net").await;
            let spec = InstanceSpec::new(flavor("small"), image("debian"));
            let new = NewInstance::new(Name::new("web").unwrap(), tenant(), network, spec);
            let made = instances.create(&who, &new).await.unwrap();
            let id = made.instance.id;
            assert_eq!(made.provisioning, Provisioning::Pending);
            place.until(id, runs).await;
            let up = instances.read(&who, id).await.unwrap();
            assert_eq!(
                (up.provisioning, up.health),
                (Provisioning::Provisioned, Health::Healthy)
            );
            place.is_paid(1).await;

            instances.stop(&who, id).await.unwrap();
            place.until(id, stopped).await;
            instances.replace(&who, id).await.unwrap();
            place.until(id, stopped).await;
            instances.start(&who, id).await.unwrap();
            place.until(id, runs).await;

            // In place, and then by losing the disk, which takes a word more.
            let view = instances.read(&who, id).await.unwrap();
            let mut wanted = UpdateInstance::of(&view.instance);
            wanted.spec.flavor = flavor("large");
            instances.update(&who, id, &wanted).await.unwrap();
            place.until(id, runs).await;
            wanted.spec.image = image("rocky");
            let refused = instances.update(&who, id, &wanted).await.unwrap_err();
            assert!(matches!(refused, ComputeError::NeedsConsent { .. }));
            wanted.consent = Consent::Destroy;
            instances.update(&who, id, &wanted).await.unwrap();
            let done = place.until(id, runs).await;
            assert_eq!(done.status.observed_generation, done.generation);
            let machine = place.server(id).await.unwrap().server.instance.unwrap();
            assert_eq!(machine.applied.image, image("rocky"));
            assert_eq!(machine.applied.flavor, flavor("large"));

            instances.delete(&who, id).await.unwrap();
            instances.delete(&who, id).await.unwrap();
            let again = instances.create(&who, &new).await.unwrap_err();
            assert!(matches!(again, ComputeError::NameGoing { .. }), "{again}");
            place.until_gone(id).await;
            place.is_empty(&cloud).await;
            // The name is free, and so is what paid for it.
            instances.create(&who, &new).await.unwrap();
            place.until(id, runs).await;
            place.is_paid(1).await;
        })
        .await;
}
