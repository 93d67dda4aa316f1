//! Documents, as Azure writes them. They decide nothing.
//!
//! | file | what it writes |
//! | --- | --- |
//! | `vm`, `view` | virtual machines, and how they are |
//! | `parts` | disks, images, interfaces, public addresses |
//! | `catalog` | groups, places, sizes, quotas, networks |

pub(crate) mod catalog;
pub(crate) mod parts;
pub(crate) mod view;
pub(crate) mod vm;
