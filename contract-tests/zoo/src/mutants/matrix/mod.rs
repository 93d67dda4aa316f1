//! Backends that break the family matrix: in one operation, with one fault, at one native call.
//!
//! The matrix overlaps with all other families by design, so no mutant must violate it alone.

mod later;
mod reports;
mod rest;

use std::collections::BTreeSet;
use std::sync::Mutex;

use fleetwright::{ErrorKind, LaunchToken, ProvisionError, Result};

use self::rest::{
    AnotherAccountAfterFailure, SessionNamesAnotherCall, SessionReboots, ThrottledSessionStops,
    UnreadableAccountIsForbidden,
};
use self::{
    later::{
        ForgetsDroppedBatch, LaunchesOneMore, LeavesDisksOfLost, LosesTagsOnRetry,
        LosesUserDataOnRetry, NamesImageAnew, ResizesOthers, StartsOthers, StoresTokenLate,
        TerminatesOthers,
    },
    reports::{
        BatchNamesNoSurvivors, DescribesNothingAsPending, FailedTagsAreDone, FindsLaunchOfNobody,
        LostBatchHasNoEffect, LostResizeHasNoEffect, LostTagsAreFinal, NoAccessIsForbidden,
        NotFoundForServerError, QuotaIsTemporary, RefusesRetryOfBatch, ShowsConfigInCause,
        ShowsConfigOfBatch, StopsSwallowErrors, StreamFailsAsConflict, TagsNameAnotherCall,
        TerminationsSwallowErrors, ThrottledTerminationsAreRetried, TruncatesFailedDescriptions,
    },
};
use super::{Mutant, Override, leaks, token::lock};
use crate::{CallContext, OverrideHarness};

