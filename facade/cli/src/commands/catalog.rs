//! What is on offer.

use fleetwright_api::{Flavor, Image, Region};

use crate::{
    arguments::{CatalogCommand, ImagesCommand, Offer},
    confirm,
    context::Context,
    failure::{Code, Failure},
    find,
    table::Table,
};

pub(super) async fn run(context: &Context, command: CatalogCommand) -> Result<(), Failure> {
    let Context { client, output, .. } = context;
    match command {
        CatalogCommand::Regions(offer) => {
            let (_, regions) = regions(context, &offer).await?;
            output.show(&regions, |regions| {
                let rows = regions.iter().map(|region| {
                    vec![
                        region.id.as_str().into(),
                        region.provider.as_str().into(),
                        region.verbs.join(" ").into(),
                    ]
                });
                Table::list(["ID", "PROVIDER", "VERBS"]).rows(rows)
            })
        }
        CatalogCommand::Flavors(offer) => {
            let (organization, regions) = regions(context, &offer).await?;
            let mut all: Vec<Flavor> = Vec::new();
            for region in &regions {
                for flavor in client.list_flavors(&organization, &region.id).await?.items {
                    if !all.contains(&flavor) {
                        all.push(flavor);
                    }
                }
            }
            output.show(&all, |all| {
                let rows = all.iter().map(|flavor| {
                    let gpus = flavor
                        .gpu
                        .as_ref()
                        .map(|gpu| format!("{} x {} {}", gpu.count, gpu.vendor, gpu.model));
                    vec![
                        flavor.id.as_str().into(),
                        flavor.cpus.to_string().into(),
                        size(flavor.memory_bytes).into(),
                        size(flavor.disk_bytes).into(),
                        flavor.architecture.as_str().into(),
                        gpus.unwrap_or_default().into(),
                        flavor.name.as_str().into(),
                    ]
                });
                Table::list([
                    "ID",
                    "CPUS",
                    "MEMORY",
                    "DISK",
                    "ARCHITECTURE",
                    "GPUS",
                    "NAME",
                ])
                .rows(rows)
            })
        }
        CatalogCommand::Images(offer) => {
            let (organization, regions) = regions(context, &offer).await?;
            let mut all: Vec<Image> = Vec::new();
            for region in &regions {
                for image in client.list_images(&organization, &region.id).await?.items {
                    if !all.contains(&image) {
                        all.push(image);
                    }
                }
            }
            output.show(&all, |all| {
                let rows = all.iter().map(|image| {
                    vec![
                        image.id.as_str().into(),
                        image.name.as_str().into(),
                        image.architecture.as_str().into(),
                        size(image.size_bytes).into(),
                        format!("{} {}", image.os.distro, image.os.version).into(),
                        image.state.as_str().into(),
                    ]
                });
                Table::list(["ID", "NAME", "ARCHITECTURE", "SIZE", "SYSTEM", "STATE"]).rows(rows)
            })
        }
    }
}

pub(super) async fn images(context: &Context, command: ImagesCommand) -> Result<(), Failure> {
    let Context { client, output, .. } = context;
    match command {
        ImagesCommand::Show { image } => {
            output.show(&client.read_image(&image).await?, image_fields)
        }
        ImagesCommand::Share { image } => {
            output.show(&client.share_image(&image).await?, image_fields)
        }
        ImagesCommand::Delete { image, agreement } => {
            confirm::agreed(
                agreement.yes,
                &format!("delete image {image}"),
                "--yes",
                Code::Usage,
            )?;
            output.show(&client.delete_image(&image).await?, image_fields)
        }
    }
}

/// The organization, with the requested region or, without one, all regions.
async fn regions(context: &Context, offer: &Offer) -> Result<(String, Vec<Region>), Failure> {
    let organization = find::organization(context, offer.organization.as_deref()).await?;
    let mut regions = context.client.list_regions(&organization).await?.items;
    if let Some(wanted) = &offer.region {
        regions.retain(|region| region.id == *wanted);
        if regions.is_empty() {
            return Err(
                Failure::new(Code::NotFound, format!("there is no region {wanted}"))
                    .advice("`fleetwright catalog regions` lists them"),
            );
        }
    }
    Ok((organization, regions))
}

pub(super) fn image_fields(image: &Image) -> Table {
    Table::fields()
        .field("id", image.id.as_str())
        .field("name", image.name.as_str())
        .some("description", image.description.as_deref())
        .field("state", image.state.as_str())
        .field("architecture", image.architecture.as_str())
        .field("size", size(image.size_bytes))
        .field(
            "system",
            format!("{} {}", image.os.distro, image.os.version),
        )
        .some("organization", image.organization_id.as_deref())
        .some("project", image.project_id.as_deref())
}

fn size(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"];
    let (mut number, mut unit) = (bytes, "B");
    for larger in units {
        if number < 1024 || number % 1024 != 0 {
            break;
        }
        (number, unit) = (number / 1024, larger);
    }
    format!("{number} {unit}")
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_are_exact() {
        for (bytes, text) in [
            (0, "0 B"),
            (1000, "1000 B"),
            (8 << 30, "8 GiB"),
            (1536 << 20, "1536 MiB"),
            (2 << 40, "2 TiB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }
}
