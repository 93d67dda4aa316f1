//! The account that the machines of a region are in.
//!
//! Owns the record of that account, and the check before every call to the cloud. With the credentials of another account every call
//! succeeds, and lists are complete and contain no machine of the region. A region therefore records the
//! [account id](fleetwright::InstanceProvisioner::account_id) with its first launch, and makes no other call to the cloud while the
//! provider reports another one: nothing is observed, launched, changed or terminated. It continues by itself when the recorded account
//! is back. A provider that reports no account is not checked.
//!
//! | who | when it reads the account |
//! | --- | --- |
//! | the monitor | before each scan, and again before it believes that a machine is missing or terminates an orphan |
//! | the controller | before it believes that a launch had no effect |
//! | the others | before a call, if they have not read it for a second |
//!
//! So the cost does not grow with the number of servers. A call that is made within a second after the credentials were exchanged can reach
//! the other account. It does no harm to the machines of the region: their ids do not exist there, and "not found" is believed only by a
//! scan. A machine that is launched there is not found later, and another one is launched in its place: it is in
//! [`RegionAccount::not_found`], so that the operator can terminate it.
//!
//! # What the operator sees
//!
//! The log, with both accounts; the metric `fleetwright_region_account_differs`; and [`RegionAccount::other`]. To continue, configure the
//! credentials of the recorded account. If the machines of the region really are in another account now, accept it with
//! [`RegionAccounts::accept`]. Tenants see the condition `cloud-error` on what waits, without the names of accounts.

mod guard;
mod layer;
mod operator;
mod record;

pub use operator::{AcceptError, RegionAccounts};
pub use record::{MAX_NOT_FOUND, NotFoundMachine, OtherAccount, RegionAccount};

pub(crate) use guard::{AccountError, AccountGuard, AccountState};
pub(crate) use layer::guarded;
