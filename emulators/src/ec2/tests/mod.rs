//! Tests of the engine, action by action, on a manual clock.

mod addresses;
mod attributes;
mod determinism;
mod external_actions;
mod fleet;
mod identity;
mod images;
mod lag;
mod launch;
mod lifecycles;
mod limits;
mod networks;
mod pages;
mod power;
mod read;
mod storage;
mod tags;
mod tokens;

use std::{sync::Arc, time::Duration};

use fleetwright_chaos::ManualClock;

use super::{
    actions,
    engine::Engine,
    error::Refusal,
    knobs::Knobs,
    wire::{action::Action, params::Params},
};
use crate::cloud::{CloudEngine as _, inject::CallContext};

/// A region on a manual clock.
struct Fixture {
    clock: Arc<ManualClock>,
    engine: Engine,
}

/// The image and type that most tests launch.
const LAUNCH: &str = "RunInstances&ImageId=ami-00000000000000001&InstanceType=m5.large";

impl Fixture {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(configure: impl FnOnce(&mut Knobs)) -> Self {
        let mut knobs = Knobs::default();
        configure(&mut knobs);
        let clock = Arc::new(ManualClock::new());
        let engine = Engine::new(knobs, clock.clone());
        Self { clock, engine }
    }

    /// Executes a call: the action's name, then its parameters as in a query.
    fn call(&mut self, text: &str) -> Result<String, Refusal> {
        self.call_with_context(text, &CallContext::default())
    }

    fn call_with_context(&mut self, text: &str, context: &CallContext) -> Result<String, Refusal> {
        let (action, query) = text.split_once('&').unwrap_or((text, ""));
        let action = Action::from_name(action).unwrap_or_else(|| panic!("no action {action}"));
        self.engine.catch_up();
        let params = Params::parse(query, b"")?;
        actions::execute(action, &params, &mut self.engine, context)
    }

    fn ok(&mut self, text: &str) -> String {
        self.call(text)
            .unwrap_or_else(|refusal| panic!("{text}: {refusal:?}"))
    }

    /// Returns the code of the refusal of a call. Panics if the call succeeds.
    fn refusal_code(&mut self, text: &str) -> String {
        match self.call(text) {
            Ok(response) => panic!("{text}: {response}"),
            Err(refusal) => refusal.code.into_owned(),
        }
    }

    /// Launches `count` instances and returns their ids.
    fn launch(&mut self, count: u32, more: &str) -> Vec<String> {
        let response = self.ok(&format!("{LAUNCH}&MinCount={count}&MaxCount={count}{more}"));
        all(&response, "instanceId")
    }

    /// Launches one instance and waits until it runs.
    fn launch_running(&mut self, more: &str) -> String {
        let id = self.launch(1, more).remove(0);
        self.advance(100);
        id
    }

    fn advance(&mut self, millis: u64) {
        self.clock.advance(Duration::from_millis(millis));
        self.engine.catch_up();
    }

    /// Returns the true state of an instance.
    fn state(&self, id: &str) -> &'static str {
        self.engine
            .instance(id)
            .map_or("gone", |instance| instance.current().state.name())
    }
}

/// Returns the texts of all elements with this name that contain no elements.
fn all(document: &str, name: &str) -> Vec<String> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let texts = document.split(open.as_str()).skip(1);
    texts
        .filter_map(|rest| rest.split(close.as_str()).next())
        .filter(|text| !text.contains('<'))
        .map(str::to_owned)
        .collect()
}

/// Returns the parameters `&InstanceId.1=…&InstanceId.2=…`.
fn id_parameters(ids: &[String]) -> String {
    let one = |(number, id): (usize, &String)| format!("&InstanceId.{}={id}", number + 1);
    ids.iter().enumerate().map(one).collect()
}
