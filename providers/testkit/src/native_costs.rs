//! Checks that no operation sends more native calls than the provider declares.
//!
//! The emulator counts the calls. Reads are not stale and nothing is refused, so the count is that of
//! the ordinary case, which a provider must declare. Following an operation of the cloud comes in addition to the
//! declared calls, and is not counted.
#![allow(clippy::expect_used, clippy::panic, reason = "tests may panic")]

use std::{num::NonZeroU32, time::Duration};

use fleetwright::{
    CloudInstanceState, InstanceConfig, InstanceFilter, InstanceId, InstanceProvisioner, Operation,
    OptionalVerb, Reboot, SnapshotRequest, TagChange,
    wait::{self, WaitPolicy},
};
use fleetwright_contract_tests::Harness as _;

use crate::emulated::{EmulatedAccount, EmulatedHarness, parse_name};

/// How many instances the batches have.
const BATCHES: [u32; 4] = [1, 2, 4, 180];

/// How long an image of an emulator takes at most until it can be deleted.
const IMAGE_TIME: Duration = Duration::from_millis(500);

/// Calls each operation for one instance and for batches.
///
/// First every call is the first one of its handle and uses every optional part of its request: it must send
/// exactly the declared number of native calls. Then one handle makes all calls, with as little as possible in
/// them: none may send more. Calls of the native operations in `polls` follow an operation of the cloud.
pub async fn check_native_costs<A: EmulatedAccount>(
    harness: &EmulatedHarness<A>,
    options: &A::Options,
    polls: &[&str],
) where
    A::Options: Clone,
{
    for handles in [Handles::OneForEachCall, Handles::One] {
        let mut check = Check {
            harness,
            options,
            polls,
            handles,
            handle: open(harness, options).await,
            wrong: Vec::new(),
        };
        check.single().await;
        for count in BATCHES {
            check.batch(count).await;
        }
        assert!(check.wrong.is_empty(), "{}", check.wrong.join("\n"));
    }
}

async fn open<A: EmulatedAccount>(
    harness: &EmulatedHarness<A>,
    options: &A::Options,
) -> A::Provisioner
where
    A::Options: Clone,
{
    let launch = EmulatedHarness::<A>::launch_config();
    harness.open_with_options(launch, options.clone()).await
}

/// Which handles make the calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Handles {
    /// A new one for each call, which has nothing in its caches. The calls have every optional part.
    OneForEachCall,
    /// One for all calls, which are as small as possible.
    One,
}

struct Check<'a, A: EmulatedAccount> {
    harness: &'a EmulatedHarness<A>,
    options: &'a A::Options,
    polls: &'a [&'a str],
    handles: Handles,
    handle: A::Provisioner,
    wrong: Vec<String>,
}

