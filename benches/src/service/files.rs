//! The files of a server without limits, and a tenant with some instances.

use std::{net::SocketAddr, path::PathBuf};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use fleetwright_facade_testkit::{CATALOG, MAPPING};
use fleetwright_server::Server;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use super::client::Client;

/// The token of the administrator. Nobody else reaches the server.
const TOKEN: &str = "fleetwright_bench";
/// How many instances there are before the measurement.
const INSTANCES: usize = 100;

/// A folder with the configuration. It is removed at the end.
pub(super) struct Files {
    folder: TempDir,
}

/// A server with a tenant.
pub(super) struct World {
    pub(super) address: SocketAddr,
    pub(super) folder: PathBuf,
    organization: String,
    project: String,
    network: String,
    /// The instances that exist from the beginning.
    pub(super) instances: Vec<String>,
}

impl Files {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            std::fs::write(folder.path().join(name), text).expect("a file");
        };
        let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(TOKEN));
        write(
            "tokens.toml",
            &format!("[[token]]\nactor = \"olga\"\nsha256 = \"{hash}\"\n"),
        );
        write("catalog.toml", CATALOG);
        write("mapping.toml", MAPPING);
        write(
            "server.toml",
            "database = 'fleet.db'\ncatalog = 'catalog.toml'\ntokens = 'tokens.toml'\nadministrator = 'olga'\n\
            [[region]]\nprovider = 'memory'\nmapping = 'mapping.toml'\n\
            [limits]\nrate = 1000000\nconcurrency = 10000\nwatches = 10000\nconnections = 10000\n",
        );
        Self { folder }
    }

    pub(super) async fn start(&self) -> Server {
        let file = self.folder.path().join("server.toml");
        let listen = SocketAddr::from(([127, 0, 0, 1], 0));
        let server = Server::from_file(&file, Some(listen)).await;
        server.expect("a server")
    }

    /// Creates a tenant with instances.
    pub(super) async fn prepare(&self, address: SocketAddr) -> World {
        let mut client = connect(address).await;
        let id = |body: Value| body["id"].as_str().expect("an id").to_owned();
        let created = client
            .expect(
                "POST",
                "/api/v2/organizations",
                Some(&json!({"name": "acme"})),
            )
            .await;
        let organization = id(created);
        let projects = format!("/api/v2/organizations/{organization}/projects");
        let created = client
            .expect("POST", &projects, Some(&json!({"name": "shop"})))
            .await;
        let project = id(created);
        let quota = format!("/api/v2/organizations/{organization}/quota");
        let limits = json!({"limits": [{"kind": "servers", "limit": 100_000_000}]});
        client.expect("PUT", &quota, Some(&limits)).await;
        let network = json!({
            "organizationId": organization, "projectId": project, "regionId": "north", "name": "blue", "prefix": "10.0.0.0/8",
        });
        let created = client
            .expect("POST", "/api/v2/networks", Some(&network))
            .await;
        let network = id(created);
        let mut world = World {
            address,
            folder: self.folder.path().to_owned(),
            organization,
            project,
            network,
            instances: Vec::new(),
        };
        for number in 0..INSTANCES {
            let new = world.instance(&format!("kept-{number}"));
            let created = client.expect("POST", "/api/v2/instances", Some(&new)).await;
            let id = created["metadata"]["id"].as_str().expect("an id");
            world.instances.push(id.to_owned());
        }
        world
    }
}

impl World {
    /// The body of a request for an instance.
    pub(super) fn instance(&self, name: &str) -> Value {
        json!({
            "metadata": {"name": name},
            "spec": {
                "organizationId": self.organization, "projectId": self.project, "networkId": self.network,
                "flavorId": "small", "imageId": "debian",
            },
        })
    }

    /// The address of the projects of the tenant.
    pub(super) fn projects(&self) -> String {
        format!("/api/v2/organizations/{}/projects", self.organization)
    }
}

/// A connection of the administrator.
pub(super) async fn connect(address: SocketAddr) -> Client {
    let client = Client::connect(address, TOKEN).await;
    client.expect("a connection")
}
