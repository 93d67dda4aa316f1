//! What is on offer, and what the memory cloud calls it.

use fleetwright_region::{
    ids::{FlavorId, ImageId, RegionId},
    name::Name,
};

/// Five flavors and five images. `golden` is visible to organization 9 alone; `wide` and `virtual` do not fit every flavor.
pub const CATALOG: &str = r#"
flavor = [
    { id = "small", cpus = 2, memory = "4 GiB", disk = "20 GB", architecture = "x86_64" },
    { id = "large", cpus = 8, memory = "16 GiB", disk = "80 GB", architecture = "x86_64" },
    { id = "gpu", cpus = 8, memory = "16 GiB", disk = "80 GB", architecture = "x86_64", gpu = { vendor = "NVIDIA", model = "L4", memory = "24 GiB", physical-count = 4, logical-count = 8 } },
    { id = "arm", cpus = 2, memory = "4 GiB", disk = "20 GB", architecture = "aarch64" },
    { id = "metal", cpus = 8, memory = "16 GiB", disk = "80 GB", architecture = "x86_64", baremetal = true },
]
image = [
    { id = "debian", size = "10 GiB", virtualization = "any", visibility = "global", architecture = "x86_64", os = { family = "debian", distro = "debian", version = "13" } },
    { id = "rocky", size = "10 GiB", virtualization = "any", visibility = "global", architecture = "x86_64", os = { family = "redhat", distro = "rocky", version = "9" } },
    { id = "virtual", size = "10 GiB", virtualization = "virtualized", visibility = "global", architecture = "x86_64", os = { family = "redhat", distro = "rocky", version = "9" } },
    { id = "wide", size = "20 GiB", virtualization = "any", visibility = "global", architecture = "x86_64", os = { family = "redhat", distro = "rocky", version = "9" } },
    { id = "golden", size = "10 GiB", virtualization = "any", visibility = "00000000-0000-0000-0000-000000000009", architecture = "x86_64", os = { family = "redhat", distro = "rocky", version = "9" } },
]
"#;

/// The names of all of it at the memory cloud, in region `north`.
pub const MAPPING: &str = r#"
    region = "north"
    provider = "memory"
    flavors = { small = "m1", large = "m4", gpu = "g4", arm = "a1", metal = "b1" }
    images = { debian = "img-7", rocky = "img-8", virtual = "img-9", wide = "img-10", golden = "img-11" }
    [networks.default]
    subnet = "net-1"
"#;

/// A catalog file like [`CATALOG`] without the entry of this id.
pub fn without_entry(catalog: &str, id: &str) -> String {
    let start = format!("{{ id = \"{id}\",");
    let lines = catalog
        .lines()
        .filter(|line| !line.trim().starts_with(&start));
    lines.collect::<Vec<_>>().join("\n")
}

/// The region that machines run in.
pub fn north() -> RegionId {
    RegionId::new("north").unwrap()
}

/// A second region, without machines.
pub fn south() -> RegionId {
    RegionId::new("south").unwrap()
}

/// A name.
pub fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

/// A flavor's id.
pub fn flavor(id: &str) -> FlavorId {
    FlavorId::new(id).unwrap()
}

/// An image's id.
pub fn image(id: &str) -> ImageId {
    ImageId::new(id).unwrap()
}
