//! Whether an image boots on a flavor, and whether either is offered. Pure. The two questions are separate: a server that
//! already uses an entry keeps it when it is retired.

use super::{Architecture, ByteSize, EntryId, Flavor, Image, ImageState, Virtualization};

/// One reason why an image does not boot on a flavor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Mismatch {
    /// The architectures differ.
    #[error("the image is for {image} processors, but the flavor has {flavor}")]
    Architecture {
        /// The architecture of the flavor.
        flavor: Architecture,
        /// The architecture of the image.
        image: Architecture,
    },
    /// The image is larger than the disk, in bytes.
    #[error("the image needs a disk of {image}, but the flavor has one of {flavor}")]
    Disk {
        /// The disk of the flavor.
        flavor: ByteSize,
        /// The disk that the image needs.
        image: ByteSize,
    },
    /// The image boots on bare metal only.
    #[error("the image needs a baremetal flavor")]
    NeedsBaremetal,
    /// The image boots on virtual machines only.
    #[error("the image needs a virtualized flavor")]
    NeedsVirtualized,
}

/// Every reason why an image does not boot on a flavor. The message lists all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incompatible(Vec<Mismatch>);

impl Incompatible {
    /// Returns the reasons, at least one.
    pub fn reasons(&self) -> &[Mismatch] {
        &self.0
    }
}

