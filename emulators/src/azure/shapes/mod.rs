//! Documents, as Azure writes them. They decide nothing.
//!
//! | file | documents |
//! | --- | --- |
//! | `vm`, `view` | virtual machines and their instance views |
//! | `parts` | disks, images, interfaces, public addresses |
//! | `catalog` | groups, locations, sizes, quotas, networks |

pub(crate) mod catalog;
pub(crate) mod parts;
pub(crate) mod view;
pub(crate) mod vm;
