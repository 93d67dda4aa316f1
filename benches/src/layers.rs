//! What the layers cost: a call over a backend that does nothing, bare and under every layer.

use std::sync::Arc;

use fleetwright::{
    InstanceConfig, InstanceId, InstanceProvisioner, LaunchToken,
    layer::{
        Coalesce, CoalescePolicy, Layered, Limit, LimitPolicy, Metrics, Rate, Retry, RetryPolicy,
        Stack, Timeout, TimeoutPolicy, Trace,
    },
};
use tokio::runtime::Runtime;

use crate::{
    idle::Idle,
    measure::{Effort, Row, Variant, allocations, interleave},
};

/// A call that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// `describe_instance`.
    Describe,
    /// `launch_instance` with a token.
    Launch,
}

impl Call {
    /// Both calls.
    pub const ALL: [Self; 2] = [Self::Describe, Self::Launch];

    /// Returns the name of the method.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Describe => "describe_instance",
            Self::Launch => "launch_instance",
        }
    }

    /// Makes the call `count` times.
    pub fn repeat(self, runtime: &Runtime, provisioner: &dyn InstanceProvisioner, count: u32) {
        let id = InstanceId::new("i-1").expect("a valid id");
        let token = LaunchToken::new("bench-1").expect("a valid token");
        let config = InstanceConfig::builder("image-1", "small").launch_token(token);
        let config = config.build().expect("a valid config");
        runtime.block_on(async {
            for _ in 0..count {
                match self {
                    Self::Describe => drop(provisioner.describe_instance(&id).await),
                    Self::Launch => drop(provisioner.launch_instance(&config).await),
                }
            }
        });
    }

    /// Counts the allocations of one call, after some others.
    pub fn allocations(self, runtime: &Runtime, provisioner: &dyn InstanceProvisioner) -> u64 {
        const CALLS: u32 = 8;
        self.repeat(runtime, provisioner, CALLS);
        let few = allocations(|| self.repeat(runtime, provisioner, CALLS));
        let many = allocations(|| self.repeat(runtime, provisioner, 2 * CALLS));
        let (counted, calls) = (many - few, u64::from(CALLS));
        assert_eq!(
            counted % calls,
            0,
            "calls make different numbers of allocations"
        );
        counted / calls
    }
}

/// A provisioner of any type.
pub type Shared = Arc<dyn InstanceProvisioner>;

/// Returns the backend bare, under each layer alone, and under all of them.
pub fn variants() -> Vec<(&'static str, Shared)> {
    let idle = || -> Shared { Arc::new(Idle::default()) };
    let minute = std::time::Duration::from_secs(60);
    vec![
        ("bare", idle()),
        ("Trace", Arc::new(Layered::new(idle(), Trace))),
        ("Metrics", Arc::new(Layered::new(idle(), Metrics))),
        (
            "Timeout",
            Arc::new(Layered::new(
                idle(),
                Timeout::new(TimeoutPolicy::new(minute)),
            )),
        ),
        (
            "Coalesce",
            Arc::new(Coalesce::new(idle(), CoalescePolicy::default())),
        ),
        (
            "Retry",
            Arc::new(Layered::new(idle(), Retry::new(RetryPolicy::default()))),
        ),
        (
            "Limit",
            Arc::new(Layered::new(idle(), Limit::new(&without_waiting()))),
        ),
        ("Stack::default()", stack().wrap(Idle::default())),
    ]
}

/// Returns the default stack, with rates that no measurement reaches.
pub fn stack() -> Stack {
    Stack::default().limit(without_waiting())
}

fn without_waiting() -> LimitPolicy {
    let many = std::num::NonZeroU32::new(1_000_000_000).expect("not zero");
    let all = fleetwright::Operation::ALL;
    LimitPolicy::default().with(&all, Rate::per_second(many))
}

/// Returns a runtime of one thread.
pub fn runtime() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().build().expect("a runtime")
}

/// Measures every variant of every call.
pub fn run(effort: Effort) -> Vec<Row> {
    let (runtime, provisioners) = (runtime(), variants());
    let mut rows = Vec::new();
    for call in Call::ALL {
        let mut each: Vec<Variant<'_>> = provisioners
            .iter()
            .map(|(name, provisioner)| -> Variant<'_> {
                let runtime = &runtime;
                let repeat = Box::new(move |count| call.repeat(runtime, provisioner, count));
                ((*name).to_owned(), repeat)
            })
            .collect();
        let times = interleave(effort, &mut each);
        for ((name, provisioner), (median_ns, spread_ns)) in provisioners.iter().zip(times) {
            rows.push(Row {
                group: "layers",
                operation: call.name().to_owned(),
                variant: (*name).to_owned(),
                median_ns,
                spread_ns,
                allocations: Some(call.allocations(&runtime, provisioner)),
                ..Row::default()
            });
        }
    }
    rows
}
