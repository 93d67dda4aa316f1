//! Whether an image boots on a flavor, and whether either may be asked for. Pure, and both questions apart: what was
//! once chosen is not asked again whether it is still on offer.

use super::{Architecture, ByteSize, EntryId, Flavor, Image, ImageState, Virtualization};

/// One reason why an image does not boot on a flavor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Mismatch {
    /// The image is for other processors.
    #[error("the image is for {image} processors and the flavor has {flavor} ones")]
    Architecture {
        /// What the flavor has.
        flavor: Architecture,
        /// What the image needs.
        image: Architecture,
    },
    /// The image does not fit onto the disk.
    #[error("the image needs a disk of {image} and the flavor has one of {flavor}")]
    Disk {
        /// What the flavor has.
        flavor: ByteSize,
        /// What the image needs.
        image: ByteSize,
    },
    /// The image boots on machines of their own alone.
    #[error("the image needs a baremetal flavor")]
    NeedsBaremetal,
    /// The image boots on virtual machines alone.
    #[error("the image needs a virtualized flavor")]
    NeedsVirtualized,
}

/// Every reason why an image does not boot on a flavor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incompatible(Vec<Mismatch>);

impl Incompatible {
    /// Each reason; there is at least one.
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

/// Whether an image boots on a flavor, in bytes and for all reasons at once. Neither need be on offer.
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

/// Why something cannot be chosen anew.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotOffered {
    /// It was taken out of the catalog.
    #[error("{0} is retired: choose one that is offered")]
    Retired(EntryId),
    /// The image cannot be booted.
    #[error("image {image} is not ready but {state}: wait for it, or choose another")]
    NotReady {
        /// Which.
        image: crate::ids::ImageId,
        /// How far it is.
        state: ImageState,
    },
}

impl Flavor {
    /// Whether it may be chosen. Ask this of what changes, never of what stays: who has a retired flavor keeps it.
    pub fn check_offered(&self) -> Result<(), NotOffered> {
        if self.retired {
            return Err(NotOffered::Retired(self.id.clone().into()));
        }
        Ok(())
    }
}

impl Image {
    /// Whether it may be chosen. Ask this of what changes, never of what stays: who has a retired image keeps it.
    pub fn check_offered(&self) -> Result<(), NotOffered> {
        if self.retired {
            return Err(NotOffered::Retired(self.id.clone().into()));
        }
        match self.state {
            ImageState::Ready => Ok(()),
            state @ (ImageState::Pending | ImageState::Creating | ImageState::Failed) => {
                Err(NotOffered::NotReady {
                    image: self.id.clone(),
                    state,
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{flavor, image};

    #[test]
    fn twenty_decimal_gigabytes_do_not_hold_twenty_binary_ones() {
        let (mut flavor, mut image) = (flavor("f"), image("i"));
        flavor.disk = "20 GB".parse().unwrap();
        image.size = "20 GiB".parse().unwrap();
        assert_eq!(
            check_compatible(&flavor, &image).unwrap_err().to_string(),
            "the image needs a disk of 20 GiB and the flavor has one of 20 GB"
        );
        flavor.disk = "21475 MB".parse().unwrap();
        assert_eq!(check_compatible(&flavor, &image), Ok(()));
    }

    #[test]
    fn every_mismatch_is_told() {
        let (mut flavor, mut image) = (flavor("f"), image("i"));
        flavor.architecture = Architecture::Aarch64;
        flavor.disk = ByteSize::from_bytes(1);
        image.virtualization = Virtualization::Baremetal;
        let unfit = check_compatible(&flavor, &image).unwrap_err();
        assert_eq!(unfit.reasons().len(), 3);
        assert_eq!(
            unfit.to_string(),
            "the image is for x86_64 processors and the flavor has aarch64 ones; \
             the image needs a disk of 20 GiB and the flavor has one of 1 B; \
             the image needs a baremetal flavor"
        );
    }

    #[test]
    fn machines_and_images_meet_as_the_table_says() {
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
    fn what_is_retired_fits_and_is_not_offered() {
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
            "image i is not ready but creating: wait for it, or choose another"
        );
    }

    proptest! {
        #[test]
        fn a_disk_fits_by_its_bytes(disk in any::<u64>(), size in any::<u64>()) {
            let (mut flavor, mut image) = (flavor("f"), image("i"));
            flavor.disk = ByteSize::from_bytes(disk);
            image.size = ByteSize::from_bytes(size);
            prop_assert_eq!(check_compatible(&flavor, &image).is_ok(), disk >= size);
        }
    }
}
