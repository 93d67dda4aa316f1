//! Waiting with a line on standard error that says how far it is.

use std::time::Duration;

use fleetwright_api::Instance;
use fleetwright_client::Goal;
use indicatif::ProgressBar;

use crate::{commands::instances::words, context::Context, failure::Failure, output::printable};

/// How often the line is brought up to date.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Waits until an instance has reached a goal. On a terminal one line follows the state; elsewhere each new state is a line.
pub(crate) async fn wait(
    context: &Context,
    id: &str,
    goal: Goal,
    deadline: Duration,
) -> Result<Option<Instance>, Failure> {
    let spinner = ProgressBar::new_spinner();
    spinner.enable_steady_tick(Duration::from_millis(120));
    let mut last = String::new();
    let report = |instance: &Instance| {
        let state = printable(&format!("{}: {}", instance.metadata.name, words(instance)));
        if state != last && spinner.is_hidden() {
            eprintln!("{state}");
        }
        spinner.set_message(state.clone());
        last = state;
    };
    let result = context
        .client
        .wait_and_report(id, goal, deadline, LOOK_EVERY, report)
        .await;
    spinner.finish_and_clear();
    Ok(result?)
}
