//! The whole protocol, on every cloud.

mod support;

use std::time::Duration;

use fleetwright_emulators::{Fault, Phase as FaultPhase};
use serde_json::json;
use support::{
    CONTROLLER, Cloud, Ec2Cloud, Garm, GcpCloud, POOL, SECRET, document, each_cloud, eventually,
    has_machines, nothing_left,
};

#[test]
fn instance_lives_from_creation_to_deletion() {
    for cloud in each_cloud() {
        let cloud = cloud.as_ref();
        let garm = Garm::on(cloud);
        let name = "garm-ny9HeeQYw2rl";
        let created = garm.create(&document(cloud, name)).answer();
        assert_eq!(created["name"], name);
        assert_eq!(created["status"], "running");
        assert_eq!(
            (&created["os_type"], &created["os_arch"]),
            (&json!("linux"), &json!("amd64"))
        );
        let id = created["provider_id"].as_str().unwrap();
        has_machines(cloud, name, 1);
        assert!(String::from_utf8_lossy(&cloud.user_data()).contains(SECRET));

        eventually(|| {
            let listed = garm.list(POOL).answer();
            let addresses = listed[0]["addresses"].as_array().map_or(0, Vec::len);
            if listed.as_array().map(Vec::len) == Some(1) && addresses > 0 {
                return Ok(());
            }
            Err(listed.to_string())
        });
        assert_eq!(garm.list("another-pool").answer(), json!([]));
        for instance in [id, name] {
            let found = garm.for_instance("GetInstance", instance).answer();
            assert_eq!(
                (&found["provider_id"], &found["name"]),
                (&json!(id), &json!(name))
            );
        }
        garm.for_instance("StopInstance", id).done();
        eventually(|| {
            let found = garm.for_instance("GetInstance", id).answer();
            if found["status"] == "stopped" {
                return Ok(());
            }
            Err(found.to_string())
        });
        eventually(|| match garm.for_instance("Start", name) {
            ended if ended.code == Some(0) => Ok(()),
            still_stopping => Err(still_stopping.err),
        });
        garm.delete(id).done();
        garm.delete(id).done();
        garm.delete(name).done();
        nothing_left(cloud);
        eventually(|| {
            let listed = garm.list(POOL).answer();
            if listed == json!([]) {
                return Ok(());
            }
            Err(listed.to_string())
        });
        garm.for_instance("GetInstance", name).failed(30);
    }
}

#[test]
fn second_creation_of_a_name_returns_the_same_instance() {
    for cloud in each_cloud() {
        let cloud = cloud.as_ref();
        let garm = Garm::on(cloud);
        let first = garm.create(&document(cloud, "garm-twice")).answer();
        let mut changed = document(cloud, "garm-twice");
        changed["labels"] = json!(["another"]);
        changed["extra_specs"] = json!({"disk_size_gb": 40});
        let second = garm.create(&changed).answer();
        assert_eq!(first["provider_id"], second["provider_id"]);
        has_machines(cloud, "garm-twice", 1);
    }
}

#[test]
fn name_can_be_created_again_after_its_deletion() {
    for cloud in each_cloud() {
        let cloud = cloud.as_ref();
        let garm = Garm::on(cloud);
        let mut ids = Vec::new();
        for _ in 0..3 {
            let created = garm.create(&document(cloud, "garm-again")).answer();
            let id = created["provider_id"].as_str().unwrap().to_owned();
            assert!(!ids.contains(&id), "{id} is back");
            has_machines(cloud, "garm-again", 1);
            garm.delete(&id).done();
            ids.push(id);
        }
        let last = garm.create(&document(cloud, "garm-again")).answer();
        let same = garm.create(&document(cloud, "garm-again")).answer();
        assert_eq!(last["provider_id"], same["provider_id"]);
        garm.delete("garm-again").done();
        nothing_left(cloud);
    }
}

