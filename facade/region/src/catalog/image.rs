//! What servers boot from.

use fleetwright::Tags;
use fleetwright_identity::{OrganizationId, Scope};
use fleetwright_store::Document;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Architecture, ByteSize, Snapshot, entry::Entry, flavor::size};
use crate::{
    file::{Fields, among, found_instead, text},
    ids::{ImageId, RegionId},
};

/// What a server boots from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Image {
    /// What it is found by.
    pub id: ImageId,
    /// What people call it.
    pub name: String,
    /// For which processors. Never changes.
    pub architecture: Architecture,
    /// How large a disk must be to hold it.
    pub size: ByteSize,
    /// On what sort of machine it boots. Never changes.
    pub virtualization: Virtualization,
    /// What is on it.
    pub os: Os,
    /// Whether it can be booted.
    pub state: ImageState,
    /// Who sees it.
    pub visibility: Visibility,
    /// Where it comes from.
    #[serde(default, skip_serializing_if = "Origin::is_file")]
    pub origin: Origin,
    /// What whoever had it made says of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What it is tagged with at the provider, with the system's own tags; none if it is of the file.
    #[serde(default, skip_serializing_if = "Tags::is_empty")]
    pub tags: Tags,
    /// Of which machine it is made, and how that goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<Snapshot>,
    /// Whether it is no longer offered.
    #[serde(default)]
    pub retired: bool,
}

/// Where an image comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// From the catalog's file. Each region's mapping says what it is there.
    #[default]
    File,
    /// A tenant had it made, of a server in one region. No file says anything of it.
    Snapshot {
        /// In which region. It is in no other.
        region: RegionId,
        /// What the region's provider calls it, once there is one.
        native: Option<fleetwright::ImageId>,
    },
}

impl Origin {
    /// Whether a file says that it is there.
    pub fn is_file(&self) -> bool {
        match self {
            Self::File => true,
            Self::Snapshot { .. } => false,
        }
    }
}

/// On what sort of machine an image boots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Virtualization {
    /// On a virtual one.
    Virtualized,
    /// On a machine of its own.
    Baremetal,
    /// On both.
    Any,
}

/// How far an image is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ImageState {
    /// Nothing was done yet.
    Pending,
    /// It is being made.
    Creating,
    /// It can be booted.
    Ready,
    /// It could not be made.
    Failed,
}

impl ImageState {
    const WORDS: [(&'static str, Self); 4] = [
        ("pending", Self::Pending),
        ("creating", Self::Creating),
        ("ready", Self::Ready),
        ("failed", Self::Failed),
    ];

    /// As files and wires have it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Creating => "creating",
            Self::Ready => "ready",
            Self::Failed => "failed",
        }
    }
}

impl std::fmt::Display for ImageState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// Who sees an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Visibility {
    /// Everybody who sees images at all.
    Global,
    /// The members of one organization.
    Organization(OrganizationId),
}

impl Visibility {
    /// Where somebody must be allowed to see images to see this one.
    pub fn scope(self) -> Scope {
        match self {
            Self::Global => Scope::Global,
            Self::Organization(organization) => Scope::Organization(organization),
        }
    }
}

/// The operating system on an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Os {
    /// Its kernel.
    pub kernel: Kernel,
    /// What its distribution descends from: `debian`, `redhat`.
    pub family: String,
    /// Its distribution: `ubuntu`.
    pub distro: String,
    /// Which of the distribution's variants: `server`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// What the version is called: `noble`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub codename: Option<String>,
    /// Its version: `24.04`.
    pub version: String,
}

/// What runs below everything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kernel {
    /// Linux.
    Linux,
}

impl Image {
    /// One that is ready, offered, and boots on any sort of machine.
    pub fn new(
        id: ImageId,
        architecture: Architecture,
        size: ByteSize,
        os: Os,
        visibility: Visibility,
    ) -> Self {
        Self {
            name: id.to_string(),
            id,
            architecture,
            size,
            virtualization: Virtualization::Any,
            os,
            state: ImageState::Ready,
            visibility,
            origin: Origin::File,
            description: None,
            tags: Tags::new(),
            snapshot: None,
            retired: false,
        }
    }

