//! Backends that break the family token.

mod compare;
mod find;
mod memory;

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

/// One for each clause of the family, or more.
pub(super) const MUTANTS: &[Mutant] = &[
    mutant(
        "TOKEN-01",
        "token ignored",
        OverrideHarness::factory::<compare::IgnoresTokens>,
    ),
    mutant(
        "TOKEN-01",
        "replay launches another one behind its answer",
        OverrideHarness::factory::<compare::LaunchesBehind>,
    ),
    mutant(
        "TOKEN-02",
        "token matched but config not compared",
        OverrideHarness::factory::<compare::ComparesNothing>,
    ),
    mutant(
        "TOKEN-02",
        "token matched but user data not compared",
        OverrideHarness::factory::<compare::OverlooksUserData>,
    ),
    mutant(
        "TOKEN-02",
        "token matched but type not compared",
        OverrideHarness::factory::<compare::OverlooksType>,
    ),
    mutant(
        "TOKEN-02",
        "token conflict reported as invalid",
        OverrideHarness::factory::<compare::ConflictIsInvalid>,
    ),
    mutant(
        "TOKEN-03",
        "tag order compared",
        OverrideHarness::factory::<compare::ComparesTagOrder>,
    ),
    mutant(
        "TOKEN-03",
        "configs compared by where they lie in memory",
        OverrideHarness::factory::<compare::ComparesAddresses>,
    ),
    mutant(
        "TOKEN-04",
        "replay answers an old snapshot",
        OverrideHarness::factory::<memory::AnswersOldSnapshot>,
    ),
    mutant(
        "TOKEN-04",
        "replay answers the addresses of the launch",
        OverrideHarness::factory::<memory::AnswersOldAddresses>,
    ),
    mutant(
        "TOKEN-04",
        "config compared with the tags of today",
        OverrideHarness::factory::<memory::ComparesTagsOfToday>,
    ),
    mutant(
        "TOKEN-05",
        "failed launch poisons its token",
        OverrideHarness::factory::<memory::PoisonsTokens>,
    ),
    mutant(
        "TOKEN-05",
        "refusal remembered under its token",
        OverrideHarness::factory::<memory::RemembersRefusals>,
    ),
    mutant(
        "TOKEN-06",
        "replay after terminate launches anew",
        OverrideHarness::factory::<memory::LaunchesAnew>,
    ),
    mutant(
        "TOKEN-06",
        "replay after terminate answers the terminated instance",
        OverrideHarness::factory::<memory::AnswersTheDead>,
    ),
    mutant("TOKEN-06", "spent token forgotten before its time", || {
        OverrideHarness::factory_on::<memory::ForgetsEarly>(forgetful)
    }),
    mutant(
        "TOKEN-06",
        "spent token refused after it has launched",
        OverrideHarness::factory::<memory::LaunchesAndRefuses>,
    ),
    mutant(
        "TOKEN-06",
        "token whose time is over launches each time",
        OverrideHarness::factory::<memory::ForgetsForGood>,
    ),
    mutant(
        "TOKEN-06",
        "token whose time is over is a conflict",
        OverrideHarness::factory::<memory::RefusesForgotten>,
    ),
    mutant(
        "TOKEN-06",
        "token forgotten once is never known again",
        || {
            let none = || MemoryHarness::with(|c| c.token_after_terminate(Duration::ZERO));
            OverrideHarness::factory_on::<memory::ForgetsForGood>(none)
        },
    ),
    mutant(
        "TOKEN-07",
        "token kept per handle",
        OverrideHarness::factory::<memory::KeepsPerHandle>,
    ),
    mutant(
        "TOKEN-07",
        "tokens of other handles read only at opening",
        OverrideHarness::factory::<memory::ReadsTokensAtOpening>,
    ),
    mutant(
        "TOKEN-08",
        "token map lost on restart",
        OverrideHarness::factory::<memory::LosesTokensOnRestart>,
    ),
    mutant(
        "TOKEN-08",
        "config of a token lost on restart",
        OverrideHarness::factory::<memory::LosesConfigsOnRestart>,
    ),
    mutant(
        "TOKEN-09",
        "find_launch knows its own launches only",
        OverrideHarness::factory::<find::FindsOwnOnly>,
    ),
    mutant(
        "TOKEN-09",
        "find_launch overlooks stopped instances",
        OverrideHarness::factory::<find::OverlooksStopped>,
    ),
    mutant(
        "TOKEN-10",
        "find_launch fails for a token it does not know",
        OverrideHarness::factory::<find::FailsForUnknown>,
    ),
    mutant(
        "TOKEN-10",
        "find_launch finds everything for a token it does not know",
        OverrideHarness::factory::<find::FindsEverything>,
    ),
    mutant(
        "TOKEN-10",
        "find_launch launches in order to look",
        OverrideHarness::factory::<find::LaunchesToLook>,
    ),
    mutant(
        "TOKEN-11",
        "find_launch finds what is gone",
        OverrideHarness::factory::<find::FindsTheGone>,
    ),
    mutant(
        "TOKEN-11",
        "find_launch forgets a launch with its instance",
        OverrideHarness::factory::<find::ForgetsTheGone>,
    ),
    mutant(
        "TOKEN-11",
        "find_launch forgets what is gone before its time",
        || OverrideHarness::factory_on::<find::ForgetsEarly>(forgetful),
    ),
    mutant(
        "TOKEN-11",
        "find_launch shows another one as gone",
        OverrideHarness::factory::<find::MistakesTheGone>,
    ),
    mutant(
        "TOKEN-12",
        "token made of the config for want of one",
        OverrideHarness::factory::<compare::MergesEqualConfigs>,
    ),
    mutant(
        "TOKEN-12",
        "token made of the user data for want of one",
        OverrideHarness::factory::<compare::MergesEqualUserData>,
    ),
    mutant(
        "TOKEN-13",
        "tokens compared without case",
        OverrideHarness::factory::<Altered<compare::LowerCase>>,
    ),
    mutant(
        "TOKEN-13",
        "tokens cut at 64 characters",
        OverrideHarness::factory::<Altered<compare::CutAt64>>,
    ),
    mutant(
        "TOKEN-13",
        "odd characters of tokens replaced",
        OverrideHarness::factory::<Altered<compare::PlainName>>,
    ),
    mutant(
        "TOKEN-14",
        "same-token race makes two",
        OverrideHarness::factory::<memory::LooksBeforeItLaunches>,
    ),
    mutant(
        "TOKEN-14",
        "same-token race of two handles makes two",
        OverrideHarness::factory::<memory::QueuesPerHandle>,
    ),
    mutant(
        "TOKEN-14",
        "loser of a race is told of an outage",
        OverrideHarness::factory::<memory::LosersMeetAnOutage>,
    ),
    mutant(
        "TOKEN-15",
        "token of one zone launches in another",
        OverrideHarness::factory::<compare::TokenOfOneZone>,
    ),
    mutant(
        "TOKEN-15",
        "native token made of token and zone",
        OverrideHarness::factory::<compare::TokenAndZone>,
    ),
];

/// A cloud that remembers tokens for less than an hour.
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

/// The refusal of a token that is taken.
fn conflict(token: &LaunchToken) -> ProvisionError {
    Call::new("memory", Operation::LaunchInstance).token_conflict(token)
}

/// What a overrides remembers.
pub(super) fn lock<T>(memory: &Mutex<T>) -> MutexGuard<'_, T> {
    memory.lock().unwrap_or_else(PoisonError::into_inner)
}
