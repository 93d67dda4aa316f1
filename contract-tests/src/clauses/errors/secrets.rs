//! Secrets in errors, debug output, spans and events.
//!
//! The clause makes every call under every fault that a harness offers and looks for the credentials that the
//! harness names, and for the user data that it launches with, in whatever the backend shows.

use std::{cell::OnceCell, error::Error, num::NonZeroU32};

use fleetwright::{
    InstanceConfig, OptionalVerb, ProvisionError, Reboot, Result, TagChange, UserData,
};

use crate::{
    Context, Factory, Failure, Outcome, Pass, Time, WireFault, WireOp, captured_log,
    clauses::calls::{CALLS, Subjects},
    require,
    shown::in_words,
    suite::run_case,
};

/// The user data of the clause. Its length is a multiple of three, so that its base64 form has no padding
/// and can be found.
const USER_DATA: &str = "swordfish-swordfish-swordfish";

/// ERRORS-14: a backend must show neither credentials nor user data in any error, its sources, debug output,
/// span or event, whatever call fails and for whatever reason.
///
/// A secret in one rare error is in the logs of everyone who has had it, for as long as logs are kept.
///
/// Makes every call, its batch twin and the optional verbs under every fault that the harness offers. Looks for the
/// harness's secrets and for the user data of the launches in every error and its sources, in the debug output of
/// handles, configs and results, and in all spans and events from the level `DEBUG` on.
pub(crate) fn errors_14_secrets_are_never_shown(factory: &Factory) -> Outcome {
    let named = OnceCell::new();
    let (outcome, lines) = captured_log::capture(|| {
        run_case(factory, "ERRORS-14", async |cx| {
            let secrets = Secrets::new(cx.harness().secrets())?;
            check(cx, named.get_or_init(|| secrets)).await
        })
    });
    let pass = outcome?;
    if let Some(secrets) = named.get() {
        for line in &lines {
            secrets.require_absent("a span or an event", line)?;
        }
    }
    Ok(pass)
}

