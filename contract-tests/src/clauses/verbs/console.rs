//! The optional verbs: console output and console sessions.

use fleetwright::{CloudInstanceState, ErrorKind, OptionalVerb};

use super::{launch_running, require_unsupported};
use crate::{Context, Failure, Outcome, Pass, require};

/// VERBS-05: a backend must return the console output of an instance, and hide it in debug output.
///
/// It is the only evidence of a boot that failed. Needs: verb console_output.
///
/// Waits until the console of a running instance has output, and searches the debug output for it.
pub(crate) async fn verbs_05_console_output(cx: &Context) -> Outcome {
    if !cx.capabilities().supports(OptionalVerb::ConsoleOutput) {
        return require_unsupported(cx, OptionalVerb::ConsoleOutput).await;
    }
    let id = launch_running(cx).await?.id;
    let what = format!("the console of {id}, which runs, returns output");
    let output = cx.eventually(&what, async || {
        let output = cx.provisioner().console_output(&id).await;
        let output = output.map_err(|error| Failure::call_failed("console_output", &error))?;
        Ok((!output.text.is_empty()).then_some(output))
    });
    let output = output.await?;
    // A short output may be part of any text by chance.
    let shown = output.text.len() >= 16 && format!("{output:?}").contains(&output.text);
    require(!shown, || {
        format!("the debug output of {id}'s console contains its output")
    })?;
    Ok(Pass::Held)
}

/// VERBS-06: a backend must open a console of a running instance and of no other, with its address
/// hidden in debug output.
///
/// The address alone gives access. Needs: verb console_session.
///
/// Opens sessions of two running instances, which must have different addresses that debug output
/// does not show. A session of a stopped instance must be refused.
pub(crate) async fn verbs_06_console_session(cx: &Context) -> Outcome {
    if !cx.capabilities().supports(OptionalVerb::ConsoleSession) {
        return require_unsupported(cx, OptionalVerb::ConsoleSession).await;
    }
    let mut opened = Vec::new();
    for _ in 0..2 {
        let info = launch_running(cx).await?;
        let id = info.id;
        let session = cx.provisioner().console_session(&id).await;
        let session = session.map_err(|error| Failure::call_failed("console_session", &error))?;
        require(!session.url.is_empty(), || {
            format!("the console of {id} has no address")
        })?;
        require(!format!("{session:?}").contains(&session.url), || {
            format!("the debug output of {id}'s console session contains its address")
        })?;
        let times = session.expires_at.zip(info.launch_time);
        if let Some((end, launch)) = times.filter(|(end, launch)| end <= launch) {
            return Err(Failure::violated(format!(
                "{id} was launched at {launch}, but its console session ended at {end}"
            )));
        }
        opened.push((id, session.url));
    }
    let [(one, url), (other, other_url)] = opened.as_slice() else {
        return Err(Failure::KitError("there must be two sessions".to_owned()));
    };
    require(url != other_url, || {
        format!("{one} and {other} have the same console")
    })?;
    cx.stop(one).await?;
    cx.wait_for_consistent_state(one, CloudInstanceState::Stopped)
        .await?;
    let result = cx.provisioner().console_session(one).await;
    let call = format!("a console session of {one}, which is stopped,");
    cx.require_refused(&call, result, ErrorKind::WrongState)?;
    Ok(Pass::Held)
}
