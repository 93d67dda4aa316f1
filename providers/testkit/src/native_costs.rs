//! Checks that every operation sends as many native calls as the provider declares.
//!
//! The emulator counts the calls. Reads are not stale and nothing is refused, so the count is that of
//! the ordinary case, which a provider must declare.
#![allow(clippy::expect_used, clippy::panic, reason = "tests may panic")]

use std::{num::NonZeroU32, time::Duration};

use fleetwright::{
    CloudInstanceState, InstanceId, InstanceProvisioner, Operation, OptionalVerb, Reboot,
    TagChange,
    wait::{self, WaitPolicy},
};
use fleetwright_contract_tests::Harness as _;

use crate::emulated::{EmulatedAccount, EmulatedHarness, parse_name};

/// How many instances the batches have.
const BATCHES: [u32; 4] = [1, 2, 4, 180];

/// Calls each operation for one instance and for batches, and requires the declared number of native
/// calls. Operations in `followed` follow an operation of the cloud after the call or during it, and may
/// send more calls than declared, never fewer.
pub async fn check_native_costs<A: EmulatedAccount>(
    harness: &EmulatedHarness<A>,
    handle: &dyn InstanceProvisioner,
    followed: &[Operation],
) {
    let mut check = Check {
        harness,
        handle,
        followed,
        wrong: Vec::new(),
    };
    check.single().await;
    for count in BATCHES {
        check.batch(count).await;
    }
    assert!(check.wrong.is_empty(), "{}", check.wrong.join("\n"));
}

struct Check<'a, A: EmulatedAccount> {
    harness: &'a EmulatedHarness<A>,
    handle: &'a dyn InstanceProvisioner,
    followed: &'a [Operation],
    wrong: Vec<String>,
}