/// The texts that must not be shown, each with what it is.
struct Secrets(Vec<(&'static str, String)>);

impl Secrets {
    fn new(named: Vec<String>) -> Result<Self, Failure> {
        let data =
            UserData::new(USER_DATA).map_err(|error| Failure::KitError(error.to_string()))?;
        let coded = serde_json::to_string(&data);
        let coded = coded.map_err(|error| Failure::KitError(error.to_string()))?;
        let mut all = vec![
            ("the user data", USER_DATA.to_owned()),
            ("the user data", coded.trim_matches('"').to_owned()),
            ("the user data", format!("{:?}", USER_DATA.as_bytes())),
        ];
        for secret in named {
            if secret.len() < SHORTEST_SECRET {
                return Err(Failure::KitError(format!(
                    "the harness names a secret of less than {SHORTEST_SECRET} characters, which may be found anywhere"
                )));
            }
            all.push(("a secret of the harness", secret));
        }
        Ok(Self(all))
    }

    /// Requires that a text contains no secret. The message does not show it either.
    fn require_absent(&self, place: &str, text: &str) -> Result<(), Failure> {
        let found = self.0.iter().find(|(_, secret)| text.contains(secret));
        require(found.is_none(), || {
            let what = found.map_or("a secret", |(what, _)| *what);
            format!("{place} contains {what}")
        })
    }

    /// Checks an error with its sources.
    fn check_error(&self, error: &ProvisionError) -> Result<(), Failure> {
        let place = format!("an error of {}", error.operation());
        self.require_absent(&place, &error.to_string())?;
        self.require_absent(&place, error.message())?;
        self.require_absent(
            &format!("the debug output of {place}"),
            &format!("{error:?}"),
        )?;
        let mut source = error.source();
        for _ in 0..MOST_SOURCES {
            let Some(one) = source else { break };
            let place = format!("a source of {place}");
            self.require_absent(&place, &format!("{one} {one:?}"))?;
            source = one.source();
        }
        Ok(())
    }

    /// Checks a result.
    fn check_result<T: std::fmt::Debug>(
        &self,
        what: &str,
        result: &Result<T>,
    ) -> Result<(), Failure> {
        match result {
            Ok(value) => {
                self.require_absent(&format!("the result of {what}"), &format!("{value:?}"))
            }
            Err(error) => self.check_error(error),
        }
    }
}

/// A shorter secret could be a part of something else.
const SHORTEST_SECRET: usize = 8;

/// The most sources of an error that are checked.
const MOST_SOURCES: usize = 32;

/// Returns the faults after which a call returns.
fn faults_that_return(cx: &Context) -> Vec<WireFault> {
    let refusals = [
        WireFault::Throttled(cx.throttle_delay()),
        WireFault::BadCredentials,
        WireFault::Forbidden,
        WireFault::Capacity,
        WireFault::Quota,
    ];
    refusals.into_iter().chain(WireFault::AMBIGUOUS).collect()
}

/// Makes every call under every fault, and checks what is shown.
async fn check(cx: &Context, secrets: &Secrets) -> Outcome {
    let mut config = cx.config_with_token();
    if cx.capabilities().max_user_data_bytes >= USER_DATA.len() {
        let data =
            UserData::new(USER_DATA).map_err(|error| Failure::KitError(error.to_string()))?;
        config.user_data = Some(data);
    }
    let launched = cx.provisioner().launch_instance(&config).await;
    secrets.check_result("a launch", &launched)?;
    secrets.require_absent("the debug output of a config", &format!("{config:?}"))?;
    let subjects = Subjects::launch(cx).await?;
    let handle = cx.open_unrecorded_handle().await;
    secrets.require_absent("the debug output of a handle", &format!("{handle:?}"))?;
    check_verbs(cx, secrets, &subjects).await?;
    let Some(faults) = cx.harness().faults() else {
        return Ok(Pass::Held);
    };
    for (_, wire) in CALLS {
        for fault in faults_that_return(cx) {
            if !faults.supports(&fault) {
                continue;
            }
            if matches!(fault, WireFault::Throttled(_)) {
                // In real time, every delay costs a second.
                if cx.harness().time() == Time::Real && wire != WireOp::Describe {
                    continue;
                }
                // The recorder retries throttled calls, so one refusal is enough.
                faults.inject(wire, 1, fault).await;
            } else {
                faults.inject_always(wire, fault).await;
            }
            check_call(cx, secrets, &subjects, wire, &config).await?;
            faults.clear().await;
        }
    }
    secrets.require_absent("the debug output of a handle", &format!("{handle:?}"))?;
    secrets.require_absent(
        "the debug output of a handle",
        &format!("{:?}", cx.provisioner()),
    )?;
    Ok(Pass::Held)
}

/// Makes one call and its batch twin, and checks their results.
async fn check_call(
    cx: &Context,
    secrets: &Secrets,
    subjects: &Subjects,
    wire: WireOp,
    config: &InstanceConfig,
) -> Result<(), Failure> {
    let handle = cx.provisioner();
    let ids = [subjects.running.clone(), subjects.stopped.clone()];
    match wire {
        WireOp::Launch => {
            let mut config = config.clone();
            config.launch_token = Some(cx.new_token());
            let result = handle.launch_instance(&config).await;
            secrets.check_result("a launch", &result)?;
            config.launch_token = Some(cx.new_token());
            let two = NonZeroU32::MIN.saturating_add(1);
            let result = handle.launch_instances(&config, two).await;
            secrets.check_result("a batch of launches", &result)?;
        }
        WireOp::Describe => {
            for result in handle.describe_instances(&ids).await {
                secrets.check_result("a batch of descriptions", &result)?;
            }
        }
        WireOp::Stop => {
            for result in handle.stop_instances(&ids[..1]).await {
                secrets.check_result("a batch of stops", &result)?;
            }
        }
        WireOp::Start => {
            for result in handle.start_instances(&ids[1..]).await {
                secrets.check_result("a batch of starts", &result)?;
            }
        }
        WireOp::Terminate => {
            for result in handle.terminate_instances(&ids).await {
                secrets.check_result("a batch of terminations", &result)?;
            }
        }
        WireOp::Any | WireOp::List | WireOp::FindLaunch | WireOp::UpdateTags => {}
    }
    let result = subjects.call(cx, wire).await;
    secrets.check_result(&format!("a {}", in_words(&wire)), &result)
}

/// Calls the optional verbs that change little, with and without a fault, and checks their results.
async fn check_verbs(cx: &Context, secrets: &Secrets, subjects: &Subjects) -> Result<(), Failure> {
    let (handle, id) = (cx.provisioner(), &subjects.running);
    let change = TagChange::new().set("kit-added", "new");
    let change = change.map_err(|error| Failure::KitError(error.to_string()))?;
    let mut offered = vec![None];
    if let Some(faults) = cx.harness().faults() {
        let refusals = [WireFault::Forbidden, WireFault::ServerErrorBefore];
        offered.extend(
            refusals
                .into_iter()
                .filter(|fault| faults.supports(fault))
                .map(Some),
        );
    }
    for fault in offered {
        if let (Some(faults), Some(fault)) = (cx.harness().faults(), fault) {
            faults.inject_always(WireOp::Any, fault).await;
        }
        let declared = |verb| cx.capabilities().supports(verb);
        if declared(OptionalVerb::UpdateTags) {
            let result = handle.update_tags(id, &change).await;
            secrets.check_result("a change of tags", &result)?;
        }
        if declared(OptionalVerb::ConsoleOutput) {
            let result = handle.console_output(id).await;
            secrets.check_result("a console output", &result)?;
        }
        if declared(OptionalVerb::RebootInstance) {
            let result = handle.reboot_instance(id, Reboot::Hard).await;
            secrets.check_result("a reboot", &result)?;
        }
        let result = handle.account_id().await;
        secrets.check_result("the account id", &result)?;
        if let Some(faults) = cx.harness().faults() {
            faults.clear().await;
        }
    }
    Ok(())
}
