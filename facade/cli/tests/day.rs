//! A tenant's whole day by the program, on a simulated cloud and SQLite.

#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests may panic"
)]

mod support;

use std::{
    io::{BufRead as _, BufReader},
    os::unix::fs::PermissionsExt as _,
    process::Stdio,
};

use fleetwright_api as api;
use support::Service;

#[test]
fn a_tenant_uses_the_service_all_day() {
    whole_day(&Service::start());
}

#[test]
fn a_tenant_uses_the_service_without_a_database() {
    whole_day(&Service::start_in_memory());
}

fn whole_day(service: &Service) {
    // What is there, and who is it for?
    let caller: api::Caller = service.json(&["caller"]);
    assert_eq!(caller.actor, "user:olga");
    let regions: Vec<api::Region> = service.json(&["catalog", "regions"]);
    assert_eq!(regions[0].id, "north");
    let flavors: Vec<api::Flavor> = service.json(&["catalog", "flavors", "--region", "north"]);
    let images: Vec<api::Image> = service.json(&["catalog", "images"]);
    assert!(flavors.iter().any(|flavor| flavor.id == "standard-2"));
    assert!(images.iter().any(|image| image.id == "debian-13"));
    assert!(service.ok(&["catalog", "flavors"]).contains("8 GiB"));

    // A network with a group.
    let network: api::Network = service.json(&[
        "networks",
        "create",
        "green",
        "--region",
        "north",
        "--prefix",
        "10.1.0.0/16",
        "--dns",
        "10.1.0.2",
    ]);
    let group: api::SecurityGroup = service.json(&[
        "groups",
        "create",
        "web",
        "--network",
        "green",
        "--rule",
        "ingress:tcp:443",
        "--rule",
        "egress:any",
    ]);
    assert_eq!(
        (group.network_id.as_str(), group.rules.len()),
        (network.id.as_str(), 2)
    );
    let group: api::SecurityGroup = service.json(&[
        "groups",
        "update",
        "web",
        "--rule",
        "ingress:tcp:8000-8010:10.0.0.0/8",
    ]);
    assert_eq!(group.rules[0].port_max, Some(8010));
    assert!(
        service
            .ok(&["groups", "list"])
            .contains("ingress:tcp:8000-8010:10.0.0.0/8")
    );

    // An instance.
    let data = service.folder.path().join("user-data");
    std::fs::write(&data, "#cloud-config\npackages: [nginx]\n").unwrap();
    let create = [
        "instances",
        "create",
        "web-1",
        "--flavor",
        "standard-2",
        "--image",
        "debian-13",
        "--network",
        "green",
        "--tag",
        "team=blue",
        "--user-data",
        data.to_str().unwrap(),
        "--wait",
    ];
    let created: api::Instance = service.json(&create);
    assert_eq!(
        (
            created.status.power_state,
            created.metadata.tags[0].value.as_str()
        ),
        (api::PowerState::Running, "blue")
    );
    let id = created.metadata.id.as_str();
    let listed: Vec<api::InstanceSummary> = service.json(&[
        "instances",
        "list",
        "--state",
        "running",
        "--tag",
        "team=blue",
        "--network",
        "green",
        "--project",
        "shop",
    ]);
    assert_eq!(listed.len(), 1);
    let listed: Vec<api::InstanceSummary> =
        service.json(&["instances", "list", "--state", "failed"]);
    assert_eq!(listed, Vec::new());
    let table = service.ok(&["instances", "list"]);
    assert!(
        table.contains(id)
            && table.contains("web-1")
            && table.contains("running")
            && !table.contains('\u{1b}'),
        "{table}"
    );
    assert!(
        service
            .ok(&["instances", "show", "web-1"])
            .contains("standard-2")
    );

    // A change that keeps everything, and one that does not.
    let updated: api::Instance = service.json(&[
        "instances",
        "update",
        "web-1",
        "--tag",
        "stage=live",
        "--description",
        "the shop",
        "--wait",
    ]);
    assert_eq!(updated.metadata.tags.len(), 2);
    let arm = ["--flavor", "arm-2", "--image", "debian-13-arm"];
    let plan: api::Plan = service.json(&[&["instances", "plan", "web-1"], &arm[..]].concat());
    assert!(plan.destructive && plan.lost.is_some(), "{plan:?}");
    let refused = service.fails(5, &[&["instances", "update", "web-1"], &arm[..]].concat());
    assert!(
        refused.contains("lost") && refused.contains("--allow-replace"),
        "{refused}"
    );
    let shown: api::Instance = service.json(&["instances", "show", id]);
    assert_eq!(shown.spec.flavor_id, "standard-2");
    assert!(
        shown.spec.user_data.is_some(),
        "an update keeps the user data"
    );
    let replaced: api::Instance = service.json(
        &[
            &["instances", "update", "web-1", "--allow-replace", "--wait"],
            &arm[..],
        ]
        .concat(),
    );
    assert_eq!(replaced.spec.flavor_id, "arm-2");

    // Off and on.
    let stopped: api::Instance = service.json(&["instances", "stop", "web-1", "--wait"]);
    assert_eq!(stopped.status.power_state, api::PowerState::Stopped);
    let _: api::Instance = service.json(&["instances", "start", "web-1", "--wait"]);
    let _: api::Accepted = service.json(&["instances", "reboot", "web-1"]);
    let _: api::Instance = service.json(&["instances", "replace", "web-1", "--yes", "--wait"]);
    let events: Vec<api::Event> = service.json(&["instances", "events", "web-1"]);
    assert_eq!(events[0].kind, "created");
    let _: api::ConsoleOutput = service.json(&["instances", "console", "web-1", "--log"]);
    let _: api::ConsoleSession = service.json(&["instances", "console", "web-1"]);
    let image: api::Image =
        service.json(&["instances", "snapshot", "web-1", "copy", "--tag", "by=test"]);
    let shown: api::Image = service.json(&["images", "show", &image.id]);
    assert_eq!(shown.name, "copy");

    // What it costs, who did it, and what is behind it.
    let quota: api::Quota = service.json(&["quota", "show"]);
    assert_eq!(
        quota
            .lines
            .iter()
            .find(|line| line.kind == "servers")
            .unwrap()
            .used,
        1
    );
    let quota: api::Quota = service.json(&["quota", "set", "servers=7"]);
    assert_eq!(
        quota
            .lines
            .iter()
            .find(|line| line.kind == "servers")
            .unwrap()
            .limit,
        Some(7)
    );
    let audit: Vec<api::AuditEntry> =
        service.json(&["audit", "list", "--record", id, "--actor", "olga"]);
    assert!(
        audit.iter().any(|entry| entry.verb == "create"),
        "{audit:?}"
    );
    let inspection: api::Inspection = service.json(&["operator", "inspect", "web-1"]);
    assert!(inspection.server.is_some());
    let regions: Vec<api::RegionReport> = service.json(&["operator", "regions"]);
    assert_eq!(regions[0].id, "north");
    assert!(
        service
            .ok(&["operator", "metrics"])
            .contains("fleetwright_http_requests_total")
    );
    service.ok(&["operator", "health"]);

    // The evening.
    service.fails(2, &["instances", "delete", "web-1"]);
    assert!(
        service
            .ok(&["instances", "delete", "web-1", "--yes", "--wait"])
            .contains("web-1: deleted")
    );
    service.fails(3, &["instances", "show", "web-1"]);
    service.fails(3, &["instances", "show", id]);
    service.ok(&["groups", "delete", "web", "--yes"]);
    service.ok(&["networks", "delete", "green", "--yes"]);
}

