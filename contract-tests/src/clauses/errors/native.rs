//! Errors: what a backend makes of each error that its cloud sends.
//!
//! Owns the cells of a table: the harness's native errors, each with its calls. A harness that names none is judged by the
//! kit's own faults, one error for each. A new row of a harness's table is one more error that both clauses judge.

use std::time::Duration;

use fleetwright::{
    Effect, ErrorKind, InstanceConfig, Operation, OptionalVerb, ProvisionError, Reboot, Result,
    RetryAdvice, Scope, SnapshotRequest, TagChange,
};

use tokio::time::sleep;

use super::checks::{require_effect_unknown, require_retry_allowed};
use crate::{
    Context, Failure, Faults, Meaning, NativeError, NotApplicable, Outcome, Pass, WireFault,
    WireOp, clauses::calls::Subjects, shown::in_words,
};

/// ERRORS-15: a backend must report every error of the cloud that the harness names with the kind, the effect and the retry
/// advice that its meaning requires, and with the field that it refuses.
///
/// A cloud has many codes for one meaning, and the rare ones come when a fleet is in trouble. Needs: faults.
///
/// Lets each call fail with each error that the harness names for it, or with the faults of the kit if it names none. A
/// refusal must be without effect, which the instances prove afterwards.
pub(crate) async fn errors_15_native_errors_keep_their_meaning(cx: &Context) -> Outcome {
    let rows = Row::all(cx)?;
    if rows.is_empty() {
        let what = "the harness supports no fault that is an error of the cloud";
        return Err(Failure::NotRun(what.to_owned()));
    }
    let subjects = Subjects::launch(cx).await?;
    for row in &rows {
        for operation in &row.error.calls {
            let error = row.provoke(cx, &subjects, *operation).await?;
            row.require_meaning(&error)?;
        }
    }
    subjects.require_unchanged(cx).await?;
    Ok(Pass::Held)
}

/// ERRORS-16: a backend must give every error of missing capacity or quota a scope that covers the launches which it
/// concerns, and none that could succeed.
///
/// A caller avoids everything in the scope: what is missing in it is tried in vain, and what is too much is never tried. Needs:
/// fault: capacity or quota.
///
/// Launches with each such error, and compares the scopes of the result with the launches that the harness names for it.
pub(crate) async fn errors_16_scope_is_that_of_the_error(cx: &Context) -> Outcome {
    let mut rows = Row::all(cx)?;
    rows.retain(|row| matches!(row.error.meaning, Meaning::Capacity | Meaning::Quota));
    if rows.is_empty() {
        cx.require_applicable(NotApplicable::Capacity)?;
        cx.require_applicable(NotApplicable::Quota)?;
        let what = "the harness supports neither the fault capacity nor the fault quota";
        return Err(Failure::NotRun(what.to_owned()));
    }
    let subjects = Subjects::launch(cx).await?;
    for row in &rows {
        for operation in &row.error.calls {
            let error = row.provoke(cx, &subjects, *operation).await?;
            row.require_scope(&error)?;
        }
    }
    Ok(Pass::Held)
}

/// How often the cloud may throttle a call by itself before its fault is injected.
const MOST_THROTTLED: u32 = 8;

/// An error, and how it is injected.
struct Row {
    error: NativeError,
    /// The fault of the kit that it is, if the harness names no errors.
    fault: Option<WireFault>,
}

impl Row {
    /// Returns the errors that the harness names, or the faults of the kit.
    fn all(cx: &Context) -> Result<Vec<Self>, Failure> {
        let faults = cx.faults(&[])?;
        let named = faults.native_errors();
        if !named.is_empty() {
            let rows = named.into_iter();
            let rows = rows.map(|error| Self { error, fault: None });
            return Ok(rows.collect());
        }
        let own = [
            (
                WireFault::Throttled(cx.throttle_delay()),
                Meaning::Throttled,
            ),
            (WireFault::BadCredentials, Meaning::BadCredentials),
            (WireFault::Forbidden, Meaning::Forbidden),
            (WireFault::Capacity, Meaning::Capacity),
            (WireFault::Quota, Meaning::Quota),
            (WireFault::ServerErrorBefore, Meaning::Outage),
        ];
        let offered = own.into_iter().filter(|(fault, _)| faults.supports(fault));
        let rows = offered.map(|(fault, meaning)| Self {
            error: NativeError::new(in_words(&fault), meaning),
            fault: Some(fault),
        });
        Ok(rows.collect())
    }