    pub(super) fn read(fields: &mut Fields<'_, '_>, id: Option<ImageId>) -> Option<Self> {
        let name = fields.optional("name", text);
        let architecture = Architecture::read(fields);
        let size = size(fields, "size");
        let sorts = [
            ("virtualized", Virtualization::Virtualized),
            ("baremetal", Virtualization::Baremetal),
            ("any", Virtualization::Any),
        ];
        let virtualization = fields.required("virtualization", |value| among(&sorts, value));
        let state = fields.optional("state", |value| among(&ImageState::WORDS, value));
        let visibility = Visibility::read(fields);
        let os = Os::read(fields);
        let mut image = Self::new(id?, architecture?, size?, os?, visibility?);
        image.name = name.unwrap_or(image.name);
        image.virtualization = virtualization?;
        image.state = state.unwrap_or(ImageState::Ready);
        Some(image)
    }
}

impl Visibility {
    /// It has no default: an image of one tenant is not shown to all because a line was forgotten.
    fn read(fields: &mut Fields<'_, '_>) -> Option<Self> {
        fields.required("visibility", |value| {
            let wanted = "\"global\", or the UUID of the one organization that sees it";
            match value.as_str() {
                Some("global") => Ok(Self::Global),
                Some(text) => match Uuid::try_parse(text) {
                    Ok(uuid) => Ok(Self::Organization(OrganizationId::new(uuid))),
                    Err(_) => Err(format!("nobody is meant by it: want {wanted}")),
                },
                None => Err(found_instead(value, wanted)),
            }
        })
    }
}

impl Os {
    /// A Linux.
    pub fn new(family: String, distro: String, version: String) -> Self {
        Self {
            kernel: Kernel::Linux,
            family,
            distro,
            variant: None,
            codename: None,
            version,
        }
    }

    fn read(outer: &mut Fields<'_, '_>) -> Option<Self> {
        let Some(mut fields) = outer.table("os") else {
            // What is there and no table has been told already.
            outer.missing("os", "[image.os] with family, distro and version");
            return None;
        };
        let kernel = fields.optional("kernel", |value| among(&[("linux", Kernel::Linux)], value));
        let [family, distro, version] =
            ["family", "distro", "version"].map(|name| fields.required(name, text));
        let [variant, codename] = ["variant", "codename"].map(|name| fields.optional(name, text));
        fields.finish();
        let mut os = Self::new(family?, distro?, version?);
        os.kernel = kernel.unwrap_or(Kernel::Linux);
        (os.variant, os.codename) = (variant, codename);
        Some(os)
    }
}

impl Document for Image {
    const KIND: &'static str = "image";
}

impl Entry for Image {
    type Id = ImageId;
    const IMMUTABLE: &'static [&'static str] = &["architecture", "virtualization"];

    fn id(&self) -> &ImageId {
        &self.id
    }

    fn retired(&mut self) -> &mut bool {
        &mut self.retired
    }

    fn is_from_file(&self) -> bool {
        self.origin.is_file()
    }

    fn differences(&self, other: &Self) -> Vec<&'static str> {
        let Self {
            id: _,
            name,
            architecture,
            size,
            virtualization,
            os,
            state,
            visibility,
            // No file has these.
            origin: _,
            description: _,
            tags: _,
            snapshot: _,
            retired: _,
        } = self;
        let differs = [
            ("name", *name != other.name),
            ("architecture", *architecture != other.architecture),
            ("size", *size != other.size),
            ("virtualization", *virtualization != other.virtualization),
            ("os", *os != other.os),
            ("state", *state != other.state),
            ("visibility", *visibility != other.visibility),
        ];
        super::entry::those(&differs)
    }
}
