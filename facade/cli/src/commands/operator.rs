//! What only operators may see and do.

use fleetwright_api::{AccountAccept, Inspection, LeakResolve, RegionReport};

use super::instances::{state, wire_name};
use crate::{
    arguments::OperatorCommand,
    confirm,
    context::Context,
    failure::{Code, Failure},
    find,
    table::{Table, Text, Tone},
};

pub(super) async fn run(context: &Context, command: OperatorCommand) -> Result<(), Failure> {
    let Context { client, output, .. } = context;
    match command {
        OperatorCommand::Regions => {
            let reports: Vec<RegionReport> = client.list_region_reports().await?.items;
            output.show(&reports, |reports| {
                let rows = reports.iter().map(|report| {
                    let scan = report.scan.as_ref();
                    let count = |count: fn(&fleetwright_api::Scan) -> usize| {
                        scan.map_or_else(String::new, |scan| count(scan).to_string())
                    };
                    let frozen = scan
                        .and_then(|scan| scan.frozen.clone())
                        .unwrap_or_default();
                    vec![
                        report.id.as_str().into(),
                        scan.map_or_else(|| "never".to_owned(), |scan| scan.at.to_rfc3339())
                            .into(),
                        scan.map_or_else(String::new, |scan| scan.machines.to_string())
                            .into(),
                        scan.map_or_else(String::new, |scan| scan.servers.to_string())
                            .into(),
                        count(|scan| scan.orphans.len()).into(),
                        report.leaked_launches.len().to_string().into(),
                        Text::toned(frozen, Tone::Bad),
                    ]
                });
                Table::list([
                    "ID",
                    "LAST SCAN",
                    "MACHINES",
                    "SERVERS",
                    "ORPHANS",
                    "LEAKS",
                    "FROZEN",
                ])
                .rows(rows)
            })
        }
        OperatorCommand::Inspect { instance } => {
            let id = find::instance(context, &instance).await?;
            output.show(&client.inspect_instance(&id).await?, inspection)
        }
        OperatorCommand::AcceptAccount {
            region,
            expected,
            account,
            agreement,
        } => {
            let question = format!(
                "record account {account} for region {region} instead of {expected}, and leave the machines there as they are"
            );
            confirm::agreed(agreement.yes, &question, "--yes", Code::Usage)?;
            let report = client
                .accept_region_account(&region, &AccountAccept { expected, account })
                .await?;
            output.show(&report, |report| {
                Table::fields()
                    .field("region", report.id.as_str())
                    .some("account", report.account.as_deref())
            })
        }
        OperatorCommand::ResolveLeak { region, token } => {
            client
                .resolve_leaked_launch(
                    &region,
                    &LeakResolve {
                        token: token.clone(),
                    },
                )
                .await?;
            output.done(&format!("{token}: removed from the list"))
        }
        OperatorCommand::Metrics => output.text(&client.read_metrics().await?),
        OperatorCommand::Health => {
            client.read_health().await?;
            client.read_readiness().await?;
            output.done("the service lives and can serve")
        }
    }
}

fn inspection(found: &Inspection) -> Table {
    let instance = &found.instance;
    let mut table = Table::fields()
        .field("id", instance.metadata.id.as_str())
        .field("name", instance.metadata.name.as_str())
        .field("state", state(&instance.metadata, &instance.status))
        .field("desired power", wire_name(&instance.status.desired_power));
    if let Some(server) = &found.server {
        table = table
            .field("server", server.id.as_str())
            .field("phase", server.phase.as_str())
            .field(
                "generation",
                format!(
                    "{}, applied: {}",
                    server.generation, server.observed_generation
                ),
            )
            .some("machine", server.machine.as_deref())
            .some(
                "incarnation",
                server.incarnation.map(|number| number.to_string()),
            );
        for drift in &server.drift {
            table = table.field("drift", Text::toned(drift.as_str(), Tone::Busy));
        }
        for condition in &server.conditions {
            table = table.field(
                "condition",
                Text::toned(condition.message.as_str(), Tone::Bad),
            );
        }
        for event in &server.events {
            table = table.field(
                "event",
                format!("{} {}: {}", event.at.to_rfc3339(), event.by, event.message),
            );
        }
    }
    for charge in found.allocation.iter().flatten() {
        table = table.field("charged", format!("{} {}", charge.limit, charge.kind));
    }
    table
}
