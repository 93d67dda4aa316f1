//! Shows the layers: `cargo run -p layers`.
//!
//! Four scenarios on a simulated cloud that throttles, fails and lacks capacity. At the end it prints
//! some spans of the calls and the metrics that Prometheus would scrape. With `--stay` it serves the
//! metrics until Ctrl-C.

mod scrape;
mod spans;

use std::{error::Error, net::SocketAddr, num::NonZeroU32, sync::Arc, time::Duration};

use clap::Parser;
use fleetwright::{
    InstanceConfig, InstanceFilter, InstanceProvisioner, InstanceProvisionerExt as _, Market,
    Operation, Zone,
    layer::{Alternative, FallbackPolicy, LimitPolicy, Rate, RetryBudget, RetryPolicy, Stack},
    wait::{self, WaitPolicy},
};
use fleetwright_memory::{Capacity, Fault, MemoryCloud, Phase, Rule, Timing, WireCall};
use futures_util::future::join_all;
use tracing_subscriber::layer::SubscriberExt as _;

/// Shows the layers on a simulated cloud.
#[derive(Debug, Parser)]
#[command(name = "layers", version)]
struct Arguments {
    /// Address of the metrics endpoint; port 0 selects a free port.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Serve the metrics until Ctrl-C.
    #[arg(long)]
    stay: bool,
}

const FLEET_SIZE: u32 = 60;
const FLEET: &str = "layers";

type StepResult = Result<(), Box<dyn Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> StepResult {
    let arguments = Arguments::parse();
    let address = scrape::serve(arguments.listen)?;
    let calls = spans::Calls::default();
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(calls.clone()))?;

    let cloud = cloud()?;
    let provisioner = stack()?.wrap(cloud.provisioner());
    share(&cloud, &*provisioner).await?;
    throttle(&cloud, &provisioner).await?;
    outage(&cloud, &provisioner).await?;
    fall_back(&cloud, &*provisioner).await?;

    print_spans(&calls.take());
    let text = scrape::scrape(address).await?;
    println!(" metrics: http://{address}/metrics returns");
    let rows = [
        ("fleetwright_calls_total", vec![]),
        ("fleetwright_attempts_total", vec![]),
        ("fleetwright_retries_total", vec!["throttled"]),
        ("fleetwright_retries_total", vec!["unavailable"]),
        ("fleetwright_retries_denied_total", vec![]),
        ("fleetwright_fallbacks_total", vec![]),
    ];
    for (name, labels) in rows {
        let value = scrape::sum(&text, name, &labels);
        println!("          {name:<33} {:<12} {value}", labels.join(" "));
    }

    let policy = WaitPolicy::within(Duration::from_secs(60));
    let filter = InstanceFilter::tagged("fleet-id", FLEET)?;
    let terminated = provisioner.terminate_matching(&filter, &policy).await?;
    println!(
        "     end: {} terminated; check of the cloud: {}",
        terminated.len(),
        cloud.oracle().leftovers()
    );
    if arguments.stay {
        println!("          serving http://{address}/metrics until Ctrl-C");
        tokio::signal::ctrl_c().await?;
    }
    Ok(())
}

/// Builds a cloud that accepts five launches at once and then fifty per second, and has no capacity
/// for the type `gpu` in its first zone.
fn cloud() -> Result<MemoryCloud, Box<dyn Error>> {
    let no_capacity = Capacity::of(0)
        .of_type("gpu".try_into()?)
        .in_zone(Zone::new("mem-a")?);
    Ok(MemoryCloud::builder()
        .timing(Timing::all(Duration::from_millis(200)))
        .latency(Duration::from_millis(10))
        .throttle(WireCall::Launch, Duration::from_millis(20), many(5))
        .capacity(no_capacity)
        .build())
}

/// Builds the recommended stack with short delays. A real program uses the defaults, or minutes
/// where this uses tenths of a second.
fn stack() -> Result<Stack, Box<dyn Error>> {
    let tenth = Duration::from_millis(100);
    let retry = RetryPolicy::default()
        .max_attempts(many(4))
        .delays(tenth / 2, tenth * 4)
        .budget(RetryBudget::new(40, many(5)));
    let limit = LimitPolicy::default()
        .with(
            &[Operation::LaunchInstance],
            Rate::per_second(many(100)).burst(many(50)),
        )
        .recovery_time(tenth);
    let offerings = [
        Alternative::new("as requested"),
        Alternative::new("spot in zone b")
            .zone("mem-b")?
            .market(Market::Spot),
    ];
    let fallback = FallbackPolicy::new(offerings).record_in_tag("offering")?;
    Ok(Stack::default()
        .retry(retry)
        .limit(limit)
        .fallback(fallback))
}

/// Concurrent describes are combined into few calls.
async fn share(cloud: &MemoryCloud, provisioner: &dyn InstanceProvisioner) -> StepResult {
    println!(
        "   share: {FLEET_SIZE} runners are launched as one batch; then one task per runner describes it"
    );
    let batch = provisioner
        .launch_instances(&runner("share")?, many(FLEET_SIZE))
        .await?;
    let ids: Vec<_> = batch.into_iter().map(|info| info.id).collect();
    let goal = fleetwright::CloudInstanceState::Running;
    wait::for_state(
        provisioner,
        &ids,
        goal,
        &WaitPolicy::within(Duration::from_secs(60)),
    )
    .await?;
    let before = cloud.oracle().call_count(WireCall::Describe);
    let results = join_all(ids.iter().map(|id| provisioner.describe_instance(id))).await;
    for result in results {
        result?;
    }
    let sent = cloud.oracle().call_count(WireCall::Describe) - before;
    println!("          ok: native calls for {FLEET_SIZE} concurrent describes: {sent}");
    Ok(())
}

