//! The whole protocol on simulated machines in a file.

mod support;

use serde_json::json;
use support::{Garm, POOL};

#[test]
fn machines_outlive_the_process_of_a_call() {
    let folder = tempfile::TempDir::new().unwrap();
    let config = format!("[memory]\nfolder = \"{}\"\n", folder.path().display());
    let garm = Garm::new(&config, &[]);
    let document = |token: &str| {
        json!({
            "name": "garm-1", "arch": "amd64", "os_type": "linux", "flavor": "blade", "image": "debian", "pool_id": POOL,
            "instance-token": token, "metadata-url": "http://127.0.0.1:9/", "callback-url": "http://127.0.0.1:9/",
        })
    };
    let created = garm.create(&document("a")).answer();
    assert_eq!(created["provider_id"], "machine-0");
    assert_eq!(
        garm.create(&document("b")).answer()["provider_id"],
        "machine-0"
    );
    assert_eq!(garm.list(POOL).answer().as_array().map(Vec::len), Some(1));
    garm.delete("garm-1").done();
    assert_eq!(
        garm.create(&document("c")).answer()["provider_id"],
        "machine-1"
    );
    garm.delete("machine-1").done();
    garm.run("RemoveAllInstances", &[], "").done();
    garm.delete("machine-9").done();
}
