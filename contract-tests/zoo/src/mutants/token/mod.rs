//! Backends that break the family token.

mod compare;
pub(super) mod fields;
mod find;
pub(super) mod many;
mod options;
mod race;
mod retention;

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use fleetwright::{
    Call, InstanceConfig, InstanceInfo, LaunchToken, Operation, ProvisionError, Result,
};

use super::{Mutant, Override};
use crate::{CallContext, MemoryHarness, OverrideHarness};
use compare::Altered;

const fn mutant(
    violates: &'static str,
    name: &'static str,
    make: fn() -> crate::Factory,
) -> Mutant {
    Mutant {
        name,
        violates,
        make,
    }
}

/// At least one for each clause of the family.
pub(super) const MUTANTS: &[Mutant] = &[
    mutant(
        "TOKEN-01",
        "token ignored",
        OverrideHarness::factory::<compare::IgnoresTokens>,
    ),
    mutant(
        "TOKEN-01",
        "a replay returns the first instance and launches another one",
        OverrideHarness::factory::<compare::LaunchesOnReplay>,
    ),
    mutant(
        "TOKEN-02",
        "a replay does not compare the config",
        OverrideHarness::factory::<compare::ComparesNothing>,
    ),
    mutant(
        "TOKEN-02",
        "a replay does not compare the user data",
        OverrideHarness::factory::<compare::IgnoresUserData>,
    ),
    mutant(
        "TOKEN-02",
        "a replay does not compare the type",
        OverrideHarness::factory::<compare::IgnoresType>,
    ),
    mutant(
        "TOKEN-02",
        "a token conflict is reported as invalid",
        OverrideHarness::factory::<compare::ConflictIsInvalid>,
    ),
    mutant(
        "TOKEN-03",
        "a replay compares the order of tags",
        OverrideHarness::factory::<compare::ComparesTagOrder>,
    ),
    mutant(
        "TOKEN-03",
        "a replay compares configs by their address in memory",
        OverrideHarness::factory::<compare::ComparesAddresses>,
    ),
    mutant(
        "TOKEN-04",
        "a replay returns the state at launch",
        OverrideHarness::factory::<retention::ReturnsOldState>,
    ),
    mutant(
        "TOKEN-04",
        "a replay returns the addresses at launch",
        OverrideHarness::factory::<retention::ReturnsOldAddresses>,
    ),
    mutant(
        "TOKEN-04",
        "a replay compares the config with the current tags",
        OverrideHarness::factory::<retention::ComparesCurrentTags>,
    ),
    mutant(
        "TOKEN-05",
        "a failed launch blocks its token",
        OverrideHarness::factory::<retention::BlocksTokens>,
    ),
    mutant(
        "TOKEN-05",
        "a refused launch is refused again at a replay",
        OverrideHarness::factory::<retention::RemembersRefusals>,
    ),
    mutant(
        "TOKEN-06",
        "a replay after a terminate launches another instance",
        OverrideHarness::factory::<retention::LaunchesSpentTokens>,
    ),
    mutant(
        "TOKEN-06",
        "a replay after a terminate returns the terminated instance",
        OverrideHarness::factory::<retention::ReturnsTerminated>,
    ),
    mutant("TOKEN-06", "spent token forgotten before its time", || {
        OverrideHarness::factory_on::<retention::ForgetsEarly>(forgetful)
    }),
    mutant(
        "TOKEN-06",
        "a spent token is refused after an instance was launched",
        OverrideHarness::factory::<retention::LaunchesAndRefuses>,
    ),
    mutant(
        "TOKEN-06",
        "a forgotten token launches an instance each time",
        OverrideHarness::factory::<retention::ForgetsPermanently>,
    ),
    mutant(
        "TOKEN-06",
        "a forgotten token is a conflict",
        OverrideHarness::factory::<retention::RefusesForgotten>,
    ),
    mutant(
        "TOKEN-06",
        "a token that was forgotten once is never recognized again",
        || {
            let none = || MemoryHarness::with(|c| c.token_after_terminate(Duration::ZERO));
            OverrideHarness::factory_on::<retention::ForgetsPermanently>(none)
        },
    ),
    mutant(
        "TOKEN-07",
        "tokens are known to the launching handle only",
        OverrideHarness::factory::<retention::KeepsPerHandle>,
    ),
    mutant(
        "TOKEN-07",
        "a handle reads the tokens of others only when it is opened",
        OverrideHarness::factory::<retention::ReadsTokensAtOpening>,
    ),
    mutant(
        "TOKEN-08",
        "tokens are lost on restart",
        OverrideHarness::factory::<retention::LosesTokensOnRestart>,
    ),
    mutant(
        "TOKEN-08",
        "the configs of tokens are lost on restart",
        OverrideHarness::factory::<retention::LosesConfigsOnRestart>,
    ),
    mutant(
        "TOKEN-09",
        "find_launch finds only launches of the same handle",
        OverrideHarness::factory::<find::FindsOwnOnly>,
    ),
    mutant(
        "TOKEN-09",
        "find_launch does not find stopped instances",
        OverrideHarness::factory::<find::IgnoresStopped>,
    ),
    mutant(
        "TOKEN-10",
        "find_launch fails for an unknown token",
        OverrideHarness::factory::<find::FailsForUnknown>,
    ),
    mutant(
        "TOKEN-10",
        "find_launch finds all instances for an unknown token",
        OverrideHarness::factory::<find::FindsEverything>,
    ),
    mutant(
        "TOKEN-10",
        "find_launch launches an instance",
        OverrideHarness::factory::<find::LaunchesOnLookup>,
    ),
    mutant(
        "TOKEN-11",
        "find_launch reports a terminated instance as found",
        OverrideHarness::factory::<find::FindsTerminated>,
    ),
    mutant(
        "TOKEN-11",
        "find_launch forgets a launch when its instance is terminated",
        OverrideHarness::factory::<find::ForgetsTerminated>,
    ),
    mutant(
        "TOKEN-11",
        "find_launch forgets a terminated instance earlier than declared",
        || OverrideHarness::factory_on::<find::ForgetsEarly>(forgetful),
    ),
    mutant(
        "TOKEN-11",
        "find_launch reports another instance as terminated",
        OverrideHarness::factory::<find::ReportsWrongTerminated>,
    ),
    mutant(
        "TOKEN-12",
        "a launch without a token gets one derived from its config",
        OverrideHarness::factory::<compare::MergesEqualConfigs>,
    ),
    mutant(
        "TOKEN-12",
        "a launch without a token gets one derived from its user data",
        OverrideHarness::factory::<compare::MergesEqualUserData>,
    ),
    mutant(
        "TOKEN-13",
        "tokens are compared without case",
        OverrideHarness::factory::<Altered<compare::LowerCase>>,
    ),
    mutant(
        "TOKEN-13",
        "tokens are truncated to 64 characters",
        OverrideHarness::factory::<Altered<compare::CutAt64>>,
    ),
    mutant(
        "TOKEN-13",
        "special characters of tokens are replaced",
        OverrideHarness::factory::<Altered<compare::PlainName>>,
    ),
    mutant(
        "TOKEN-14",
        "concurrent launches with one token create two instances",
        OverrideHarness::factory::<retention::ChecksThenLaunches>,
    ),
    mutant(
        "TOKEN-14",
        "concurrent launches with one token through two handles create two instances",
        OverrideHarness::factory::<retention::LocksPerHandle>,
    ),
    mutant(
        "TOKEN-14",
        "a concurrent launch with the same token fails as unavailable",
        OverrideHarness::factory::<retention::ConcurrentIsUnavailable>,
    ),
    mutant(
        "TOKEN-15",
        "a token used in one zone launches again in another",
        OverrideHarness::factory::<compare::TokenOfOneZone>,
    ),
    mutant(
        "TOKEN-15",
        "the native token is derived from token and zone",
        OverrideHarness::factory::<compare::TokenAndZone>,
    ),
    mutant(
        "TOKEN-16",
        "a replay with other options launches again",
        OverrideHarness::factory::<options::ComparesOptions>,
    ),
    mutant(
        "TOKEN-16",
        "a replay of a batch with other options launches again",
        OverrideHarness::factory::<options::ComparesOptionsOfBatches>,
    ),
    mutant(
        "TOKEN-17",
        "the fingerprint depends on the account",
        OverrideHarness::factory::<find::ReportsOtherFingerprint<1>>,
    ),
    mutant(
        "TOKEN-17",
        "the fingerprint of a batch is not that of its config",
        OverrideHarness::factory::<find::ReportsOtherFingerprint<2>>,
    ),
    mutant(
        "TOKEN-18",
        "a batch has native tokens of its own",
        OverrideHarness::factory::<race::TokensOfBatches>,
    ),
    mutant(
        "TOKEN-18",
        "a single launch and a batch at the same moment both launch",
        OverrideHarness::factory::<race::ChecksBatchThenLaunches>,
    ),
    mutant(
        "TOKEN-19",
        "a token launches in two zones at the same moment",
        OverrideHarness::factory::<race::ChecksZoneThenLaunches>,
    ),
];

/// Returns a cloud that remembers tokens for less than an hour.
fn forgetful() -> MemoryHarness {
    MemoryHarness::with(|cloud| cloud.token_after_terminate(Duration::from_secs(2500)))
}

/// Launches `config` with another token, or with none.
async fn launch_with(
    at: CallContext<'_>,
    config: &InstanceConfig,
    token: Option<LaunchToken>,
) -> Result<InstanceInfo> {
    let mut config = config.clone();
    config.launch_token = token;
    at.inner.launch_instance(&config).await
}

/// Returns the refusal of a token that another config has used.
fn conflict(token: &LaunchToken) -> ProvisionError {
    Call::new("memory", Operation::LaunchInstance).token_conflict(token)
}

/// Locks the memory of a mutant.
pub(super) fn lock<T>(memory: &Mutex<T>) -> MutexGuard<'_, T> {
    memory.lock().unwrap_or_else(PoisonError::into_inner)
}
