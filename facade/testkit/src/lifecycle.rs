//! A server's whole life over any provisioner: the same test for the memory cloud and for each emulated cloud.

use fleetwright::{OptionalVerb, Reboot};
use fleetwright_region::server::{ChangeMethod, Consent, Health, Phase, Power, ServerView};

use crate::{TestRegion, bare_server, flavor, server_admin, server_id};

/// Whether the controllers have acted on the last change, and the monitor has read the machine since. On a slow computer a scan
/// can take longer than two ticks, and the health is unknown until it ends.
fn settled(view: &ServerView) -> bool {
    view.server.observed_generation == view.server.generation && view.health != Health::Unknown
}

fn machine(view: &ServerView) -> String {
    let instance = view.server.machine.as_ref().unwrap();
    instance.id.to_string()
}

/// Creates a server, stops, starts, reboots and resizes it, replaces it while it is stopped, and deletes it; checks each step.
pub async fn run_server_lifecycle(region: &TestRegion) {
    let (principal, id, servers) = (server_admin(), server_id(1), &region.servers);
    region
        .during(async {
            servers.ensure(&principal, &bare_server(1)).await.unwrap();
            servers.ensure(&principal, &bare_server(1)).await.unwrap();
            let running = region
                .until(id, |view| view.phase == Phase::Running && settled(view))
                .await;
            assert_eq!(running.health, Health::Healthy, "{running:#?}");
            assert!(
                running
                    .server
                    .current_observation()
                    .unwrap()
                    .private_ip
                    .is_some(),
                "{running:#?}"
            );

            servers
                .set_power(&principal, id, Power::Stopped)
                .await
                .unwrap();
            let stopped = region
                .until(id, |view| view.phase == Phase::Stopped && settled(view))
                .await;
            assert_eq!(stopped.health, Health::Healthy, "stopped on purpose");
            assert_eq!(machine(&stopped), machine(&running));

            servers
                .set_power(&principal, id, Power::Running)
                .await
                .unwrap();
            region
                .until(id, |view| view.phase == Phase::Running && settled(view))
                .await;

            if region
                .cloud
                .capabilities()
                .supports(OptionalVerb::RebootInstance)
            {
                servers
                    .request_reboot(&principal, id, Reboot::Hard)
                    .await
                    .unwrap();
                region
                    .until(id, |view| view.phase == Phase::Running && settled(view))
                    .await;
            }

            let mut large = running.server.spec.clone();
            large.flavor = flavor("large");
            let (_, plan) = servers
                .set_spec(&principal, id, &large, Consent::Destroy)
                .await
                .unwrap();
            let resized = region
                .until(id, |view| view.phase == Phase::Running && settled(view))
                .await;
            let same = machine(&resized) == machine(&running);
            assert_eq!(same, !plan.has(ChangeMethod::Replace), "{plan:?}");

            servers
                .set_power(&principal, id, Power::Stopped)
                .await
                .unwrap();
            servers.request_replace(&principal, id).await.unwrap();
            let other = region
                .until(id, |view| view.phase == Phase::Stopped && settled(view))
                .await;
            assert_ne!(machine(&other), machine(&resized));
            assert!(other.server.launch.as_ref().unwrap().incarnation >= 2);

            servers.delete(&principal, id).await.unwrap();
            servers.delete(&principal, id).await.unwrap();
            region.until_gone(id).await;
        })
        .await;
}
