//! Random operations in random order keep the account consistent.

use std::collections::{BTreeMap, BTreeSet};

use fleetwright::{
    CloudInstanceState, Effect, ErrorKind, ImageId, InstanceId, InstanceProvisioner as _,
    InstanceProvisionerExt as _, InstanceType, LaunchToken, Reboot, TagChange,
};
use fleetwright_memory::{
    Capacity, Fault, MemoryCloud, MemoryProvisioner, OracleInstance, Phase, RefusalReason, Rule,
    WireCall,
};
use proptest::{collection::vec, prelude::*};

use crate::support::{
    LONG, POLICY, all_blue, block_on_paused, blue, brisk, existing_ids, many, open, pass, seconds,
};

const QUOTA: u64 = 6;
const MACHINES: u64 = 4;

/// One random operation. Numbers select an instance, a token, or a fault.
#[derive(Clone, Debug)]
enum Step {
    Launch { token: Option<u8>, count: u32 },
    Stop(usize),
    Start(usize),
    Terminate(usize),
    Tag(usize, u8),
    Resize(usize, bool),
    Reimage(usize),
    Reboot(usize),
    Outside(usize, u8),
    Fault(usize, u8),
    Pass(u64),
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    let (at, few) = (0..8_usize, 0..6_u8);
    prop_oneof![
        4 => (proptest::option::of(0..3_u8), 1..4_u32)
            .prop_map(|(token, count)| Step::Launch { token, count }),
        2 => at.clone().prop_map(Step::Stop),
        2 => at.clone().prop_map(Step::Start),
        2 => at.clone().prop_map(Step::Terminate),
        1 => (at.clone(), few.clone()).prop_map(|(at, to)| Step::Tag(at, to)),
        1 => (at.clone(), any::<bool>()).prop_map(|(at, to)| Step::Resize(at, to)),
        1 => at.clone().prop_map(Step::Reimage),
        1 => at.clone().prop_map(Step::Reboot),
        2 => (at.clone(), few.clone()).prop_map(|(at, how)| Step::Outside(at, how)),
        2 => (0..14_usize, few).prop_map(|(call, how)| Step::Fault(call, how)),
        4 => (0..3_000_u64).prop_map(Step::Pass),
        1 => Just(Step::Reopen),
    ]
}

/// The account under test, and the last observed state of each instance.
struct Model {
    cloud: MemoryCloud,
    provisioner: MemoryProvisioner,
    observed: BTreeMap<InstanceId, CloudInstanceState>,
}

impl Model {
    fn any_id(&self, at: usize) -> InstanceId {
        let all = self.cloud.oracle().instances();
        let pick = (!all.is_empty()).then(|| all[at % all.len()].info.id.clone());
        pick.unwrap_or_else(|| InstanceId::new("i-none").unwrap())
    }

    /// Runs one operation. It may be refused, but then it must have had no effect.
    async fn take(&mut self, step: &Step) {
        if let Step::Pass(millis) = step {
            return pass(std::time::Duration::from_millis(*millis)).await;
        }
        let before = self.cloud.oracle().instances();
        let result = self.act(step).await;
        let Err(error) = result else { return };
        let after = self.cloud.oracle().instances();
        if error.effect() == Effect::None {
            assert_eq!(
                format!("{before:?}"),
                format!("{after:?}"),
                "{step:?}: {error}"
            );
        }
        let used = before
            .iter()
            .filter(|truth| !truth.info.state.is_final())
            .count() as u64;
        let machines = before.iter().filter(|truth| truth.holds_machine).count() as u64;
        if let (Step::Launch { count, .. }, ErrorKind::Quota) = (step, error.kind()) {
            assert!(
                used + u64::from(*count) > QUOTA || fault_code(&error),
                "{error}"
            );
        }
        if let (Step::Launch { count, .. }, ErrorKind::Capacity) = (step, error.kind()) {
            assert!(machines + u64::from(*count) > MACHINES, "{error}");
        }
    }