/// More launches than the cloud accepts at once.
async fn throttle(cloud: &MemoryCloud, provisioner: &Arc<dyn InstanceProvisioner>) -> StepResult {
    println!("throttle: 20 launches at once, of which the cloud accepts 5");
    let before = cloud.oracle().call_count(WireCall::Launch);
    let configs = (0..20)
        .map(|n| runner(&format!("throttle-{n}")))
        .collect::<Result<Vec<_>, _>>()?;
    let results = join_all(
        configs
            .iter()
            .map(|config| provisioner.launch_instance(config)),
    )
    .await;
    let launched = results.iter().filter(|result| result.is_ok()).count();
    let sent = cloud.oracle().call_count(WireCall::Launch) - before;
    println!(
        "          ok: {launched} launched with {sent} calls; the limit layer reduced the rate after the first throttling"
    );
    Ok(())
}

/// The cloud handles the calls and returns internal errors.
async fn outage(cloud: &MemoryCloud, provisioner: &Arc<dyn InstanceProvisioner>) -> StepResult {
    println!("  outage: the cloud handles every launch and returns an internal error");
    for call in [WireCall::Launch, WireCall::FindLaunch] {
        cloud
            .faults()
            .add(Rule::always(call, Fault::ServerError(Phase::After)));
    }
    let configs = (0..15)
        .map(|n| runner(&format!("outage-{n}")))
        .collect::<Result<Vec<_>, _>>()?;
    let results = join_all(
        configs
            .iter()
            .map(|config| provisioner.launch_instance(config)),
    )
    .await;
    let failed: Vec<_> = results.into_iter().filter_map(Result::err).collect();
    let example = failed.first().ok_or("no launch failed during the outage")?;
    println!(
        "          {} of 15 launches failed, for instance:",
        failed.len()
    );
    println!("          {example}");
    cloud.faults().clear();
    println!("          the outage is over; every launch is repeated with its token");
    for config in &configs {
        // The outage has exhausted the retry budget, so this loop retries by itself.
        while let Err(error) = provisioner.launch_instance(config).await {
            let delay = error.retry().delay().ok_or(error)?;
            tokio::time::sleep(delay.max(Duration::from_millis(10))).await;
        }
    }
    let all = cloud.oracle().instances().into_iter();
    let ours = all.filter(|truth| {
        truth
            .info
            .tags
            .get("task")
            .is_some_and(|task| task.starts_with("outage-"))
    });
    println!(
        "          ok: the cloud has {} instances for 15 launches",
        ours.count()
    );
    Ok(())
}

/// The requested offering has no capacity.
async fn fall_back(cloud: &MemoryCloud, provisioner: &dyn InstanceProvisioner) -> StepResult {
    println!("fallback: a gpu instance in zone a, which has no capacity for it");
    // Wait until the bucket of the cloud is full again, so that nothing is throttled here.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let before = cloud.oracle().call_count(WireCall::Launch);
    for n in 0..2 {
        let mut config = runner(&format!("gpu-{n}"))?;
        config.instance_type = "gpu".try_into()?;
        config.placement.zone = Some(Zone::new("mem-a")?);
        let info = provisioner.launch_instance(&config).await?;
        let offering = info.tags.get("offering").unwrap_or("?");
        let zone = info.placement.zone.as_ref().map_or("?", Zone::as_str);
        println!("          ok: {} is {offering:?}, in zone {zone}", info.id);
    }
    let sent = cloud.oracle().call_count(WireCall::Launch) - before;
    println!(
        "          {sent} calls for two launches: the second one skipped the offering without capacity"
    );
    Ok(())
}

fn runner(task: &str) -> Result<InstanceConfig, fleetwright::InvalidValue> {
    InstanceConfig::builder("runner-image", "small")
        .tag("fleet-id", FLEET)
        .tag("task", task)
        .launch_token(format!("{FLEET}/{task}"))
        .build()
}

fn many(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN)
}

/// Prints the spans of two calls that succeeded after a retry and of two that failed.
fn print_spans(calls: &[spans::Fields]) {
    let with = |field: &str, without: &str| -> Vec<String> {
        let matching = calls.iter().filter(|call| call.contains_key(field));
        let matching = matching.filter(|call| !call.contains_key(without));
        matching.map(format_span).take(2).collect()
    };
    println!("   spans: {} calls finished, for example:", calls.len());
    for line in with("attempt", "error").iter().chain(&with("error", "")) {
        println!("          {line}");
    }
}

/// Formats a span as one line: name, status, then the other fields.
fn format_span(call: &spans::Fields) -> String {
    let value = |field: &str| call.get(field).map_or("", String::as_str);
    let mut line = format!("{} {}", value("otel.name"), value("otel.status_code"));
    for field in [
        "attempt",
        "kind",
        "effect",
        "native_code",
        "request_id",
        "token_hash",
    ] {
        if call.contains_key(field) {
            line += &format!(" {field}={}", value(field));
        }
    }
    line
}
