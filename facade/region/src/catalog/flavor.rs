//! Sizes of servers.

use std::num::NonZeroU32;

use fleetwright_store::Document;
use serde::{Deserialize, Serialize};

use super::{ByteSize, entry::Entry};
use crate::{
    file::{Fields, among, flag, parsed, text, whole},
    ids::FlavorId,
};

/// A size of server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Flavor {
    /// What it is found by.
    pub id: FlavorId,
    /// What people call it.
    pub name: String,
    /// How many processors it has.
    pub cpus: NonZeroU32,
    /// How much memory it has.
    pub memory: ByteSize,
    /// How large its root disk is.
    pub disk: ByteSize,
    /// What its processors understand. Never changes.
    pub architecture: Architecture,
    /// Whether a server is a machine of its own. Never changes.
    pub baremetal: bool,
    /// Its graphics processors. They are charged for, so they never change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<Gpu>,
    /// Whether it is no longer offered.
    #[serde(default)]
    pub retired: bool,
}

/// What processors understand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Architecture {
    /// 64-bit Intel and AMD.
    #[serde(rename = "x86_64")]
    X86_64,
    /// 64-bit Arm.
    #[serde(rename = "aarch64")]
    Aarch64,
}

impl Architecture {
    const WORDS: [(&'static str, Self); 2] = [("x86_64", Self::X86_64), ("aarch64", Self::Aarch64)];

    /// As files and wires have it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    pub(super) fn read(fields: &mut Fields<'_, '_>) -> Option<Self> {
        fields.required("architecture", |value| among(&Self::WORDS, value))
    }
}

impl std::fmt::Display for Architecture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// The graphics processors of a flavor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Gpu {
    /// Who makes them.
    pub vendor: GpuVendor,
    /// Which they are.
    pub model: String,
    /// How much memory each has.
    pub memory: ByteSize,
    /// How many are in the machine: what quota counts.
    pub physical_count: NonZeroU32,
    /// How many a server sees, where one is divided or several are joined.
    pub logical_count: NonZeroU32,
}

/// Who makes graphics processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GpuVendor {
    /// NVIDIA.
    #[serde(rename = "NVIDIA")]
    Nvidia,
    /// AMD.
    #[serde(rename = "AMD")]
    Amd,
}

const MOST_CPUS: u32 = 4096;
const MOST_GPUS: u32 = 1024;

impl Flavor {
    /// One that is offered, without graphics processors and not a machine of its own.
    pub fn new(
        id: FlavorId,
        cpus: NonZeroU32,
        memory: ByteSize,
        disk: ByteSize,
        architecture: Architecture,
    ) -> Self {
        Self {
            name: id.to_string(),
            id,
            cpus,
            memory,
            disk,
            architecture,
            baremetal: false,
            gpu: None,
            retired: false,
        }
    }

    /// How many graphics processors are charged for.
    pub fn gpus(&self) -> u32 {
        self.gpu.as_ref().map_or(0, |gpu| gpu.physical_count.get())
    }

    pub(super) fn read(fields: &mut Fields<'_, '_>, id: Option<FlavorId>) -> Option<Self> {
        let name = fields.optional("name", text);
        let cpus = count(fields, "cpus", MOST_CPUS);
        let memory = size(fields, "memory");
        let disk = size(fields, "disk");
        let architecture = Architecture::read(fields);
        let baremetal = fields.optional("baremetal", flag);
        let gpu = fields.table("gpu").map(Gpu::read);
        let mut flavor = Self::new(id?, cpus?, memory?, disk?, architecture?);
        flavor.name = name.unwrap_or(flavor.name);
        flavor.baremetal = baremetal.unwrap_or(false);
        flavor.gpu = gpu.flatten();
        Some(flavor)
    }
}

impl Gpu {
    /// As many as the machine has are seen by a server.
    pub fn new(vendor: GpuVendor, model: String, memory: ByteSize, count: NonZeroU32) -> Self {
        Self {
            vendor,
            model,
            memory,
            physical_count: count,
            logical_count: count,
        }
    }

    fn read(mut fields: Fields<'_, '_>) -> Option<Self> {
        let vendors = [("NVIDIA", GpuVendor::Nvidia), ("AMD", GpuVendor::Amd)];
        let vendor = fields.required("vendor", |value| among(&vendors, value));
        let model = fields.required("model", text);
        let memory = size(&mut fields, "memory");
        let physical = count(&mut fields, "physical-count", MOST_GPUS);
        let logical = fields.optional("logical-count", |value| whole(&(1..=MOST_GPUS), value));
        fields.finish();
        let mut gpu = Self::new(vendor?, model?, memory?, physical?);
        gpu.logical_count = logical
            .and_then(NonZeroU32::new)
            .unwrap_or(gpu.physical_count);
        Some(gpu)
    }
}

fn count(fields: &mut Fields<'_, '_>, name: &'static str, most: u32) -> Option<NonZeroU32> {
    let count = fields.required(name, |value| whole(&(1..=most), value));
    count.and_then(NonZeroU32::new)
}

/// A size that is not nothing.
pub(super) fn size(fields: &mut Fields<'_, '_>, name: &'static str) -> Option<ByteSize> {
    let wanted = "a size with its unit in quotes, as in \"16 GiB\" or \"100 GB\"";
    fields.required(name, |value| match parsed::<ByteSize>(wanted, value)? {
        size if size.bytes() == 0 => Err(format!("{size} is nothing: want a size above it")),
        size => Ok(size),
    })
}

impl Document for Flavor {
    const KIND: &'static str = "flavor";
}

impl Entry for Flavor {
    type Id = FlavorId;
    const IMMUTABLE: &'static [&'static str] = &["architecture", "baremetal", "gpu"];

    fn id(&self) -> &FlavorId {
        &self.id
    }

    fn retired(&mut self) -> &mut bool {
        &mut self.retired
    }

    fn is_from_file(&self) -> bool {
        true
    }

    fn differences(&self, other: &Self) -> Vec<&'static str> {
        let Self {
            id: _,
            name,
            cpus,
            memory,
            disk,
            architecture,
            baremetal,
            gpu,
            retired: _,
        } = self;
        let differs = [
            ("name", *name != other.name),
            ("cpus", *cpus != other.cpus),
            ("memory", *memory != other.memory),
            ("disk", *disk != other.disk),
            ("architecture", *architecture != other.architecture),
            ("baremetal", *baremetal != other.baremetal),
            ("gpu", *gpu != other.gpu),
        ];
        super::entry::those(&differs)
    }
}
