//! Documents, as Azure writes them.
//!
//! Owns the JSON of responses. It decides nothing and changes nothing: a document is a function of
//! a record. Null members are omitted.
//!
//! | file | documents |
//! | --- | --- |
//! | `vm`, `view` | virtual machines and their instance views |
//! | `resources` | disks, images, interfaces, public addresses |
//! | `catalog` | groups, locations, sizes, quotas, networks |
//! | `rules` | the default rules of network security groups |
//! | `directory` | subscriptions, tenants, providers, images of the marketplace, the cloud's endpoints |

pub(crate) mod catalog;
pub(crate) mod directory;
pub(crate) mod resources;
pub(crate) mod rules;
pub(crate) mod view;
pub(crate) mod vm;