#[test]
fn machines_and_volumes_have_the_tags_from_the_creating_call_on() {
    let cloud = Ec2Cloud::new();
    Garm::on(&cloud)
        .create(&document(&cloud, "garm-tags"))
        .answer();
    let expected = [
        ("garm-controller-id", CONTROLLER),
        ("garm-pool-id", POOL),
        ("garm-name", "garm-tags"),
        ("garm-os-type", "linux"),
        ("garm-os-arch", "amd64"),
        ("Name", "garm-tags"),
    ];
    let volumes = cloud.volume_tags();
    assert_eq!(volumes.len(), 1);
    for tags in volumes
        .into_iter()
        .chain(cloud.0.oracle().instances.into_iter().map(|it| it.tags))
    {
        for (key, value) in expected {
            assert_eq!(
                tags.get(key).map(String::as_str),
                Some(value),
                "{key} in {tags:?}"
            );
        }
    }
}

#[test]
fn machines_of_others_are_left_alone() {
    for cloud in each_cloud() {
        let cloud = cloud.as_ref();
        let garm = Garm::on(cloud);
        let mut other = Garm::on(cloud);
        other.controller = "another-controller".to_owned();
        let theirs = other.create(&document(cloud, "garm-theirs")).answer();
        let theirs = theirs["provider_id"].as_str().unwrap();
        let foreign = cloud.launch_foreign(&[("team", "blue")]);
        for id in [theirs, &foreign] {
            for command in ["DeleteInstance", "StopInstance", "StartInstance"] {
                let ended = garm.for_instance(command, id);
                assert!(
                    ended.failed(1).contains("left alone"),
                    "{command} {id}: {ended:?}"
                );
            }
        }
        // The name is another one under this controller.
        garm.delete("garm-theirs").done();
        garm.run("RemoveAllInstances", &[], "").done();
        has_machines(cloud, "garm-theirs", 1);
        other.run("RemoveAllInstances", &[], "").done();
        nothing_left(cloud);
    }
}

#[test]
fn all_instances_of_the_controller_are_removed() {
    for cloud in each_cloud() {
        let cloud = cloud.as_ref();
        let garm = Garm::on(cloud);
        for name in ["garm-a", "garm-b", "garm-c"] {
            garm.create(&document(cloud, name)).answer();
        }
        garm.run("RemoveAllInstances", &[], "").done();
        nothing_left(cloud);
    }
}

#[test]
fn list_that_cannot_be_read_fails() {
    for cloud in each_cloud() {
        let cloud = cloud.as_ref();
        let limits = "total_timeout_seconds = 1\n";
        let garm = Garm::with_settings(cloud, limits);
        garm.create(&document(cloud, "garm-list")).answer();
        cloud.fault(
            None,
            Fault::ServerError {
                phase: FaultPhase::Before,
            },
        );
        garm.list(POOL).failed(1);
        garm.delete("garm-list").failed(1);
        garm.run("RemoveAllInstances", &[], "").failed(1);
        cloud.clear_faults();
        has_machines(cloud, "garm-list", 1);
    }
}

#[test]
fn zone_that_cannot_be_read_fails_the_list() {
    let cloud = GcpCloud::new();
    let garm = Garm::with_settings(&cloud, "total_timeout_seconds = 1\n");
    garm.create(&document(&cloud, "garm-zone")).answer();
    let mut knobs = cloud.0.knobs();
    knobs.unreachable_zones.insert("us-central1-b".to_owned());
    cloud.0.set_knobs(knobs);
    garm.list(POOL).failed(1);
    garm.run("RemoveAllInstances", &[], "").failed(1);
    garm.delete("garm-never").failed(1);
}

#[test]
fn lost_response_of_a_launch_is_settled() {
    for cloud in each_cloud() {
        let cloud = cloud.as_ref();
        let garm = Garm::on(cloud);
        for nth in 1..=4 {
            let name = format!("garm-lost{nth}");
            cloud.fault(
                Some(nth),
                Fault::Lost {
                    phase: FaultPhase::After,
                },
            );
            let created = garm.create(&document(cloud, &name));
            cloud.clear_faults();
            assert_eq!(created.code, Some(0), "response {nth}: {}", created.err);
            has_machines(cloud, &name, 1);
            garm.delete(&name).done();
        }
        nothing_left(cloud);
    }
}

