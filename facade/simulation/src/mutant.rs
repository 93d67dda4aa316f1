//! Every mistake that can be made on purpose, of the region and of compute.

use fleetwright_compute::mutant as compute;
use fleetwright_region::mutant as region;

/// A mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// Of the region's controller or monitor.
    Region(region::Mutant),
    /// Of the service, the controller of instances or the keeper of networks.
    Compute(compute::Mutant),
}

impl Mutant {
    /// Every mistake.
    pub fn all() -> impl Iterator<Item = Self> {
        let region = region::Mutant::ALL.into_iter().map(Self::Region);
        let compute = compute::Mutant::ALL.iter().copied();
        region.chain(compute.map(Self::Compute))
    }

    /// What it is called on a command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Region(mutant) => mutant.as_str(),
            Self::Compute(mutant) => mutant.as_str(),
        }
    }

    /// What the region makes of it.
    pub fn region(chosen: Option<Self>) -> region::Chosen {
        match chosen {
            Some(Self::Region(mutant)) => region::Chosen::new(mutant),
            Some(Self::Compute(_)) | None => region::Chosen::default(),
        }
    }

    /// What compute makes of it.
    pub fn compute(chosen: Option<Self>) -> compute::Chosen {
        match chosen {
            Some(Self::Compute(mutant)) => compute::Chosen::new(mutant),
            Some(Self::Region(_)) | None => compute::Chosen::default(),
        }
    }
}
