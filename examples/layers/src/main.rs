//! The layers at work: `cargo run -p layers`.
//!
//! Four scenes on a simulated cloud that throttles, breaks down and runs out of machines; then what
//! the spans of the calls say, and what Prometheus would read. With `--stay` the metrics are served
//! until Ctrl-C.

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

/// Shows the layers at work on a simulated cloud.
#[derive(Debug, Parser)]
#[command(name = "layers", version)]
struct Arguments {
    /// Where to serve the metrics; port 0 takes one that is free.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Go on serving them until Ctrl-C.
    #[arg(long)]
    stay: bool,
}

const POOL: u32 = 60;
const FLEET: &str = "layers";

type Story = Result<(), Box<dyn Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Story {
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

    tell_spans(&calls.take());
    let text = scrape::scrape(address).await?;
    println!(" metrics: http://{address}/metrics says");
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
    let gone = provisioner.terminate_matching(&filter, &policy).await?;
    println!(
        "     end: {} terminated; the cloud's books say: {}",
        gone.len(),
        cloud.oracle().leftovers()
    );
    if arguments.stay {
        println!("          Ctrl-C ends the metrics at http://{address}/metrics");
        tokio::signal::ctrl_c().await?;
    }
    Ok(())
}

/// A cloud that lets through five launches at once and fifty a second, and has no machine of the type
/// `gpu` in its first zone.
fn cloud() -> Result<MemoryCloud, Box<dyn Error>> {
    let scarce = Capacity::of(0)
        .of_type("gpu".try_into()?)
        .in_zone(Zone::new("mem-a")?);
    Ok(MemoryCloud::builder()
        .timing(Timing::all(Duration::from_millis(200)))
        .latency(Duration::from_millis(10))
        .throttle(WireCall::Launch, Duration::from_millis(20), many(5))
        .capacity(scarce)
        .build())
}

/// The blessed stack, in a hurry: a real one has the defaults, or minutes where this has tenths of
/// seconds.
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
        Alternative::new("as asked"),
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

/// Many callers, few calls.
async fn share(cloud: &MemoryCloud, provisioner: &dyn InstanceProvisioner) -> Story {
    println!(
        "   share: {POOL} runners are launched as one batch, and each is watched by its own task"
    );
    let batch = provisioner
        .launch_instances(&runner("share")?, many(POOL))
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
    let before = cloud.oracle().calls_of(WireCall::Describe);
    let answers = join_all(ids.iter().map(|id| provisioner.describe_instance(id))).await;
    for answer in answers {
        answer?;
    }
    let sent = cloud.oracle().calls_of(WireCall::Describe) - before;
    println!("          ok: {POOL} describes at once were {sent} calls on the wire");
    Ok(())
}

/// More launches than the cloud lets through.
async fn throttle(cloud: &MemoryCloud, provisioner: &Arc<dyn InstanceProvisioner>) -> Story {
    println!("throttle: 20 launches at once, where the cloud lets 5 through");
    let before = cloud.oracle().calls_of(WireCall::Launch);
    let configs = (0..20)
        .map(|n| runner(&format!("throttle-{n}")))
        .collect::<Result<Vec<_>, _>>()?;
    let answers = join_all(
        configs
            .iter()
            .map(|config| provisioner.launch_instance(config)),
    )
    .await;
    let launched = answers.iter().filter(|answer| answer.is_ok()).count();
    let sent = cloud.oracle().calls_of(WireCall::Launch) - before;
    println!(
        "          ok: {launched} launched with {sent} calls; after the first refusals the rate was lowered"
    );
    Ok(())
}

/// The cloud launches, and answers with internal errors.
async fn outage(cloud: &MemoryCloud, provisioner: &Arc<dyn InstanceProvisioner>) -> Story {
    println!("  outage: the cloud carries out what it is asked and answers internal errors");
    for call in [WireCall::Launch, WireCall::FindLaunch] {
        cloud
            .faults()
            .add(Rule::always(call, Fault::ServerError(Phase::After)));
    }
    let configs = (0..15)
        .map(|n| runner(&format!("outage-{n}")))
        .collect::<Result<Vec<_>, _>>()?;
    let answers = join_all(
        configs
            .iter()
            .map(|config| provisioner.launch_instance(config)),
    )
    .await;
    let failed: Vec<_> = answers.into_iter().filter_map(Result::err).collect();
    let example = failed.first().ok_or("nothing failed in an outage")?;
    println!(
        "          {} of 15 launches failed, for instance:",
        failed.len()
    );
    println!("          {example}");
    cloud.faults().clear();
    println!("          the outage is over, and every launch is repeated with its token");
    for config in &configs {
        // The outage has used the budget of repetitions up, so the loop has to come back by itself.
        while let Err(error) = provisioner.launch_instance(config).await {
            let delay = error.retry().delay().ok_or(error)?;
            tokio::time::sleep(delay.max(Duration::from_millis(10))).await;
        }
    }
    let alive = cloud.oracle().instances().into_iter();
    let ours = alive.filter(|truth| {
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

/// No machine of the kind that is asked for.
async fn fall_back(cloud: &MemoryCloud, provisioner: &dyn InstanceProvisioner) -> Story {
    println!("fallback: a gpu machine in zone a, where there is none");
    // Until the cloud has forgotten the launches before: this scene is not about throttling.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let before = cloud.oracle().calls_of(WireCall::Launch);
    for n in 0..2 {
        let mut config = runner(&format!("gpu-{n}"))?;
        config.instance_type = "gpu".try_into()?;
        config.placement.zone = Some(Zone::new("mem-a")?);
        let info = provisioner.launch_instance(&config).await?;
        let offering = info.tags.get("offering").unwrap_or("?");
        let zone = info.placement.zone.as_ref().map_or("?", Zone::as_str);
        println!("          ok: {} is {offering:?}, in zone {zone}", info.id);
    }
    let sent = cloud.oracle().calls_of(WireCall::Launch) - before;
    println!(
        "          {sent} calls for two launches: the second did not ask for what was lacking"
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

/// Tells of two calls that were repeated and went well, and of two that were given up.
fn tell_spans(calls: &[spans::Fields]) {
    let with = |field: &str, without: &str| -> Vec<String> {
        let some = calls.iter().filter(|call| call.contains_key(field));
        let those = some.filter(|call| !call.contains_key(without));
        those.map(in_one_line).take(2).collect()
    };
    println!("   spans: {} calls ended, among them these:", calls.len());
    for line in with("attempt", "error").iter().chain(&with("error", "")) {
        println!("          {line}");
    }
}

/// A span in one line: what it is, then the fields that say more.
fn in_one_line(call: &spans::Fields) -> String {
    let of = |field: &str| call.get(field).map_or("", String::as_str);
    let mut line = format!("{} {}", of("otel.name"), of("otel.status_code"));
    for field in [
        "attempt",
        "kind",
        "effect",
        "native_code",
        "request_id",
        "token_hash",
    ] {
        if call.contains_key(field) {
            line += &format!(" {field}={}", of(field));
        }
    }
    line
}