#[test]
fn tenants_are_set_up_by_names() {
    let service = Service::start();
    let organization: api::Organization = service.json(&["organizations", "create", "globex"]);
    let project: api::Project =
        service.json(&["projects", "create", "lab", "--organization", "globex"]);
    let roles: Vec<api::Role> = service.json(&["bindings", "roles"]);
    assert!(roles.iter().any(|role| role.name == "project-user"));
    let place = ["--organization", "globex", "--project", "lab"];
    let binding: api::RoleBinding =
        service.json(&[&["bindings", "create", "ada", "project-user"], &place[..]].concat());
    assert_eq!(
        (binding.actor.as_str(), binding.scope.project_id.as_deref()),
        ("user:ada", Some(project.id.as_str()))
    );
    let bindings: Vec<api::RoleBinding> =
        service.json(&[&["bindings", "list"], &place[..]].concat());
    assert_eq!(bindings, vec![binding.clone()]);
    let quota: api::Quota = service.json(&["quota", "show", "--organization", "globex"]);
    assert_eq!(quota.organization_id, organization.id);

    // Two organizations: which one is meant must be said.
    let ambiguous = service.fails(2, &["projects", "list"]);
    assert!(
        ambiguous.contains("acme, globex") && ambiguous.contains("--organization"),
        "{ambiguous}"
    );
    let projects: Vec<api::Project> =
        service.json(&["projects", "list", "--organization", "globex"]);
    assert_eq!(projects.len(), 1);

    let key = service.folder.path().join("ca.pub");
    std::fs::write(
        &key,
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE2tGkyi/M8mGLyEP8eNbmT6F7gBSWLAH8nKIzGqHXqB ca\n",
    )
    .unwrap();
    let create = [
        &[
            "authorities",
            "create",
            "ca",
            "--public-key",
            key.to_str().unwrap(),
        ],
        &place[..],
    ]
    .concat();
    let authority: api::SshAuthority = service.json(&create);
    let shown: api::SshAuthority = service.json(&["authorities", "show", "ca"]);
    assert_eq!(shown, authority);
    service.ok(&["authorities", "delete", "ca", "--yes"]);
    service.ok(&["bindings", "delete", &binding.id, "--yes"]);
    service.ok(&[
        "projects",
        "delete",
        "lab",
        "--organization",
        "globex",
        "--yes",
    ]);
    service.ok(&["organizations", "delete", "globex", "--yes"]);
    service.fails(3, &["organizations", "show", "globex"]);
}