#[test]
fn deletion_is_repeated_until_the_cloud_finds_a_new_instance() {
    let limits = "[limits]\nconsistency_window_seconds = 1.5\npoll_interval_seconds = 0.01\n";
    for cloud in each_cloud() {
        let cloud = cloud.as_ref();
        let config = format!("{}\n{limits}", cloud.config());
        let garm = Garm::new(&config, &cloud.environment());
        cloud.hide_new_instances(Duration::from_secs(1));
        garm.create(&document(cloud, "garm-by-name")).answer();
        garm.delete("garm-by-name").done();
        let created = garm.create(&document(cloud, "garm-by-id")).answer();
        garm.delete(created["provider_id"].as_str().unwrap()).done();
        garm.create(&document(cloud, "garm-all")).answer();
        garm.run("RemoveAllInstances", &[], "").done();
        nothing_left(cloud);
    }
}

#[test]
fn stockout_of_one_type_is_survived_by_another() {
    let alternatives = "[[launch.alternatives]]\nmarket = \"on-demand\"\n\n[[launch.alternatives]]\ninstance_type = \"t3.small\"\n";
    let cloud = Ec2Cloud::new();
    let garm = Garm::with_settings(
        &cloud,
        &format!("\n[launch]\nmarket = \"spot\"\n\n{alternatives}"),
    );
    cloud.limit_capacity(Some("t3.micro"), 0);
    let created = garm.create(&document(&cloud, "garm-stock")).answer();
    assert_eq!(created["status"], "running");
    let machines = cloud.0.oracle().instances;
    let types: Vec<_> = machines
        .iter()
        .filter(|it| it.holds_machine)
        .map(|it| it.instance_type.as_str())
        .collect();
    assert_eq!(types, ["t3.small"]);
    let again = garm.create(&document(&cloud, "garm-stock")).answer();
    assert_eq!(again["provider_id"], created["provider_id"]);
    garm.delete("garm-stock").done();
    nothing_left(&cloud);
}

#[test]
fn creation_costs_the_launch_and_one_look_up() {
    let cloud = Ec2Cloud::new();
    Garm::on(&cloud)
        .create(&document(&cloud, "garm-cost"))
        .answer();
    let calls = cloud.0.oracle().calls;
    assert_eq!(calls.get("RunInstances"), Some(&1));
    // Before and after the launch one of the provider's, which repeats the second until it shows the launch, and one of this program.
    assert!(
        calls
            .keys()
            .all(|name| ["RunInstances", "DescribeInstances"].contains(&name.as_str())),
        "{calls:?}"
    );
}

#[test]
fn creation_ends_with_the_garm_that_started_it() {
    let cloud = Ec2Cloud::new();
    let garm = Garm::on(&cloud);
    cloud.hang(1, support::Phase::Before);
    // A shell stands for GARM: it dies while the program waits for a response.
    let script = "\"$0\" <\"$1\" & echo $!; while [ ! -e \"$2\" ]; do sleep 0.05; done";
    let folder = tempfile::TempDir::new().unwrap();
    let (input, end) = (folder.path().join("input"), folder.path().join("end"));
    std::fs::write(&input, document(&cloud, "garm-orphan").to_string()).unwrap();
    let before = cloud.calls();
    let mut shell = std::process::Command::new("sh");
    shell.args([
        "-c",
        script,
        env!("CARGO_BIN_EXE_garm-provider-fleetwright"),
    ]);
    shell.arg(&input).arg(&end);
    shell
        .envs(cloud.environment())
        .env("GARM_COMMAND", "CreateInstance");
    shell
        .env("GARM_CONTROLLER_ID", CONTROLLER)
        .env("GARM_POOL_ID", POOL);
    shell.env("GARM_PROVIDER_CONFIG_FILE", garm.config_path());
    shell
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null());
    let mut shell = shell.spawn().unwrap();
    eventually(|| {
        if cloud.calls() > before {
            Ok(())
        } else {
            Err("no request".to_owned())
        }
    });
    shell.kill().unwrap();
    // The program holds the other end of the pipe until it ends.
    let output = shell.wait_with_output().unwrap();
    assert!(!output.stdout.is_empty());
    cloud.clear_faults();
    has_machines(&cloud, "garm-orphan", 0);
}
