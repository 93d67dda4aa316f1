//! Properties of every catalog and every order of files.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

prop_compose! {
    fn any_flavor()(
        id in "[a-z0-9]([a-z0-9._-]{0,20}[a-z0-9])?", name in "[^\\pC\\s\"\\\\]{1,40}", cpus in 1_u32..=4096,
        memory in 1_u64.., disk in 1_u64.., arm in any::<bool>(), baremetal in any::<bool>(),
        gpu in prop::option::of((1_u32..=1024, 1_u32..=1024, 1_u64.., any::<bool>())),
    ) -> Flavor {
        let mut flavor = crate::testing::flavor(&id);
        flavor.name = name;
        flavor.cpus = cpus.try_into().unwrap();
        flavor.memory = ByteSize::from_bytes(memory);
        flavor.disk = ByteSize::from_bytes(disk);
        flavor.architecture = if arm { Architecture::Aarch64 } else { Architecture::X86_64 };
        flavor.baremetal = baremetal;
        flavor.gpu = gpu.map(|(physical, logical, memory, nvidia)| {
            let vendor = if nvidia { GpuVendor::Nvidia } else { GpuVendor::Amd };
            let memory = ByteSize::from_bytes(memory);
            let mut gpu = Gpu::new(vendor, "X1".to_owned(), memory, physical.try_into().unwrap());
            gpu.logical_count = logical.try_into().unwrap();
            gpu
        });
        flavor
    }
}

fn as_toml(flavor: &Flavor) -> String {
    let Flavor {
        id,
        name,
        cpus,
        memory,
        disk,
        architecture,
        baremetal,
        gpu,
        ..
    } = flavor;
    let gpu = gpu.as_ref().map_or_else(String::new, |gpu| {
        let vendor = match gpu.vendor {
            GpuVendor::Nvidia => "NVIDIA",
            GpuVendor::Amd => "AMD",
        };
        format!(
            "gpu = {{ vendor = \"{vendor}\", model = \"{}\", memory = \"{}\", physical-count = {}, logical-count = {} }}\n",
            gpu.model, gpu.memory, gpu.physical_count, gpu.logical_count
        )
    });
    format!(
        "[[flavor]]\nid = \"{id}\"\nname = \"{name}\"\ncpus = {cpus}\nmemory = \"{memory}\"\ndisk = \"{disk}\"\n\
         architecture = \"{architecture}\"\nbaremetal = {baremetal}\n{gpu}"
    )
}

proptest! {
    #[test]
    fn catalog_round_trips_through_file_and_store(flavors in prop::collection::vec(any_flavor(), 1..6)) {
        let images = &EXAMPLE[EXAMPLE.find("[[image]]").unwrap()..];
        let text: String = flavors.iter().map(as_toml).collect();
        let same = |one: &Flavor, two: &Flavor| one.id == two.id || one.name == two.name;
        let twice = (1..flavors.len()).any(|n| flavors[..n].iter().any(|one| same(one, &flavors[n])));
        let file = match CatalogFile::parse(&(text + images)) {
            Ok(file) => file,
            Err(problems) => {
                prop_assert!(twice, "{}", problems);
                return Ok(());
            }
        };
        prop_assert!(!twice);
        for flavor in &flavors {
            prop_assert!(file.flavors().any(|read| read == flavor));
            let json = serde_json::to_string(flavor).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Flavor>(&json).unwrap(), flavor);
        }
        let loaded = Catalog::default().reload(&file).unwrap();
        prop_assert_eq!(loaded.changes.len(), flavors.len() + 3);
        prop_assert_eq!(loaded.catalog.reload(&file).unwrap().changes, []);
    }
}

/// Returns the example with some of its entries.
fn some(kept: &BTreeSet<usize>) -> String {
    let entries = EXAMPLE.split("\n[[").enumerate();
    let kept = entries.filter(|(number, _)| *number == 0 || kept.contains(number));
    let kept: Vec<_> = kept.map(|(_, entry)| entry).collect();
    kept.join("\n[[")
}

proptest! {
    #[test]
    fn any_sequence_of_files_keeps_every_entry_and_retires_the_missing_ones(
        files in prop::collection::vec(prop::collection::btree_set(1_usize..=7, 0..=7), 1..8),
    ) {
        let mut catalog = Catalog::default();
        let mut ever = BTreeSet::new();
        for kept in files {
            let Ok(file) = CatalogFile::parse(&some(&kept)) else {
                // The file has four flavors, then three images. A file without either is refused.
                prop_assert!(!kept.iter().any(|n| *n <= 4) || !kept.iter().any(|n| *n > 4));
                continue;
            };
            let reload = catalog.reload(&file).unwrap();
            catalog = reload.catalog;
            ever.extend(kept.iter().copied());
            let flavors = catalog.flavors().map(|flavor| flavor.retired);
            let states: Vec<_> = flavors.chain(catalog.images().map(|image| image.retired)).collect();
            prop_assert_eq!(states.len(), ever.len());
            let retired = states.iter().filter(|retired| **retired).count();
            prop_assert_eq!(retired, ever.difference(&kept).count());
            prop_assert_eq!(catalog.reload(&file).unwrap().changes, []);
            let mut by_id = BTreeMap::new();
            for change in &reload.changes {
                prop_assert_eq!(by_id.insert(change.id().clone(), ()), None, "one change for each");
            }
        }
    }
}

/// Lines of the example that may change, with their replacement and the reported change.
#[test]
fn every_changed_field_is_reported_by_name() {
    let first = CatalogFile::parse(EXAMPLE).unwrap();
    let catalog = Catalog::default().reload(&first).unwrap().catalog;
    let table = [
        (
            "\"Standard, 4 processors\"",
            "\"Four\"",
            "flavor standard-4 changed: name",
        ),
        ("cpus = 4", "cpus = 5", "flavor standard-4 changed: cpus"),
        (
            "\"16 GiB\"",
            "\"17 GiB\"",
            "flavor standard-4 changed: memory",
        ),
        (
            "\"100 GB\"",
            "\"100 GiB\"",
            "flavor standard-4 changed: disk",
        ),
        (
            "\"Ubuntu 24.04 LTS\"",
            "\"Noble\"",
            "image ubuntu-24.04 changed: name",
        ),
        (
            "\"30 GiB\"",
            "\"31 GiB\"",
            "image acme-golden-7 changed: size",
        ),
        (
            "version = \"9.4\"",
            "version = \"9.5\"",
            "image acme-golden-7 changed: os",
        ),
        (
            "state = \"ready\"",
            "state = \"failed\"",
            "image acme-golden-7 changed: state",
        ),
        (
            "\"6f6b2a3e-6f1c-4a4b-9a62-0c7a1e0f5a11\"",
            "\"global\"",
            "image acme-golden-7 changed: visibility",
        ),
    ];
    for (from, to, message) in table {
        assert_eq!(EXAMPLE.matches(from).count(), 1, "{from}");
        let file = CatalogFile::parse(&EXAMPLE.replace(from, to)).unwrap();
        let reload = catalog.reload(&file).unwrap();
        assert_eq!(messages(&reload.changes), [message]);
        assert_eq!(
            messages(&reload.catalog.reload(&first).unwrap().changes),
            [message]
        );
    }
}
