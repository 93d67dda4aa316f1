//! Flavors: the sizes of servers, as the catalog offers them.

use std::num::NonZeroU32;

use fleetwright_store::Document;
use serde::{Deserialize, Serialize};

use super::{ByteSize, entry::Entry};
use crate::{
    file::{Fields, boolean, integer, one_of, parse_text, text},
    ids::FlavorId,
};

/// A size that a server can have.
///
/// ```
/// use std::num::NonZeroU32;
/// use fleetwright_region::{catalog::{Architecture, Flavor}, ids::FlavorId};
///
/// let (memory, disk) = ("4 GiB".parse()?, "20 GB".parse()?);
/// let cpus = NonZeroU32::MIN.saturating_add(1);
/// let flavor = Flavor::new(FlavorId::new("small")?, cpus, memory, disk, Architecture::X86_64);
/// assert_eq!(flavor.name, "small");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Flavor {
    /// The id.
    pub id: FlavorId,
    /// The display name. Default in the file: the id.
    pub name: String,
    /// The number of virtual processors, 1 to 4096.
    pub cpus: NonZeroU32,
    /// The memory.
    pub memory: ByteSize,
    /// The size of the root disk. A launch rounds it up to whole GiB.
    pub disk: ByteSize,
    /// The architecture of the processors. Never changes.
    pub architecture: Architecture,
    /// Whether the server is bare metal. Never changes. Default in the file: false.
    pub baremetal: bool,
    /// The graphics processors. Quota counts them, so they never change. Default in the file: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<Gpu>,
    /// Whether the flavor is no longer offered, because it left the file.
    #[serde(default)]
    pub retired: bool,
}

/// The architecture of processors.
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
    const NAMES: [(&'static str, Self); 2] = [("x86_64", Self::X86_64), ("aarch64", Self::Aarch64)];

    /// Returns the name that files, records and APIs use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    pub(super) fn read(fields: &mut Fields<'_, '_>) -> Option<Self> {
        fields.required("architecture", |value| one_of(&Self::NAMES, value))
    }
}

impl std::fmt::Display for Architecture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// The graphics processors of a flavor.
///
/// ```
/// use std::num::NonZeroU32;
/// use fleetwright_region::catalog::{Gpu, GpuVendor};
///
/// let two = NonZeroU32::MIN.saturating_add(1);
/// let mut gpu = Gpu::new(GpuVendor::Nvidia, "L4".to_owned(), "24 GiB".parse()?, two);
/// gpu.logical_count = two.saturating_mul(two); // each processor is divided in two
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Gpu {
    /// The vendor.
    pub vendor: GpuVendor,
    /// The model.
    pub model: String,
    /// The memory of each processor.
    pub memory: ByteSize,
    /// The number of processors in the machine, 1 to 1024. Quota counts these.
    pub physical_count: NonZeroU32,
    /// The number of processors that the server sees, 1 to 1024. It differs from the physical count if a processor is divided, or
    /// several are joined. Default in the file: the physical count.
    pub logical_count: NonZeroU32,
}

/// A vendor of graphics processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GpuVendor {
    /// NVIDIA.
    #[serde(rename = "NVIDIA")]
    Nvidia,
    /// AMD.
    #[serde(rename = "AMD")]
    Amd,
}

const MAX_CPUS: u32 = 4096;
const MAX_GPUS: u32 = 1024;

impl Flavor {
    /// Creates a flavor that is offered, virtual and without graphics processors. Its name is its id.
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

    /// Returns the number of graphics processors that quota counts.
    pub fn gpus(&self) -> u32 {
        self.gpu.as_ref().map_or(0, |gpu| gpu.physical_count.get())
    }

    pub(super) fn read(fields: &mut Fields<'_, '_>, id: Option<FlavorId>) -> Option<Self> {
        let name = fields.optional("name", text);
        let cpus = count(fields, "cpus", MAX_CPUS);
        let memory = size(fields, "memory");
        let disk = size(fields, "disk");
        let architecture = Architecture::read(fields);
        let baremetal = fields.optional("baremetal", boolean);
        let gpu = fields.table("gpu").map(Gpu::read);
        let mut flavor = Self::new(id?, cpus?, memory?, disk?, architecture?);
        flavor.name = name.unwrap_or(flavor.name);
        flavor.baremetal = baremetal.unwrap_or(false);
        flavor.gpu = gpu.flatten();
        Some(flavor)
    }
}

impl Gpu {
    /// Creates a description with a logical count that equals the physical one.
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
        let vendor = fields.required("vendor", |value| one_of(&vendors, value));
        let model = fields.required("model", text);
        let memory = size(&mut fields, "memory");
        let physical = count(&mut fields, "physical-count", MAX_GPUS);
        let logical = fields.optional("logical-count", |value| integer(&(1..=MAX_GPUS), value));
        fields.finish();
        let mut gpu = Self::new(vendor?, model?, memory?, physical?);
        gpu.logical_count = logical
            .and_then(NonZeroU32::new)
            .unwrap_or(gpu.physical_count);
        Some(gpu)
    }
}

fn count(fields: &mut Fields<'_, '_>, name: &'static str, max: u32) -> Option<NonZeroU32> {
    let count = fields.required(name, |value| integer(&(1..=max), value));
    count.and_then(NonZeroU32::new)
}

/// Reads a size above zero.
pub(super) fn size(fields: &mut Fields<'_, '_>, name: &'static str) -> Option<ByteSize> {
    let expected = "a size with its unit in quotes, as in \"16 GiB\" or \"100 GB\"";
    fields.required(name, |value| {
        match parse_text::<ByteSize>(expected, value)? {
            size if size.bytes() == 0 => {
                Err(format!("{size} is not allowed: expected a size above zero"))
            }
            size => Ok(size),
        }
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

    fn retired_mut(&mut self) -> &mut bool {
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
        super::entry::differing(&differs)
    }
}