impl<A: EmulatedAccount> Check<'_, A>
where
    A::Options: Clone,
{
    /// Makes a call, and compares the native calls that it needed with the declaration.
    async fn measure<T>(
        &mut self,
        operation: Operation,
        count: u32,
        call: impl AsyncFnOnce(&A::Provisioner) -> T,
    ) -> T {
        if self.handles == Handles::OneForEachCall {
            self.handle = open(self.harness, self.options).await;
        }
        self.wait_for_silence().await;
        let before = self.counted_calls();
        let result = call(&self.handle).await;
        let sent = self.counted_calls() - before;
        let capabilities = self.handle.capabilities();
        let declared = capabilities.native_calls(operation, count as usize).get();
        let declared = u64::from(declared);
        let is_wrong = match self.handles {
            Handles::OneForEachCall => sent != declared,
            Handles::One => sent > declared,
        };
        if is_wrong {
            let handles = self.handles;
            self.wrong.push(format!(
                "{operation} of {count} sent {sent} native calls, {declared} are declared ({handles:?})"
            ));
        }
        result
    }

    /// Returns how many calls there were that do not follow an operation of the cloud.
    fn counted_calls(&self) -> u64 {
        let polls = self.polls.iter();
        let polls: u64 = polls.map(|name| self.harness.call_count(name)).sum();
        self.harness.total_calls() - polls
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
        let waited = wait::for_state(&self.handle, ids, state, &policy).await;
        waited.expect("the instances reach the state");
    }

    /// Returns the config of a launch with this token.
    fn config(&self, token: &str) -> InstanceConfig {
        let mut config = self.harness.config();
        let token = format!("{token}-{:?}", self.handles);
        config.launch_token = Some(parse_name(&token));
        if self.handles == Handles::OneForEachCall {
            config.tags.insert("old", "1").expect("a tag");
            config.disk_size_gb = NonZeroU32::new(64);
        }
        config
    }

    /// Returns a change of tags. A large one sets and removes tags, one of which is a name that not every cloud
    /// allows in its own tags.
    fn tag_change(&self) -> TagChange {
        let change = TagChange::new().set("cost", "1").expect("a tag");
        if self.handles == Handles::One {
            return change;
        }
        let change = change.set("Cost center", "A b").expect("a tag");
        change.remove("old").expect("a key")
    }

    /// Checks the calls for one instance, through its life.
    async fn single(&mut self) {
        let config = self.config("cost-single");
        let token = config.launch_token.clone().expect("a token");
        let launched = self
            .measure(Operation::LaunchInstance, 1, async |handle| {
                handle.launch_instance(&config).await
            })
            .await;
        let id = launched.expect("a launch").id;
        let ids = std::slice::from_ref(&id);
        self.wait_for(ids, CloudInstanceState::Running).await;
        self.measure(Operation::FindLaunch, 1, async |handle| {
            handle.find_launch(&token).await.expect("a lookup");
        })
        .await;
        self.account().await;
        self.measure(Operation::DescribeInstance, 1, async |handle| {
            handle.describe_instance(&id).await.expect("a description");
        })
        .await;
        self.measure(Operation::ListInstances, 1, async |handle| {
            let all = InstanceFilter::new();
            handle.list_instances(&all).await.expect("a list");
        })
        .await;
        for verb in OptionalVerb::ALL {
            if self.handle.capabilities().supports(verb) {
                self.verb(verb, &id).await;
            }
        }
        self.measure(Operation::StopInstance, 1, async |handle| {
            handle.stop_instance(&id).await.expect("a stop");
        })
        .await;
        self.wait_for(ids, CloudInstanceState::Stopped).await;
        if self
            .handle
            .capabilities()
            .supports(OptionalVerb::ResizeInstance)
        {
            let other = self.harness.other_type().expect("another type");
            self.measure(Operation::ResizeInstance, 1, async |handle| {
                handle.resize_instance(&id, &other).await.expect("a resize");
            })
            .await;
        }
        self.measure(Operation::StartInstance, 1, async |handle| {
            handle.start_instance(&id).await.expect("a start");
        })
        .await;
        self.wait_for(ids, CloudInstanceState::Running).await;
        self.measure(Operation::TerminateInstance, 1, async |handle| {
            handle.terminate_instance(&id).await.expect("a termination");
        })
        .await;
    }

    /// Checks an optional verb on a running instance.
    async fn verb(&mut self, verb: OptionalVerb, id: &InstanceId) {
        let operation = Operation::from(verb);
        match verb {
            OptionalVerb::UpdateTags => {
                let change = self.tag_change();
                self.measure(operation, 1, async |handle| {
                    handle.update_tags(id, &change).await.expect("tags");
                })
                .await;
            }
            OptionalVerb::RebootInstance => {
                self.measure(operation, 1, async |handle| {
                    let rebooted = handle.reboot_instance(id, Reboot::Soft).await;
                    rebooted.expect("a reboot");
                })
                .await;
                let ids = std::slice::from_ref(id);
                self.wait_for(ids, CloudInstanceState::Running).await;
            }
            OptionalVerb::ConsoleOutput => {
                self.measure(operation, 1, async |handle| {
                    handle.console_output(id).await.expect("output");
                })
                .await;
            }
            OptionalVerb::ConsoleSession => {
                self.measure(operation, 1, async |handle| {
                    handle.console_session(id).await.expect("a session");
                })
                .await;
            }
            OptionalVerb::SnapshotImage => {
                let name = match self.handles {
                    Handles::OneForEachCall => "cost-each",
                    Handles::One => "cost-one",
                };
                let request = SnapshotRequest::new(name).expect("a name");
                self.measure(operation, 1, async |handle| {
                    let image = handle.snapshot_image(id, &request).await;
                    image.expect("an image");
                })
                .await;
            }
            OptionalVerb::DeleteImage => {
                let request = SnapshotRequest::new("cost-deleted").expect("a name");
                let image = self.handle.snapshot_image(id, &request).await;
                let image = image.expect("an image");
                // An image cannot be deleted while it is being created.
                tokio::time::sleep(IMAGE_TIME).await;
                self.measure(operation, 1, async |handle| {
                    handle.delete_image(&image).await.expect("a deletion");
                })
                .await;
            }
            // It needs a stopped instance.
            OptionalVerb::ResizeInstance => {}
            OptionalVerb::ReimageInstance => panic!("no provider offers it; measure it here"),
        }
    }

    /// Checks the calls for the account id. A provider that knows it sends none, and no operation declares less
    /// than one.
    async fn account(&mut self) {
        let before = self.harness.total_calls();
        let known = self.handle.account_id().await.expect("an account id");
        if self.harness.total_calls() > before {
            let read = self
                .measure(Operation::AccountId, 1, async |handle| {
                    handle.account_id().await
                })
                .await;
            assert_eq!(read.expect("an account id"), known);
        }
    }

    /// Checks the calls for a batch, through its life.
    async fn batch(&mut self, count: u32) {
        let config = self.config(&format!("cost-{count}"));
        let number = NonZeroU32::new(count).expect("at least one");
        let launched = self
            .measure(Operation::LaunchInstances, count, async |handle| {
                handle.launch_instances(&config, number).await
            })
            .await;
        let launched = launched.expect("a launch").into_iter();
        let ids: Vec<_> = launched.map(|info| info.id).collect();
        self.wait_for(&ids, CloudInstanceState::Running).await;
        self.measure(Operation::DescribeInstances, count, async |handle| {
            require_all(handle.describe_instances(&ids).await);
        })
        .await;
        self.measure(Operation::StopInstances, count, async |handle| {
            require_all(handle.stop_instances(&ids).await);
        })
        .await;
        self.wait_for(&ids, CloudInstanceState::Stopped).await;
        self.measure(Operation::StartInstances, count, async |handle| {
            require_all(handle.start_instances(&ids).await);
        })
        .await;
        self.wait_for(&ids, CloudInstanceState::Running).await;
        self.measure(Operation::TerminateInstances, count, async |handle| {
            require_all(handle.terminate_instances(&ids).await);
        })
        .await;
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