    /// Makes a call that fails with the error, and returns what the backend made of it.
    async fn provoke(
        &self,
        cx: &Context,
        subjects: &Subjects,
        operation: Operation,
    ) -> Result<ProvisionError, Failure> {
        let faults = cx.faults(&[])?;
        self.inject(&*faults, operation).await?;
        // The error of a throttled call is wanted, and not a retry.
        let throttles = self.error.meaning == Meaning::Throttled;
        cx.announce(throttles.then_some(&WireFault::Throttled(Duration::ZERO)));
        let mut result = self.call(cx, subjects, operation).await;
        // Unless the cloud has throttled the call by itself, before the fault.
        for _ in 0..MOST_THROTTLED {
            let Ok(Err(error)) = &result else { break };
            if error.kind() != ErrorKind::Throttled || faults.all_injected().await {
                break;
            }
            sleep(error.retry().delay().unwrap_or_default()).await;
            result = self.call(cx, subjects, operation).await;
        }
        cx.announce(None);
        cx.clear_faults(&faults).await?;
        match result? {
            Err(error) => Ok(error),
            Ok(()) => Err(self.violated(operation, "it succeeded")),
        }
    }

    async fn inject(&self, faults: &dyn Faults, operation: Operation) -> Result<(), Failure> {
        if let Some(fault) = &self.fault {
            let wire = WireOp::from(operation);
            faults.inject_always(wire, fault.clone()).await;
            return Ok(());
        }
        if faults.inject_native(operation, &self.error).await {
            return Ok(());
        }
        let error = &self.error;
        Err(Failure::KitError(format!(
            "the harness names the error {error} of {operation} and does not inject it: implement Faults::inject_native"
        )))
    }

    /// Makes a call. None of them is carried out.
    async fn call(
        &self,
        cx: &Context,
        subjects: &Subjects,
        operation: Operation,
    ) -> Result<Result<()>, Failure> {
        let handle = cx.provisioner();
        let two = std::num::NonZeroU32::MIN.saturating_add(1);
        let config = self.config(cx);
        Ok(match operation {
            Operation::LaunchInstance => handle.launch_instance(&config).await.map(drop),
            Operation::LaunchInstances => handle.launch_instances(&config, two).await.map(drop),
            Operation::DescribeInstance
            | Operation::ListInstances
            | Operation::FindLaunch
            | Operation::StopInstance
            | Operation::StartInstance
            | Operation::TerminateInstance => {
                let called = subjects.call(cx, WireOp::from(operation)).await;
                called.map(drop)
            }
            Operation::UpdateTags => {
                require_declared(cx, OptionalVerb::UpdateTags)?;
                let mut change = TagChange::default();
                change.set = cx.config_with_tags(&[("native", "error")])?.tags;
                handle.update_tags(&subjects.running, &change).await
            }
            Operation::RebootInstance => {
                require_declared(cx, OptionalVerb::RebootInstance)?;
                handle
                    .reboot_instance(&subjects.running, Reboot::Soft)
                    .await
            }
            Operation::SnapshotImage => {
                require_declared(cx, OptionalVerb::SnapshotImage)?;
                let name = format!("kit-{}", cx.new_token());
                let request = SnapshotRequest::new(name);
                let request = request.map_err(|error| Failure::KitError(error.to_string()))?;
                let image = handle.snapshot_image(&subjects.running, &request).await;
                image.map(drop)
            }
            Operation::TerminateInstances
            | Operation::StopInstances
            | Operation::StartInstances
            | Operation::DescribeInstances
            | Operation::StreamInstances
            | Operation::AccountId
            | Operation::ResizeInstance
            | Operation::ReimageInstance
            | Operation::ConsoleOutput
            | Operation::ConsoleSession
            | Operation::DeleteImage
            | _ => {
                return Err(Failure::KitError(format!(
                    "the harness names {operation} as a call that fails with {}, which the kit does not make for it",
                    self.error
                )));
            }
        })
    }