#[test]
fn ssh_gets_the_key_in_a_file_that_is_gone_afterwards() {
    let service = Service::start();
    service.ok(&[
        "instances",
        "create",
        "web-1",
        "--flavor",
        "standard-2",
        "--image",
        "debian-13",
        "--wait",
    ]);
    // A program of this name that reports what it is given.
    let folder = service.folder.path().join("bin");
    std::fs::create_dir(&folder).unwrap();
    let ssh = folder.join("ssh");
    std::fs::write(
        &ssh,
        "#!/bin/sh\necho \"$@\"\nstat -c '%a' \"$2\"\nhead -n 1 \"$2\"\nexit 23\n",
    )
    .unwrap();
    std::fs::set_permissions(&ssh, std::fs::Permissions::from_mode(0o755)).unwrap();
    let output = service
        .command(&[
            "instances",
            "ssh",
            "web-1",
            "--user",
            "debian",
            "--",
            "uptime",
            "-p",
        ])
        .env("PATH", format!("{}:/usr/bin:/bin", folder.display()))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(23), "{output:?}");
    let printed = support::text(&output.stdout);
    let lines: Vec<_> = printed.lines().collect();
    let words: Vec<_> = lines[0].split(' ').collect();
    assert_eq!(
        (words[0], words.last().copied()),
        ("-i", Some("-p")),
        "{lines:?}"
    );
    assert!(
        lines[0].contains("-o IdentitiesOnly=yes -- debian@10."),
        "{lines:?}"
    );
    assert_eq!(
        (lines[1], lines[2]),
        ("600", "-----BEGIN OPENSSH PRIVATE KEY-----")
    );
    assert!(
        !std::path::Path::new(words[1]).exists(),
        "the key is left behind"
    );
}

#[test]
fn changes_are_printed_as_they_happen() {
    let service = Service::start();
    let mut watching = service
        .command(&["instances", "watch", "-o", "json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    let mut next = |event: &str| loop {
        let line = lines.next().unwrap().unwrap();
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        if value["event"] == event {
            return value;
        }
    };
    next("synced");
    let created: api::Instance = service.json(&[
        "instances",
        "create",
        "web-1",
        "--flavor",
        "standard-2",
        "--image",
        "debian-13",
    ]);
    let event = next("instance");
    let instance: api::InstanceSummary = serde_json::from_value(event["instance"].clone()).unwrap();
    assert_eq!(instance.metadata.id, created.metadata.id);
    assert!(event["position"].is_string());
    service.ok(&["instances", "delete", "web-1", "--yes", "--wait"]);
    assert_eq!(next("deleted")["id"], created.metadata.id.as_str());
    let interrupted = std::process::Command::new("kill")
        .args(["-INT", &watching.id().to_string()])
        .status();
    assert!(interrupted.unwrap().success());
    assert_eq!(watching.wait().unwrap().code(), Some(0));
}
