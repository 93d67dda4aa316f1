//! The account that the machines of a region are in.
//!
//! Owns the record of that account, and the check before every call to the cloud. With the credentials of another account every call
//! succeeds, and lists are complete and contain no machine of the region. A region therefore records the
//! [account id](fleetwright::InstanceProvisioner::account_id) with its first launch, and makes no other call to the cloud while the
//! provider reports another one: nothing is observed, launched, changed or terminated. It continues by itself when the recorded account
//! is back. A provider that reports no account is not checked.
//!
//! | call | the account is read | if it cannot be read because of an outage |
//! | --- | --- | --- |
//! | a scan | before it, and again before a machine is believed to be missing or an orphan is terminated | it goes on, and believes no absence |
//! | other reads | before it, unless that was done in the last second | they go on |
//! | start, stop, reboot, tags, console session | before it, and after it failed | they go on |
//! | terminate, resize, reimage, snapshot | before it, and after it failed | they wait |
//! | launch, and the lookup of a launch | before it and after it | they wait |
//!
//! Callers that wait at the same time share one read, so the cost does not grow with the number of servers. "They go on" holds for five
//! minutes after any part of the region last confirmed the account ([`ConfirmedAccount`]), since an outage of the service that reports the account does not exchange credentials;
//! what creates or destroys waits in any case. Rejected credentials are no outage.
//!
//! # Credentials that are exchanged during a call
//!
//! A call that succeeded has reached its machine, because an id exists in one account only. That a machine is not found, or that a request
//! is refused, is believed only if the account is the region's after the call as well; otherwise the call counts as one whose outcome is
//! unknown, and is repeated.
//!
//! A launch succeeds in any account. Its machine is recorded only if the account is the region's after the launch as well. Otherwise the
//! launch is looked up by its token once the account is confirmed. If the region's account does not have it, it reached another one:
//! that is recorded in [`RegionAccount::leaked`] with the account, the machine and the token, logged as an error, and counted by the metric
//! `fleetwright_region_leaked_launches`; and the server is launched again. The region does not terminate such a machine by itself, because
//! it makes no change in an account that is not its own: with a store from a backup, that would be a tenant's machine. The operator
//! terminates it there and calls [`RegionAccounts::resolve_leak`].
//!
//! The record of the server says that a launch is unconfirmed before the launch is sent. So a process that ends before it has compared the
//! accounts hides nothing: whichever process looks the launch up records it in the same list. Nothing is known then but the token, and the
//! other account if the provider still uses it, and there may be no machine at all ([`LeakedLaunch::is_suspected`]).
//!
//! Credentials that are exchanged and restored between two comparisons are not noticed by them. The machine is recorded, and the region's
//! account never shows it; when it is to be terminated it is not found, and is recorded in the same list. So is a machine of the account
//! that the region had before an operator accepted another one. A machine that the account has shown was terminated outside this system,
//! and is not in that list.
//! One case is left: the credentials are restored before the comparison, and the response of the launch is lost. Two comparisons agree
//! then, as they do for every launch that fails without a response, so nothing is recorded. `docs/facade/S1.md` says why, and how an
//! operator finds such a machine.
//!
//! Every machine that was not found when it was to be terminated is in [`RegionAccount::not_found`] as well: if the region's account shows it
//! later, the monitor terminates it. That list is for the monitor, and needs no operator.
//!
//! # What the operator sees
//!
//! The log, with both accounts; the metric `fleetwright_region_account_differs`; and [`RegionAccount::other`]. To continue, configure the
//! credentials of the recorded account. If the machines of the region really are in another account now, accept it with
//! [`RegionAccounts::accept`]. Tenants see the condition `cloud-error` on what waits, without the names of accounts.

mod confirmed;
mod guard;
mod layer;
mod operator;
mod record;
mod risk;

pub use confirmed::ConfirmedAccount;
pub use operator::{AcceptError, RegionAccounts};
pub use record::{
    LEAKED_KEPT, LeakedLaunch, MAX_NOT_FOUND, NotFoundMachine, OtherAccount, RegionAccount,
};

pub(crate) use guard::{AccountError, AccountGuard, AccountState};
pub(crate) use layer::{UNREADABLE, guarded};
