//! What the backend's test environment offers beside the handles: the truth, faults, and somebody else.
//!
//! Owns the parameters and results of these methods. They cannot fail for the kit: if the backend breaks the
//! protocol here, that is recorded, the clause fails, and the value returned here does not matter.

use std::sync::Arc;

use async_trait::async_trait;
use fleetwright::{InstanceId, InstanceInfo, Operation, Scope, Tags, UserData};
use fleetwright_contract_tests::{
    ExternalActor, Faults, NativeError, Oracle, Truth, WireFault, WireOp,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    account::Account,
    fault::{FaultKind, fault_form, operation_name},
};

/// The parts of an account beside its handles.
#[derive(Debug)]
pub(crate) struct Parts(pub(crate) Arc<Account>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WireTruth {
    info: InstanceInfo,
    user_data: Option<UserData>,
    disk_size_gb: Option<u32>,
    holds_machine: bool,
    boots: Option<u32>,
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Oracle for Parts {
    async fn instances(&self, tags: &Tags) -> Vec<Truth> {
        let params = json!({ "tags": tags });
        let found: Option<Vec<WireTruth>> = self.0.ask("oracle.instances", params).await;
        let truth = |wire: WireTruth| Truth {
            info: wire.info,
            user_data: wire.user_data.map(|data| data.as_bytes().to_vec()),
            disk_size_gb: wire.disk_size_gb,
            holds_machine: wire.holds_machine,
            boots: wire.boots,
        };
        found.unwrap_or_default().into_iter().map(truth).collect()
    }

    async fn leftovers(&self, tags: &Tags) -> Vec<String> {
        let params = json!({ "tags": tags });
        let found = self.0.ask("oracle.leftovers", params).await;
        found.unwrap_or_default()
    }

    async fn images(&self, tags: &Tags) -> Option<Vec<String>> {
        let params = json!({ "tags": tags });
        let found: Option<Option<Vec<String>>> = self.0.ask("oracle.images", params).await;
        found.flatten()
    }

    async fn calls(&self) -> u64 {
        let count = self.0.ask("oracle.calls", json!({})).await;
        count.unwrap_or_default()
    }
}

impl Parts {
    async fn inject_into(&self, operation: WireOp, nth: Option<u64>, fault: &WireFault) {
        if FaultKind::of(fault).is_crash() && self.0.backend().hello.restart {
            self.0.allow_crash(true);
        }
        let params = json!({
            "operation": operation_name(operation),
            "nth": nth,
            "fault": fault_form(fault),
        });
        let _: Option<Value> = self.0.ask("faults.inject", params).await;
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Faults for Parts {
    fn supports(&self, fault: &WireFault) -> bool {
        self.0
            .backend()
            .hello
            .faults
            .contains(&FaultKind::of(fault))
    }

    fn late_failure_code(&self) -> &str {
        let declared = self.0.backend().hello.late_failure_code.as_deref();
        declared.unwrap_or("ContractFailsLate")
    }

    fn late_capacity_code(&self) -> Option<&str> {
        self.0.backend().hello.late_capacity_code.as_deref()
    }

    /// None: the protocol has no message for the errors of one cloud, so the kit's faults stand for them.
    fn native_errors(&self) -> Vec<NativeError> {
        Vec::new()
    }

    async fn inject_native(&self, _operation: Operation, _error: &NativeError) -> bool {
        false
    }

    async fn inject(&self, operation: WireOp, nth: u64, fault: WireFault) {
        self.inject_into(operation, Some(nth), &fault).await;
    }

    async fn inject_always(&self, operation: WireOp, fault: WireFault) {
        self.inject_into(operation, None, &fault).await;
    }

    /// The faults of a process die with it, after the one that killed it.
    async fn all_injected(&self) -> bool {
        let injected = self.0.ask("faults.all_injected", json!({})).await;
        injected.unwrap_or_default() || self.0.has_crashed()
    }

    async fn clear(&self) -> bool {
        let injected = self.0.ask("faults.clear", json!({})).await;
        let crashed = self.0.has_crashed();
        self.0.allow_crash(false);
        injected.unwrap_or_default() || crashed
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl ExternalActor for Parts {
    async fn launch(&self, tags: Tags) -> InstanceId {
        let id = self.0.ask("actor.launch", json!({ "tags": tags })).await;
        id.unwrap_or_else(|| self.0.backend().hello.unknown_id.clone())
    }

    async fn stop(&self, id: &InstanceId) {
        let _: Option<Value> = self.0.ask("actor.stop", json!({ "id": id })).await;
    }

    async fn terminate(&self, id: &InstanceId) {
        let _: Option<Value> = self.0.ask("actor.terminate", json!({ "id": id })).await;
    }

    async fn disconnect(&self, id: &InstanceId) -> Option<Scope> {
        let params = json!({ "id": id });
        let part: Option<Option<Scope>> = self.0.ask("actor.disconnect", params).await;
        part.flatten()
    }

    async fn reconnect(&self) {
        let _: Option<Value> = self.0.ask("actor.reconnect", json!({})).await;
    }

    async fn limit_capacity(&self, count: u64) -> bool {
        let params = json!({ "count": count });
        let limited = self.0.ask("actor.limit_capacity", params).await;
        limited.unwrap_or_default()
    }
}