impl<A: EmulatedAccount> Check<'_, A> {
    /// Makes a call, and compares the native calls that it needed with the declaration.
    async fn measure<T>(
        &mut self,
        operation: Operation,
        count: u32,
        call: impl Future<Output = T>,
    ) -> T {
        self.wait_for_silence().await;
        let before = self.harness.total_calls();
        let result = call.await;
        let sent = self.harness.total_calls() - before;
        let capabilities = self.handle.capabilities();
        let declared = capabilities.native_calls(operation, count as usize).get();
        let declared = u64::from(declared);
        let may_be_more = self.followed.contains(&operation);
        if sent != declared && !(may_be_more && sent > declared) {
            self.wrong.push(format!(
                "{operation} of {count} sent {sent} native calls, {declared} are declared"
            ));
        }
        result
    }

    /// Waits until nothing in the background sends calls any more.
    async fn wait_for_silence(&self) {
        loop {
            let before = self.harness.total_calls();
            tokio::time::sleep(Duration::from_millis(100)).await;
            if self.harness.total_calls() == before {
                return;
            }
        }
    }

    async fn wait_for(&self, ids: &[InstanceId], state: CloudInstanceState) {
        let policy = WaitPolicy::within(Duration::from_secs(120))
            .delays(Duration::from_millis(50), Duration::from_millis(500));
        let waited = wait::for_state(self.handle, ids, state, &policy).await;
        waited.expect("the instances reach the state");
    }

    /// Checks the calls for one instance, through its life.
    async fn single(&mut self) {
        let (handle, mut config) = (self.handle, self.harness.config());
        let token = parse_name("cost-single");
        config.launch_token = Some(parse_name("cost-single"));
        let launch = handle.launch_instance(&config);
        let launched = self.measure(Operation::LaunchInstance, 1, launch).await;
        let id = launched.expect("a launch").id;
        let ids = std::slice::from_ref(&id);
        self.wait_for(ids, CloudInstanceState::Running).await;
        let found = handle.find_launch(&token);
        let found = self.measure(Operation::FindLaunch, 1, found).await;
        found.expect("a lookup");
        self.account().await;
        let described = handle.describe_instance(&id);
        let described = self
            .measure(Operation::DescribeInstance, 1, described)
            .await;
        described.expect("a description");
        let tagged = TagChange::new().set("cost", "1").expect("a tag");
        for verb in OptionalVerb::ALL {
            if !handle.capabilities().supports(verb) {
                continue;
            }
            let operation = Operation::from(verb);
            match verb {
                OptionalVerb::UpdateTags => {
                    let call = handle.update_tags(&id, &tagged);
                    self.measure(operation, 1, call).await.expect("tags");
                }
                OptionalVerb::RebootInstance => {
                    let call = handle.reboot_instance(&id, Reboot::Soft);
                    self.measure(operation, 1, call).await.expect("a reboot");
                    self.wait_for(ids, CloudInstanceState::Running).await;
                }
                OptionalVerb::ConsoleOutput => {
                    let call = handle.console_output(&id);
                    self.measure(operation, 1, call).await.expect("output");
                }
                OptionalVerb::ConsoleSession => {
                    let call = handle.console_session(&id);
                    self.measure(operation, 1, call).await.expect("a session");
                }
                // They change an instance that the other checks need, or need it in another state.
                OptionalVerb::ResizeInstance
                | OptionalVerb::ReimageInstance
                | OptionalVerb::SnapshotImage => {}
            }
        }
        let stopped = handle.stop_instance(&id);
        let stopped = self.measure(Operation::StopInstance, 1, stopped).await;
        stopped.expect("a stop");
        self.wait_for(ids, CloudInstanceState::Stopped).await;
        let started = handle.start_instance(&id);
        let started = self.measure(Operation::StartInstance, 1, started).await;
        started.expect("a start");
        self.wait_for(ids, CloudInstanceState::Running).await;
        let ended = handle.terminate_instance(&id);
        let ended = self.measure(Operation::TerminateInstance, 1, ended).await;
        ended.expect("a termination");
    }

    /// Checks the calls for the account id. A provider that knows it sends none, and no operation declares less
    /// than one.
    async fn account(&mut self) {
        let before = self.harness.total_calls();
        let known = self.handle.account_id().await.expect("an account id");
        if self.harness.total_calls() > before {
            let call = self.handle.account_id();
            let read = self.measure(Operation::AccountId, 1, call).await;
            assert_eq!(read.expect("an account id"), known);
        }
    }

    /// Checks the calls for a batch, through its life.
    async fn batch(&mut self, count: u32) {
        let (handle, mut config) = (self.handle, self.harness.config());
        config.launch_token = Some(parse_name(&format!("cost-{count}")));
        let number = NonZeroU32::new(count).expect("at least one");
        let launch = handle.launch_instances(&config, number);
        let launched = self
            .measure(Operation::LaunchInstances, count, launch)
            .await;
        let launched = launched.expect("a launch").into_iter();
        let ids: Vec<_> = launched.map(|info| info.id).collect();
        self.wait_for(&ids, CloudInstanceState::Running).await;
        let described = handle.describe_instances(&ids);
        let described = self.measure(Operation::DescribeInstances, count, described);
        require_all(described.await);
        let stopped = handle.stop_instances(&ids);
        require_all(self.measure(Operation::StopInstances, count, stopped).await);
        self.wait_for(&ids, CloudInstanceState::Stopped).await;
        let started = handle.start_instances(&ids);
        require_all(
            self.measure(Operation::StartInstances, count, started)
                .await,
        );
        self.wait_for(&ids, CloudInstanceState::Running).await;
        let ended = handle.terminate_instances(&ids);
        require_all(
            self.measure(Operation::TerminateInstances, count, ended)
                .await,
        );
        self.wait_for(&ids, CloudInstanceState::Terminated).await;
    }
}

/// Requires that every item of a batch succeeded.
fn require_all<T>(results: Vec<fleetwright::Result<T>>) {
    for result in results {
        if let Err(error) = result {
            panic!("{error}");
        }
    }
}
