//! Images: what servers boot from.

use fleetwright::Tags;
use fleetwright_identity::{OrganizationId, ProjectId, Scope};
use fleetwright_store::Document;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Architecture, ByteSize, Snapshot, entry::Entry, flavor::size};
use crate::{
    file::{Fields, one_of, text, wrong_type},
    ids::{ImageId, RegionId},
};

/// An image that servers boot from.
///
/// ```
/// use fleetwright_region::{
///     catalog::{Architecture, Image, ImageState, Os, Visibility},
///     ids::ImageId,
/// };
///
/// let os = Os::new("debian".to_owned(), "debian".to_owned(), "13".to_owned());
/// let (id, size) = (ImageId::new("debian-13")?, "10 GiB".parse()?);
/// let image = Image::new(id, Architecture::X86_64, size, os, Visibility::Global);
/// assert_eq!(image.state, ImageState::Ready);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Image {
    /// The id.
    pub id: ImageId,
    /// The display name. Default in the file: the id.
    pub name: String,
    /// The processors that it is built for. Never changes.
    pub architecture: Architecture,
    /// The smallest disk that holds it.
    pub size: ByteSize,
    /// The kind of machine on which it boots. Never changes.
    pub virtualization: Virtualization,
    /// The operating system.
    pub os: Os,
    /// Whether it can be booted. Default in the file: ready.
    pub state: ImageState,
    /// Who can see it. Required in the file.
    pub visibility: Visibility,
    /// The catalog file, or a server of a tenant.
    #[serde(default, skip_serializing_if = "Origin::is_file")]
    pub origin: Origin,
    /// The tenant's description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its tags at the provider, including the system's. Empty for an image of the file.
    #[serde(default, skip_serializing_if = "Tags::is_empty")]
    pub tags: Tags,
    /// The machine that it is created from, and the progress. `None` for an image of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<Snapshot>,
    /// Whether it is no longer offered. Default: false.
    #[serde(default)]
    pub retired: bool,
}

/// Where an image comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// The catalog file. The mapping of each region has its native id there.
    #[default]
    File,
    /// A tenant created it from a server. No file changes it.
    Snapshot {
        /// The region of the server. The image exists in no other region.
        region: RegionId,
        /// The native id, once the provider has returned it.
        native: Option<fleetwright::ImageId>,
        /// The project that owns it, whoever can see it. `None` in records of older versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        owner: Option<ImageOwner>,
    },
}

/// The project that owns an image. The names of its images are unique.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ImageOwner {
    /// The organization.
    pub organization: OrganizationId,
    /// Its project.
    pub project: ProjectId,
}

impl ImageOwner {
    /// Returns the scope in which a principal needs a permission to change the image.
    pub fn scope(self) -> Scope {
        Scope::Project(self.organization, self.project)
    }
}

impl Origin {
    /// Returns whether the image comes from the catalog file.
    pub fn is_file(&self) -> bool {
        match self {
            Self::File => true,
            Self::Snapshot { .. } => false,
        }
    }
}

/// The kind of machine on which an image boots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Virtualization {
    /// Virtual machines.
    Virtualized,
    /// Bare metal.
    Baremetal,
    /// Both.
    Any,
}

/// The state of an image. It moves from pending through creating to ready, or to failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ImageState {
    /// It was requested, and the provider has not started it.
    Pending,
    /// The provider is creating it.
    Creating,
    /// It can be booted.
    Ready,
    /// It could not be created. Final, unless it is deleted.
    Failed,
    /// A tenant's image that is being deleted, once nothing uses it. No file has this state.
    Deleting,
}

impl ImageState {
    /// The names that a file may use.
    const NAMES: [(&'static str, Self); 4] = [
        ("pending", Self::Pending),
        ("creating", Self::Creating),
        ("ready", Self::Ready),
        ("failed", Self::Failed),
    ];

    /// Returns the name that files, records and APIs use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Creating => "creating",
            Self::Ready => "ready",
            Self::Failed => "failed",
            Self::Deleting => "deleting",
        }
    }
}

impl std::fmt::Display for ImageState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// Who can see an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Visibility {
    /// Everyone with a permission on images.
    Global,
    /// The members of one organization.
    Organization(OrganizationId),
    /// The members of one project.
    Project(OrganizationId, ProjectId),
}

impl Visibility {
    /// Returns the scope in which a principal needs a permission on images to see this one.
    pub fn scope(self) -> Scope {
        match self {
            Self::Global => Scope::Global,
            Self::Organization(organization) => Scope::Organization(organization),
            Self::Project(organization, project) => Scope::Project(organization, project),
        }
    }
}

/// The operating system on an image.
///
/// ```
/// use fleetwright_region::catalog::Os;
///
/// let mut noble = Os::new("debian".to_owned(), "ubuntu".to_owned(), "24.04".to_owned());
/// noble.codename = Some("noble".to_owned());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Os {
    /// The kernel. Default in the file: linux.
    pub kernel: Kernel,
    /// The family of the distribution: `debian`, `redhat`.
    pub family: String,
    /// The distribution: `ubuntu`.
    pub distro: String,
    /// The variant of the distribution: `server`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// The code name of the version: `noble`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub codename: Option<String>,
    /// The version: `24.04`.
    pub version: String,
}

/// The kernel of an operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kernel {
    /// Linux.
    Linux,
}

impl Image {
    /// Creates an image of the file that is ready, offered, and boots on any kind of machine. Its name is its id.
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

    /// Returns the project that owns the image, if a tenant created it.
    pub fn owner(&self) -> Option<ImageOwner> {
        match &self.origin {
            Origin::File => None,
            Origin::Snapshot { owner, .. } => *owner,
        }
    }

    /// Returns the scope in which a principal needs a permission to change the image.
    pub fn scope(&self) -> Scope {
        let owner = self.owner();
        owner.map_or_else(|| self.visibility.scope(), ImageOwner::scope)
    }

    pub(super) fn read(fields: &mut Fields<'_, '_>, id: Option<ImageId>) -> Option<Self> {
        let name = fields.optional("name", text);
        let architecture = Architecture::read(fields);
        let size = size(fields, "size");
        let names = [
            ("virtualized", Virtualization::Virtualized),
            ("baremetal", Virtualization::Baremetal),
            ("any", Virtualization::Any),
        ];
        let virtualization = fields.required("virtualization", |value| one_of(&names, value));
        let state = fields.optional("state", |value| one_of(&ImageState::NAMES, value));
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
    /// Reads the visibility. It has no default, so that a forgotten line does not show a tenant's image to everyone.
    fn read(fields: &mut Fields<'_, '_>) -> Option<Self> {
        fields.required("visibility", |value| {
            let expected = "\"global\", or the UUID of the one organization that sees it";
            match value.as_str() {
                Some("global") => Ok(Self::Global),
                Some(text) => match Uuid::try_parse(text) {
                    Ok(uuid) => Ok(Self::Organization(OrganizationId::new(uuid))),
                    Err(_) => Err(format!("unknown visibility: expected {expected}")),
                },
                None => Err(wrong_type(value, expected)),
            }
        })
    }
}

impl Os {
    /// Creates a Linux without variant and code name.
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
            // A value that is not a table has been reported already.
            outer.missing("os", "[image.os] with family, distro and version");
            return None;
        };
        let kernel = fields.optional("kernel", |value| one_of(&[("linux", Kernel::Linux)], value));
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

    fn retired_mut(&mut self) -> &mut bool {
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
            // Files do not have these.
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
        super::entry::differing(&differs)
    }
}