    async fn act(&mut self, step: &Step) -> fleetwright::Result<()> {
        let handle = &self.provisioner;
        match step {
            Step::Launch { token, count } => {
                let mut config = blue().build().unwrap();
                config.launch_token = token.map(|t| LaunchToken::new(format!("t{t}")).unwrap());
                handle
                    .launch_instances(&config, many(*count))
                    .await
                    .map(drop)
            }
            Step::Stop(at) => handle.stop_instance(&self.any_id(*at)).await,
            Step::Start(at) => handle.start_instance(&self.any_id(*at)).await.map(drop),
            Step::Terminate(at) => handle.terminate_instance(&self.any_id(*at)).await,
            Step::Tag(at, to) => {
                let change = TagChange::new().set("n", to.to_string()).unwrap();
                handle.update_tags(&self.any_id(*at), &change).await
            }
            Step::Resize(at, large) => {
                let to = if *large { "large" } else { "small" };
                let to = InstanceType::new(to).unwrap();
                handle.resize_instance(&self.any_id(*at), &to).await
            }
            Step::Reimage(at) => {
                let image = ImageId::new("image-2").unwrap();
                handle.reimage_instance(&self.any_id(*at), &image).await
            }
            Step::Reboot(at) => {
                handle
                    .reboot_instance(&self.any_id(*at), Reboot::Hard)
                    .await
            }
            Step::Outside(at, how) => {
                let (id, actor) = (self.any_id(*at), self.cloud.external_actor());
                match how {
                    0 => actor.stop(&id),
                    1 => actor.start(&id),
                    2 => actor.terminate(&id),
                    _ => actor.launch(&blue().build().unwrap()).map(drop),
                }
            }
            Step::Fault(call, how) => {
                let fault = match how {
                    0 => Fault::Lost(Phase::Before),
                    1 => Fault::Lost(Phase::After),
                    2 => Fault::ServerError(Phase::After),
                    3 => Fault::Malformed,
                    4 => Fault::Refused(RefusalReason::Throttled(seconds(1))),
                    _ => Fault::FailsLate {
                        code: "X".into(),
                        message: "y".into(),
                    },
                };
                self.cloud
                    .faults()
                    .add(Rule::nth(WireCall::ALL[*call], 1, fault));
                Ok(())
            }
            Step::Pass(_) => Ok(()),
            Step::Reopen => {
                self.provisioner = self.cloud.provisioner();
                Ok(())
            }
        }
    }

    /// Checks the invariants that hold at all times.
    fn check(&mut self) {
        let all = self.cloud.oracle().instances();
        let existing: Vec<&OracleInstance> =
            all.iter().filter(|t| !t.info.state.is_final()).collect();
        for truth in &all {
            let state = truth.info.state;
            let last = self
                .observed
                .insert(truth.info.id.clone(), state)
                .unwrap_or(state);
            assert!(state.can_be_observed_after(last), "{last} to {state}");
            let ended = state.is_final();
            let stops = matches!(state.as_str(), "stopping" | "stopped");
            assert_eq!(truth.disk.is_none(), ended);
            assert_eq!(truth.info.mac_address.is_none(), ended);
            assert_eq!(truth.info.private_ip.is_none(), ended);
            // A terminating instance may or may not have its resources yet.
            if state != CloudInstanceState::Terminating {
                assert_eq!(truth.info.public_ip.is_none(), ended || stops);
                let on_no_machine = ended || state == CloudInstanceState::Stopped;
                assert_eq!(truth.holds_machine, !on_no_machine);
            }
        }
        let left = self.cloud.oracle().leftovers();
        assert_eq!(left.instances.len(), existing.len());
        assert_eq!(
            (left.disks.len(), left.network_cards.len()),
            (existing.len(), existing.len())
        );
        let shown = |truth: &&&OracleInstance| [truth.info.private_ip, truth.info.public_ip];
        let shown: Vec<_> = existing.iter().flat_map(|t| shown(&t)).flatten().collect();
        let unique: BTreeSet<_> = shown.iter().copied().collect();
        assert_eq!(unique.len(), shown.len(), "no address is used twice");
        assert_eq!(unique, left.addresses.iter().copied().collect());
        assert!(existing.len() as u64 <= QUOTA);
        assert!(existing.iter().filter(|t| t.holds_machine).count() as u64 <= MACHINES);
        let mut launches: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for truth in existing {
            if let Some(token) = &truth.token {
                launches
                    .entry(token)
                    .or_default()
                    .insert(truth.info.launch_time);
            }
        }
        assert!(
            launches.values().all(|launch| launch.len() == 1),
            "at most one existing launch for each token"
        );
    }
}

/// Whether an injected fault caused the error.
fn fault_code(error: &fleetwright::ProvisionError) -> bool {
    error.native_code() == Some("AddressesExhausted")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_operations_keep_the_account_consistent_and_cleanable(
        steps in vec(step(), 1..50), seed: u64,
    ) {
        block_on_paused(async {
            let knobs = brisk().seed(seed).quota(QUOTA).capacity(Capacity::of(MACHINES));
            let knobs = knobs.token_after_terminate(seconds(4)).terminated_visible(seconds(3));
            let (cloud, provisioner) = open(knobs);
            let mut model = Model { cloud, provisioner, observed: BTreeMap::new() };
            for step in &steps {
                model.take(step).await;
                model.check();
            }
            model.cloud.faults().clear();
            model.provisioner.terminate_matching(&all_blue(), &POLICY).await.unwrap();
            model.check();
            assert_eq!(existing_ids(&model.cloud), []);
            assert!(model.cloud.oracle().leftovers().is_empty());
            pass(LONG).await;
            assert!(model.cloud.oracle().instances().is_empty(), "all instances are purged");
        });
    }
}
