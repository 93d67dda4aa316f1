//! The two services at the emulator's endpoint: EC2, and STS for the identity of the caller.
//!
//! Owns what differs between them in the protocol: the name in a signature, the version, and the document and
//! the codes of a refusal.

use super::{VERSION, sts, xml};
use crate::ec2::error::Refusal;

/// A service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    /// The compute service.
    Ec2,
    /// The security token service.
    Sts,
}

impl Service {
    /// Returns the name in the scope of a signature.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ec2 => "ec2",
            Self::Sts => "sts",
        }
    }

    /// Returns the name in messages.
    pub(crate) const fn long_name(self) -> &'static str {
        match self {
            Self::Ec2 => "AmazonEC2",
            Self::Sts => "AWSSecurityTokenService",
        }
    }

    /// Returns the API version.
    pub(crate) const fn version(self) -> &'static str {
        match self {
            Self::Ec2 => VERSION,
            Self::Sts => sts::VERSION,
        }
    }

    /// Returns a refusal as this service sends it.
    pub(crate) fn refusal(self, refusal: Refusal) -> Refusal {
        match self {
            Self::Ec2 => refusal,
            Self::Sts => sts::convert(refusal),
        }
    }

    /// Returns the document of a refusal.
    pub(crate) fn document(self, refusal: &Refusal, request_id: &str) -> String {
        match self {
            Self::Ec2 => xml::refusal(refusal, request_id),
            Self::Sts => sts::refusal(refusal, request_id),
        }
    }
}
