//! Backends that break the family account.

use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use fleetwright::{AccountId, ErrorKind, InstanceConfig, InstanceId, InstanceInfo, Result};

use super::{Mutant, Override};
use crate::{CallContext, OverrideHarness};

/// At least one for each clause of the family.
pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "every handle has an account id of its own",
        violates: "ACCOUNT-01",
        make: OverrideHarness::factory::<OnePerHandle>,
    },
    Mutant {
        name: "the account id contains launch options",
        violates: "ACCOUNT-01",
        make: OverrideHarness::factory::<ContainsOptions>,
    },
    Mutant {
        name: "the account id counts launches",
        violates: "ACCOUNT-01",
        make: OverrideHarness::factory::<CountsLaunches>,
    },
    Mutant {
        name: "only the first handle reports the account",
        violates: "ACCOUNT-01",
        make: OverrideHarness::factory::<OnlyFirstHandle>,
    },
    Mutant {
        name: "an account that cannot be read is reported as none",
        violates: "ACCOUNT-02",
        make: OverrideHarness::factory::<NoneOnFailure>,
    },
    Mutant {
        name: "an account that cannot be read is reported as another one",
        violates: "ACCOUNT-02",
        make: OverrideHarness::factory::<OtherOnFailure>,
    },
];

fn account(text: &str) -> Option<AccountId> {
    AccountId::new(text).ok()
}

/// Returns whether a call on the wire fails now.
async fn fails(at: CallContext<'_>) -> bool {
    let Ok(unknown) = InstanceId::new("i-unknown") else {
        return false;
    };
    let read = at.inner.describe_instance(&unknown).await;
    read.is_err_and(|error| error.kind() != ErrorKind::NotFound)
}

#[derive(Default)]
struct OnePerHandle;

#[async_trait]
impl Override for OnePerHandle {
    async fn account_id(&self, at: CallContext<'_>) -> Result<Option<AccountId>> {
        Ok(account(&format!("account-{}", at.handle)))
    }
}

#[derive(Default)]
struct ContainsOptions;

#[async_trait]
impl Override for ContainsOptions {
    async fn account_id(&self, at: CallContext<'_>) -> Result<Option<AccountId>> {
        Ok(account(&format!("account-{}", at.other_options)))
    }
}

#[derive(Default)]
struct CountsLaunches(AtomicUsize);

#[async_trait]
impl Override for CountsLaunches {
    async fn account_id(&self, _: CallContext<'_>) -> Result<Option<AccountId>> {
        let launches = self.0.load(Ordering::SeqCst);
        Ok(account(&format!("account-{launches}")))
    }
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        self.0.fetch_add(1, Ordering::SeqCst);
        at.inner.launch_instance(config).await
    }
}

#[derive(Default)]
struct OnlyFirstHandle;

#[async_trait]
impl Override for OnlyFirstHandle {
    async fn account_id(&self, at: CallContext<'_>) -> Result<Option<AccountId>> {
        Ok((at.handle == 1).then(|| account("account")).flatten())
    }
}

#[derive(Default)]
struct NoneOnFailure;

#[async_trait]
impl Override for NoneOnFailure {
    async fn account_id(&self, at: CallContext<'_>) -> Result<Option<AccountId>> {
        if fails(at).await {
            return Ok(None);
        }
        at.inner.account_id().await
    }
}

#[derive(Default)]
struct OtherOnFailure;

#[async_trait]
impl Override for OtherOnFailure {
    async fn account_id(&self, at: CallContext<'_>) -> Result<Option<AccountId>> {
        if fails(at).await {
            return Ok(account("unknown"));
        }
        at.inner.account_id().await
    }
}
