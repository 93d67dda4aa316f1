//! In any order of creations and deletions, no record refers to a deleted one.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Copy, Debug)]
enum Step {
    MakeNetwork(usize),
    DeleteNetwork(usize, IfUsed),
    Finish(usize),
    MakeGroup(usize, usize),
    DeleteGroup(usize, usize),
    MakeServer(usize, usize),
    DeleteServer(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let number = || 0_usize..3;
    prop_oneof![
        number().prop_map(Step::MakeNetwork),
        number().prop_map(|n| Step::DeleteNetwork(n, IfUsed::Refuse)),
        number().prop_map(|n| Step::DeleteNetwork(n, IfUsed::DeleteFirst)),
        number().prop_map(Step::Finish),
        (number(), number()).prop_map(|(n, g)| Step::MakeGroup(n, g)),
        (number(), number()).prop_map(|(n, g)| Step::DeleteGroup(n, g)),
        (number(), number()).prop_map(|(n, s)| Step::MakeServer(n, s)),
        number().prop_map(Step::DeleteServer),
    ]
}

impl World {
    async fn named(&self, number: usize) -> Option<fleetwright_store::Versioned<Network>> {
        let listed = self
            .networks
            .list(&user(), &Filter::default())
            .await
            .unwrap();
        let name = format!("n{number}");
        listed
            .items
            .into_iter()
            .find(|found| found.value.name.as_str() == name)
    }

    async fn groups_on(&self, network: NetworkId) -> Vec<SecurityGroup> {
        let filter = Filter::default().network(network);
        let listed = self.groups.list(&user(), &filter).await.unwrap();
        listed.items.into_iter().map(|found| found.value).collect()
    }

    /// Carries out a step, or checks that the model has the same reason for the refusal.
    async fn take(&self, step: Step) {
        match step {
            Step::MakeNetwork(n) => {
                let exists = self.named(n).await.is_some();
                let created = self
                    .networks
                    .create(&user(), &new_network(&format!("n{n}")))
                    .await;
                assert_eq!(created.is_err(), exists);
            }
            Step::DeleteNetwork(n, in_use) => {
                let Some(found) = self.named(n).await else {
                    return;
                };
                let used = self.servers_in(found.value.id).await > 0;
                let groups = !self.groups_on(found.value.id).await.is_empty();
                let result = self.networks.delete(&user(), found.value.id, in_use).await;
                match (found.value.state, in_use) {
                    (NetworkState::Ready, IfUsed::Refuse) => {
                        assert_eq!(result.is_err(), used || groups);
                    }
                    (NetworkState::Deleting, _) | (NetworkState::Ready, IfUsed::DeleteFirst) => {
                        let wanted = if used {
                            Deletion::Waiting
                        } else {
                            Deletion::Deleted
                        };
                        assert_eq!(result.unwrap(), wanted);
                    }
                }
            }
            Step::Finish(n) => {
                let Some(found) = self.named(n).await else {
                    return;
                };
                let used = self.servers_in(found.value.id).await > 0;
                match (
                    self.networks.finish(&user(), found.value.id).await,
                    found.value.state,
                ) {
                    (Err(RecordError::NotDeleting(_)), NetworkState::Ready) => {}
                    (Ok(Deletion::Deleted), NetworkState::Deleting) => assert!(!used),
                    (Ok(Deletion::Waiting), NetworkState::Deleting) => assert!(used),
                    (result, state) => panic!("{result:?} {state:?}"),
                }
            }
            Step::MakeGroup(n, g) => {
                let Some(found) = self.named(n).await else {
                    return;
                };
                let name = Name::new(format!("g{g}")).unwrap();
                let groups = self.groups_on(found.value.id).await;
                let taken = groups.iter().any(|group| group.name == name);
                let new = NewSecurityGroup {
                    network: found.value.id,
                    name,
                    rules: Rules::default(),
                };
                let created = self.groups.create(&user(), &new).await;
                assert_eq!(
                    created.is_ok(),
                    !taken && found.value.state == NetworkState::Ready
                );
            }
            Step::DeleteGroup(n, g) => {
                let Some(found) = self.named(n).await else {
                    return;
                };
                let groups = self.groups_on(found.value.id).await;
                if let Some(group) = groups.get(g) {
                    let used = self.servers_in(found.value.id).await > 0;
                    let deleted = self.groups.delete(&user(), group.id).await;
                    assert!(deleted.is_ok() || used);
                }
            }
            Step::MakeServer(n, s) => {
                let Some(found) = self.named(n).await else {
                    return;
                };
                let Ok(open) = self.networks.check_open(&found) else {
                    return;
                };
                let ids: Vec<_> = self
                    .groups_on(found.value.id)
                    .await
                    .iter()
                    .map(|g| g.id)
                    .collect();
                let (groups, checks) = self
                    .groups
                    .for_server(&user(), found.value.id, &ids)
                    .await
                    .unwrap();
                let spec = json!({"network": found.value.id, "security_groups": groups});
                let id = RecordId::new("server", format!("s{s}")).unwrap();
                let make = Transaction::new()
                    .put(id, json!({ "spec": spec }))
                    .check(open);
                let make = checks.into_iter().fold(make, Transaction::check);
                self.store.commit(&make).await.unwrap();
            }
            Step::DeleteServer(s) => self.no_server(&format!("s{s}")).await,
        }
    }

    async fn servers(&self) -> Vec<serde_json::Value> {
        let kind = fleetwright_store::Kind::new("server").unwrap();
        let page = self
            .store
            .list(&fleetwright_store::Query::all(kind))
            .await
            .unwrap();
        page.records
            .into_iter()
            .map(|record| record.value["spec"].clone())
            .collect()
    }

    async fn servers_in(&self, network: NetworkId) -> usize {
        let servers = self.servers().await;
        servers
            .iter()
            .filter(|spec| spec["network"] == network.to_string())
            .count()
    }

    /// Checks that every server's network and groups exist, and every group's network.
    async fn check_references(&self) {
        let networks = self
            .networks
            .list(&user(), &Filter::default())
            .await
            .unwrap()
            .items;
        let groups = self
            .groups
            .list(&user(), &Filter::default())
            .await
            .unwrap()
            .items;
        for spec in self.servers().await {
            assert!(
                networks
                    .iter()
                    .any(|found| spec["network"] == found.value.id.to_string())
            );
            for id in spec["security_groups"].as_array().unwrap() {
                assert!(groups.iter().any(|found| *id == found.value.id.to_string()));
            }
        }
        for group in &groups {
            assert!(
                networks
                    .iter()
                    .any(|found| found.value.id == group.value.network)
            );
        }
    }
}

proptest! {
    // A case has forty steps of several calls each.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_record_refers_to_a_deleted_one(steps in prop::collection::vec(step(), 1..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let world = world();
            for step in steps {
                world.take(step).await;
                world.check_references().await;
            }
        });
    }
}
