//! Regions, flavors and images.

use fleetwright_api as api;
use fleetwright_compute::facade::FacadeRegion;
use fleetwright_region::catalog::{Flavor, Image};

use super::{tags, word};

pub(crate) fn region(region: &FacadeRegion) -> api::Region {
    let capabilities = region.provisioner.capabilities();
    api::Region {
        id: region.id.to_string(),
        provider: capabilities.provider.to_string(),
        verbs: capabilities.verbs.iter().map(word).collect(),
    }
}

pub(crate) fn flavor(flavor: &Flavor) -> api::Flavor {
    api::Flavor {
        id: flavor.id.to_string(),
        name: flavor.name.clone(),
        cpus: flavor.cpus.get(),
        memory_bytes: flavor.memory.bytes(),
        disk_bytes: flavor.disk.bytes(),
        architecture: flavor.architecture.as_str().to_owned(),
        baremetal: flavor.baremetal,
        gpu: flavor.gpu.as_ref().map(|gpu| api::Gpu {
            vendor: word(&gpu.vendor),
            model: gpu.model.clone(),
            memory_bytes: gpu.memory.bytes(),
            count: gpu.physical_count.get(),
        }),
    }
}

pub(crate) fn image(image: &Image) -> api::Image {
    let owner = image.owner();
    api::Image {
        id: image.id.to_string(),
        name: image.name.clone(),
        description: image.description.clone(),
        tags: tags(&image.tags),
        architecture: image.architecture.as_str().to_owned(),
        size_bytes: image.size.bytes(),
        virtualization: word(&image.virtualization),
        os: api::ImageOs {
            kernel: word(&image.os.kernel),
            family: image.os.family.clone(),
            distro: image.os.distro.clone(),
            version: image.os.version.clone(),
            codename: image.os.codename.clone(),
        },
        state: image.state.as_str().to_owned(),
        organization_id: owner.map(|owner| owner.organization.to_string()),
        project_id: owner.map(|owner| owner.project.to_string()),
        requested_at: image
            .snapshot
            .as_ref()
            .map(|snapshot| snapshot.requested_at),
    }
}