/// At least two for each clause of the family.
pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "a batch launch whose response was lost has no effect",
        violates: "MATRIX-01",
        make: OverrideHarness::factory::<LostBatchHasNoEffect>,
    },
    Mutant {
        name: "a batch launch that is refused at its second native call has no effect",
        violates: "MATRIX-01",
        make: OverrideHarness::factory::<BatchNamesNoSurvivors>,
    },
    Mutant {
        name: "a batch of stops swallows internal errors",
        violates: "MATRIX-01",
        make: OverrideHarness::factory::<StopsSwallowErrors>,
    },
    Mutant {
        name: "a batch of terminations swallows internal errors",
        violates: "MATRIX-01",
        make: OverrideHarness::factory::<TerminationsSwallowErrors>,
    },
    Mutant {
        name: "a change of tags without credentials is done",
        violates: "MATRIX-01",
        make: OverrideHarness::factory::<FailedTagsAreDone>,
    },
    Mutant {
        name: "a resize whose response was lost has no effect",
        violates: "MATRIX-01",
        make: OverrideHarness::factory::<LostResizeHasNoEffect>,
    },
    Mutant {
        name: "an internal error is not found in a batch of descriptions",
        violates: "MATRIX-02",
        make: OverrideHarness::factory::<NotFoundForServerError>,
    },
    Mutant {
        name: "a batch of starts without credentials is forbidden",
        violates: "MATRIX-02",
        make: OverrideHarness::factory::<NoAccessIsForbidden>,
    },
    Mutant {
        name: "a stream that cannot be parsed fails as a conflict",
        violates: "MATRIX-02",
        make: OverrideHarness::factory::<StreamFailsAsConflict>,
    },
    Mutant {
        name: "a failed change of tags names another call",
        violates: "MATRIX-02",
        make: OverrideHarness::factory::<TagsNameAnotherCall>,
    },
    Mutant {
        name: "a batch of descriptions that fails returns one error",
        violates: "MATRIX-02",
        make: OverrideHarness::factory::<TruncatesFailedDescriptions>,
    },
    Mutant {
        name: "a change of tags whose response was lost advises no retry",
        violates: "MATRIX-03",
        make: OverrideHarness::factory::<LostTagsAreFinal>,
    },
    Mutant {
        name: "a throttled batch of terminations is to be retried at once",
        violates: "MATRIX-03",
        make: OverrideHarness::factory::<ThrottledTerminationsAreRetried>,
    },
    Mutant {
        name: "the retry of a batch launch is a token conflict",
        violates: "MATRIX-03",
        make: OverrideHarness::factory::<RefusesRetryOfBatch>,
    },
    Mutant {
        name: "the quota of a batch launch is to be retried at once",
        violates: "MATRIX-03",
        make: OverrideHarness::factory::<QuotaIsTemporary>,
    },
    Mutant {
        name: "a batch launch stores its token after the instances are created",
        violates: "MATRIX-04",
        make: OverrideHarness::factory::<StoresTokenLate>,
    },
    Mutant {
        name: "a batch launch that was dropped is launched again",
        violates: "MATRIX-04",
        make: OverrideHarness::factory::<ForgetsDroppedBatch>,
    },
    Mutant {
        name: "the retry of a batch launch launches one more",
        violates: "MATRIX-04",
        make: OverrideHarness::factory::<LaunchesOneMore>,
    },
    Mutant {
        name: "a failed batch of terminations terminates a stopped instance",
        violates: "MATRIX-05",
        make: OverrideHarness::factory::<TerminatesOthers>,
    },
    Mutant {
        name: "a failed start starts everything that is stopped",
        violates: "MATRIX-05",
        make: OverrideHarness::factory::<StartsOthers>,
    },
    Mutant {
        name: "a failed resize changes the tags of others",
        violates: "MATRIX-05",
        make: OverrideHarness::factory::<ResizesOthers>,
    },
    Mutant {
        name: "the retry of a batch launch has no user data",
        violates: "MATRIX-06",
        make: OverrideHarness::factory::<LosesUserDataOnRetry>,
    },
    Mutant {
        name: "the retry of a change of tags removes others",
        violates: "MATRIX-06",
        make: OverrideHarness::factory::<LosesTagsOnRetry>,
    },
    Mutant {
        name: "a batch of descriptions that fails returns pending",
        violates: "MATRIX-06",
        make: OverrideHarness::factory::<DescribesNothingAsPending>,
    },
    Mutant {
        name: "a lookup that fails finds nothing",
        violates: "MATRIX-06",
        make: OverrideHarness::factory::<FindsLaunchOfNobody>,
    },
    Mutant {
        name: "the disks of a batch of terminations whose response was lost are left",
        violates: "MATRIX-07",
        make: OverrideHarness::factory::<LeavesDisksOfLost>,
    },
    Mutant {
        name: "the retry of a snapshot creates an image under another name",
        violates: "MATRIX-07",
        make: OverrideHarness::factory::<NamesImageAnew>,
    },
    Mutant {
        name: "the error of a batch launch whose response was lost has its config",
        violates: "MATRIX-08",
        make: OverrideHarness::factory::<ShowsConfigOfBatch>,
    },
    Mutant {
        name: "the cause of an internal error has the user data",
        violates: "MATRIX-08",
        make: OverrideHarness::factory::<ShowsConfigInCause>,
    },
    Mutant {
        name: "every failed read of the account is forbidden",
        violates: "MATRIX-02",
        make: OverrideHarness::factory::<UnreadableAccountIsForbidden>,
    },
    Mutant {
        name: "the account is another one after a failed read of it",
        violates: "MATRIX-06",
        make: OverrideHarness::factory::<AnotherAccountAfterFailure>,
    },
    Mutant {
        name: "the error of a console session names the console output",
        violates: "MATRIX-02",
        make: OverrideHarness::factory::<SessionNamesAnotherCall>,
    },
    Mutant {
        name: "a throttled console session stops the instance",
        violates: "MATRIX-01",
        make: OverrideHarness::factory::<ThrottledSessionStops>,
    },
    Mutant {
        name: "a console session reboots the instance",
        violates: "MATRIX-01",
        make: OverrideHarness::factory::<SessionReboots>,
    },
];

/// Changes an error of one of these kinds.
fn change<T>(
    result: Result<T>,
    kinds: &[ErrorKind],
    change: impl FnOnce(ProvisionError) -> ProvisionError,
) -> Result<T> {
    result.map_err(|error| {
        if kinds.contains(&error.kind()) {
            change(error)
        } else {
            error
        }
    })
}

/// The tokens of launches that failed.
type Failed = Mutex<BTreeSet<LaunchToken>>;

/// Returns whether a launch with the token had failed before.
fn failed_before(failed: &Failed, token: Option<&LaunchToken>) -> bool {
    token.is_some_and(|token| lock(failed).contains(token))
}