impl std::fmt::Display for Incompatible {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (position, reason) in self.0.iter().enumerate() {
            f.write_str(if position == 0 { "" } else { "; " })?;
            reason.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Incompatible {}

/// Checks that an image boots on a flavor. Retired entries are checked like all others.
///
/// ```
/// use std::num::NonZeroU32;
/// use fleetwright_region::{
///     catalog::{Architecture, Flavor, Image, Os, Visibility, check_compatible},
///     ids::{FlavorId, ImageId},
/// };
///
/// let cpus = NonZeroU32::MIN;
/// let (x86, arm) = (Architecture::X86_64, Architecture::Aarch64);
/// let flavor = Flavor::new(FlavorId::new("small")?, cpus, "1 GiB".parse()?, "20 GB".parse()?, arm);
/// let os = Os::new("debian".to_owned(), "debian".to_owned(), "13".to_owned());
/// let image = Image::new(ImageId::new("debian-13")?, x86, "20 GiB".parse()?, os, Visibility::Global);
/// let error = check_compatible(&flavor, &image).unwrap_err();
/// assert_eq!(error.reasons().len(), 2, "other processors, and 20 GiB do not fit into 20 GB");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// All reasons why it does not boot.
pub fn check_compatible(flavor: &Flavor, image: &Image) -> Result<(), Incompatible> {
    let mut reasons = Vec::new();
    if flavor.architecture != image.architecture {
        reasons.push(Mismatch::Architecture {
            flavor: flavor.architecture,
            image: image.architecture,
        });
    }
    if flavor.disk < image.size {
        reasons.push(Mismatch::Disk {
            flavor: flavor.disk,
            image: image.size,
        });
    }
    match (image.virtualization, flavor.baremetal) {
        (Virtualization::Baremetal, false) => reasons.push(Mismatch::NeedsBaremetal),
        (Virtualization::Virtualized, true) => reasons.push(Mismatch::NeedsVirtualized),
        (Virtualization::Any, _)
        | (Virtualization::Baremetal, true)
        | (Virtualization::Virtualized, false) => {}
    }
    if reasons.is_empty() {
        Ok(())
    } else {
        Err(Incompatible(reasons))
    }
}

/// Why a flavor or an image cannot be chosen for a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotOffered {
    /// The entry is retired.
    #[error("{0} is retired: choose one that is offered")]
    Retired(EntryId),
    /// The image is not ready.
    #[error("image {image} is {state}, not ready: wait until it is ready, or choose another")]
    NotReady {
        /// The image.
        image: crate::ids::ImageId,
        /// Its state.
        state: ImageState,
    },
}

impl Flavor {
    /// Checks that the flavor is offered. Check new choices only: a server that has a retired flavor keeps it.
    ///
    /// # Errors
    ///
    /// The flavor is retired.
    pub fn check_offered(&self) -> Result<(), NotOffered> {
        if self.retired {
            return Err(NotOffered::Retired(self.id.clone().into()));
        }
        Ok(())
    }
}

impl Image {
    /// Checks that the image is offered and ready. Check new choices only: a server that has a retired image keeps it.
    ///
    /// # Errors
    ///
    /// The image is retired, or its state is not [`Ready`](ImageState::Ready).
    pub fn check_offered(&self) -> Result<(), NotOffered> {
        if self.retired {
            return Err(NotOffered::Retired(self.id.clone().into()));
        }
        match self.state {
            ImageState::Ready => Ok(()),
            state @ (ImageState::Pending
            | ImageState::Creating
            | ImageState::Failed
            | ImageState::Deleting) => Err(NotOffered::NotReady {
                image: self.id.clone(),
                state,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{flavor, image};

    #[test]
    fn image_of_20_gib_does_not_fit_on_a_disk_of_20_gb() {
        let (mut flavor, mut image) = (flavor("f"), image("i"));
        flavor.disk = "20 GB".parse().unwrap();
        image.size = "20 GiB".parse().unwrap();
        assert_eq!(
            check_compatible(&flavor, &image).unwrap_err().to_string(),
            "the image needs a disk of 20 GiB, but the flavor has one of 20 GB"
        );
        flavor.disk = "21475 MB".parse().unwrap();
        assert_eq!(check_compatible(&flavor, &image), Ok(()));
    }

    #[test]
    fn every_mismatch_is_reported() {
        let (mut flavor, mut image) = (flavor("f"), image("i"));
        flavor.architecture = Architecture::Aarch64;
        flavor.disk = ByteSize::from_bytes(1);
        image.virtualization = Virtualization::Baremetal;
        let error = check_compatible(&flavor, &image).unwrap_err();
        assert_eq!(error.reasons().len(), 3);
        assert_eq!(
            error.to_string(),
            "the image is for x86_64 processors, but the flavor has aarch64; \
             the image needs a disk of 20 GiB, but the flavor has one of 1 B; \
             the image needs a baremetal flavor"
        );
    }

    #[test]
    fn virtualization_of_image_and_flavor_must_match() {
        use Virtualization::{Any, Baremetal, Virtualized};
        let table = [
            (Any, false, true),
            (Any, true, true),
            (Baremetal, false, false),
            (Baremetal, true, true),
            (Virtualized, false, true),
            (Virtualized, true, false),
        ];
        for (virtualization, baremetal, fits) in table {
            let (mut flavor, mut image) = (flavor("f"), image("i"));
            (flavor.baremetal, image.virtualization) = (baremetal, virtualization);
            assert_eq!(
                check_compatible(&flavor, &image).is_ok(),
                fits,
                "{virtualization:?} {baremetal}"
            );
        }
    }

    #[test]
    fn retired_entries_are_compatible_and_not_offered() {
        let (mut flavor, mut image) = (flavor("f"), image("i"));
        (flavor.retired, image.retired) = (true, true);
        assert_eq!(check_compatible(&flavor, &image), Ok(()));
        assert_eq!(
            flavor.check_offered().unwrap_err().to_string(),
            "flavor f is retired: choose one that is offered"
        );
        assert_eq!(
            image.check_offered().unwrap_err().to_string(),
            "image i is retired: choose one that is offered"
        );
        image.retired = false;
        image.state = ImageState::Creating;
        assert_eq!(
            image.check_offered().unwrap_err().to_string(),
            "image i is creating, not ready: wait until it is ready, or choose another"
        );
    }

    proptest! {
        #[test]
        fn disk_and_image_are_compared_in_bytes(disk in any::<u64>(), size in any::<u64>()) {
            let (mut flavor, mut image) = (flavor("f"), image("i"));
            flavor.disk = ByteSize::from_bytes(disk);
            image.size = ByteSize::from_bytes(size);
            prop_assert_eq!(check_compatible(&flavor, &image).is_ok(), disk >= size);
        }
    }
}
