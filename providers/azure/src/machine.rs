//! A machine, its parts and its order, in words of our own: what the SDK's documents are turned into, so that
//! nothing but the client knows the SDK. Plain values.

use std::{collections::BTreeMap, fmt, net::IpAddr};

use chrono::{DateTime, Utc};

/// A virtual machine as a read shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Machine {
    /// Its resource id, in whatever case Azure has shown it.
    pub(crate) path: String,
    pub(crate) name: String,
    /// Azure's own id; empty where a list of states leaves it out.
    pub(crate) vm_id: String,
    pub(crate) made: Option<DateTime<Utc>>,
    pub(crate) location: String,
    pub(crate) zone: Option<String>,
    pub(crate) size: Option<String>,
    pub(crate) image: Option<String>,
    pub(crate) spot: bool,
    pub(crate) tags: BTreeMap<String, String>,
    /// How its latest operation ended, or that it goes on.
    pub(crate) provisioning: String,
    /// What its instance view says; none, if nobody asked.
    pub(crate) statuses: Vec<Status>,
    /// The resource ids of its interfaces, the first one first.
    pub(crate) interfaces: Vec<String>,
    /// The resource id of the system's disk.
    pub(crate) disk: Option<String>,
    /// Which generation of hardware it thinks it runs on, such as `V2`.
    pub(crate) generation: Option<String>,
    /// The version of the document.
    pub(crate) etag: Option<String>,
}

/// A line of an instance view, such as `PowerState/running`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Status {
    pub(crate) code: String,
    pub(crate) message: Option<String>,
}

/// Where an interface is reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Interface {
    /// The resource id of the machine that it is of.
    pub(crate) machine: Option<String>,
    /// Whether it is the first one of its machine.
    pub(crate) primary: bool,
    pub(crate) mac: Option<String>,
    pub(crate) private: Option<IpAddr>,
    pub(crate) public: Option<Public>,
    pub(crate) subnet: Option<String>,
    pub(crate) security_group: Option<String>,
}

/// A public address: itself, or where to find it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Public {
    Address(IpAddr),
    /// By its resource id.
    At(String),
}

/// What an image is launched of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// One of the marketplace.
    Published {
        publisher: String,
        offer: String,
        sku: String,
        version: String,
    },
    /// By resource id.
    Resource(String),
    /// In a gallery that is shared with this subscription, or with everybody.
    SharedGallery(String),
    CommunityGallery(String),
}

/// An order of a machine with all that belongs to it. `Debug` does not show the user data.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) location: String,
    pub(crate) zone: Option<String>,
    pub(crate) size: String,
    pub(crate) source: Source,
    pub(crate) disk_gib: Option<i32>,
    pub(crate) disk_type: Option<String>,
    pub(crate) admin_user: String,
    pub(crate) ssh_public_key: String,
    /// In base64, as is the user data.
    pub(crate) custom_data: Option<String>,
    pub(crate) user_data: Option<String>,
    pub(crate) subnet: String,
    pub(crate) security_group: Option<String>,
    pub(crate) public_address: bool,
    /// Whether it is a spot machine, and what becomes of it then.
    pub(crate) spot: Option<crate::Eviction>,
    pub(crate) system_identity: bool,
    pub(crate) user_identities: Vec<String>,
    pub(crate) plan: Option<crate::MarketplacePlan>,
    pub(crate) console: bool,
    pub(crate) tags: BTreeMap<String, String>,
}

impl fmt::Debug for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Order")
            .field("location", &self.location)
            .field("zone", &self.zone)
            .field("size", &self.size)
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}

/// A change of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Edit {
    /// All tags, in the place of those that it had.
    Tags(BTreeMap<String, String>),
    Size(String),
}

/// An image that was made here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MadeImage {
    pub(crate) path: String,
    pub(crate) tags: BTreeMap<String, String>,
}

/// What a call has begun, and where its end is told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Begun {
    /// None, if it was over at once or nobody says.
    pub(crate) url: Option<String>,
    pub(crate) retry_after: Option<std::time::Duration>,
}