    /// Returns the config of a launch with a new token.
    fn config(&self, cx: &Context) -> InstanceConfig {
        let mut config = cx.config_with_token();
        if let Some(placement) = &self.error.placement {
            config.placement = placement.clone();
        }
        config
    }

    /// Requires kind, effect and advice, and the field of a refused value.
    fn require_meaning(&self, error: &ProvisionError) -> Result<(), Failure> {
        let meaning = &self.error.meaning;
        self.require(error, error.kind() == meaning.kind(), || {
            format!("it must be {}", meaning.kind())
        })?;
        if *meaning == Meaning::Outage {
            require_retry_allowed(error)?;
            return require_effect_unknown(error);
        }
        let refused = error.effect() == Effect::None;
        self.require(error, refused, || "a refusal has no effect".to_owned())?;
        let advice = error.retry();
        let waits = matches!(advice, RetryAdvice::After(delay) if !delay.is_zero());
        match meaning {
            Meaning::Throttled | Meaning::Conflict => self.require(error, waits, || {
                "it must advise a retry after a delay".to_owned()
            })?,
            Meaning::Invalid { .. } | Meaning::Unsupported | Meaning::TokenSpent => {
                self.require(error, advice == RetryAdvice::Never, || {
                    "a repetition has the same result, so it must advise no retry".to_owned()
                })?;
            }
            Meaning::BadCredentials | Meaning::Forbidden | Meaning::Capacity | Meaning::Quota => {
                self.require(error, advice != RetryAdvice::SameToken, || {
                    "it must not advise a retry at once".to_owned()
                })?;
            }
            // What is between them may let the next call pass.
            Meaning::NotOfTheCloud | Meaning::Outage => {}
        }
        if let Meaning::Invalid { field: Some(field) } = meaning {
            let named = error.invalid_value().map(fleetwright::InvalidValue::field);
            self.require(error, named == Some(field), || {
                format!("it must name the field {field}")
            })?;
        }
        Ok(())
    }

    /// Requires that the scopes cover what they should, and nothing else.
    fn require_scope(&self, error: &ProvisionError) -> Result<(), Failure> {
        let scopes = error.scopes();
        self.require(error, !scopes.is_empty(), || "it has no scope".to_owned())?;
        let covered = |config| scopes.iter().any(|scope| scope.covers(config));
        let missing = self.error.concerns.iter().find(|config| !covered(config));
        self.require(error, missing.is_none(), || {
            let missing = missing.map(Scope::of);
            format!("its scope must cover {}", crate::shown(&missing))
        })?;
        let spared = self.error.spares.iter().find(|config| covered(config));
        self.require(error, spared.is_none(), || {
            let spared = spared.map(Scope::of);
            format!("its scope must not cover {}", crate::shown(&spared))
        })
    }

    fn require(
        &self,
        error: &ProvisionError,
        holds: bool,
        observed: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        if holds {
            return Ok(());
        }
        let scopes: Vec<_> = error.scopes().iter().map(ToString::to_string).collect();
        let scopes = if scopes.is_empty() {
            String::new()
        } else {
            format!(" [scope: {}]", scopes.join(", "))
        };
        let observed = format!("{}, but: {error}{scopes}", observed());
        Err(self.violated(error.operation(), &observed))
    }

    fn violated(&self, operation: Operation, observed: &str) -> Failure {
        Failure::violated(format!("{operation} with {}: {observed}", self.error))
    }
}

/// Requires that the backend has a verb.
fn require_declared(cx: &Context, verb: OptionalVerb) -> Result<(), Failure> {
    if cx.capabilities().supports(verb) {
        return Ok(());
    }
    let verb = Operation::from(verb);
    Err(Failure::KitError(format!(
        "the harness names {verb} as a call that fails, and the backend does not declare it"
    )))
}
