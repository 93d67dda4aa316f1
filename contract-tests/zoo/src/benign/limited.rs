//! Backends that allow less than others: fewer tags, fewer characters, no user data, no zones.

use std::{num::NonZeroU32, sync::Arc};

use async_trait::async_trait;
use fleetwright::{
    Call, Capabilities, InstanceConfig, InstanceId, InstanceInfo, InvalidValue, Operation, Problem,
    Result, TagChange, Tags, Zone,
};
use fleetwright_contract_tests::{Faults, NotApplicable, WireFault, WireOp};

use crate::{CallContext, Override};

/// Declares lower limits, and refuses what exceeds them.
#[derive(Clone, Copy)]
pub(super) struct Limited {
    /// Lowers the limits of the declaration.
    pub(super) lower: fn(&mut Capabilities),
    /// Whether tags may contain a character.
    pub(super) allows: fn(char) -> bool,
}

impl Limited {
    fn declared(&self, sound: &Capabilities) -> Capabilities {
        let mut declared = sound.clone();
        (self.lower)(&mut declared);
        declared
    }

    /// Refuses tags with other characters, and keys that do not begin with a letter.
    fn check_tags(&self, tags: &Tags) -> Result<(), InvalidValue> {
        let plain = |text: &str| text.chars().all(self.allows);
        let good = |(key, value): (&str, &str)| {
            plain(key) && plain(value) && key.starts_with(|c: char| c.is_ascii_alphabetic())
        };
        if tags.iter().all(good) {
            return Ok(());
        }
        let instead = "letters, digits, hyphens and underscores".to_owned();
        Err(InvalidValue::new("tags", Problem::NotOffered { instead }))
    }

    fn check(&self, at: CallContext<'_>, call: &Call, config: &InstanceConfig) -> Result<()> {
        let checked = config.check(&self.declared(at.inner.capabilities()));
        checked
            .and_then(|()| self.check_tags(&config.tags))
            .map_err(|value| call.invalid(value))
    }
}

#[async_trait]
impl Override for Limited {
    fn capabilities(&self, sound: &Capabilities) -> Capabilities {
        self.declared(sound)
    }
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        self.check(at, &at.call(Operation::LaunchInstance), config)?;
        at.inner.launch_instance(config).await
    }
    async fn launch_instances(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        self.check(at, &at.call(Operation::LaunchInstances), config)?;
        at.inner.launch_instances(config, count).await
    }
    async fn update_tags(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
        change: &TagChange,
    ) -> Result<()> {
        let current = at.truth(id).map(|truth| truth.info.tags);
        let changed = change.apply(&current.unwrap_or_default());
        let limits = self.declared(at.inner.capabilities()).tags;
        let checked = changed.and_then(|tags| {
            limits.check(&tags)?;
            self.check_tags(&tags)
        });
        checked.map_err(|value| at.call(Operation::UpdateTags).invalid(value))?;
        at.inner.update_tags(id, change).await
    }
}

/// A backend without zones, whose harness therefore names none.
#[derive(Default)]
pub(super) struct NoZones;

impl Override for NoZones {
    fn zone(&self, _: Option<Zone>) -> Option<Zone> {
        None
    }
}

/// A cloud that never throttles, knows no credentials, permissions, quota and capacity, and whose
/// launches never fail late.
#[derive(Default)]
pub(super) struct NeverRefuses;

/// What [`NeverRefuses`] lacks.
const ABSENT: [NotApplicable; 6] = [
    NotApplicable::Throttling,
    NotApplicable::Credentials,
    NotApplicable::Permissions,
    NotApplicable::Quota,
    NotApplicable::Capacity,
    NotApplicable::LateFailures,
];

impl Override for NeverRefuses {
    fn capabilities(&self, sound: &Capabilities) -> Capabilities {
        let mut declared = sound.clone();
        declared.late_failures = std::time::Duration::ZERO;
        declared
    }
    fn not_applicable(&self) -> Vec<NotApplicable> {
        ABSENT.to_vec()
    }
    fn faults(&self, sound: Arc<dyn Faults>) -> Arc<dyn Faults> {
        Arc::new(WithoutRefusals(sound))
    }
}

/// Faults without refusals and without late failures.
struct WithoutRefusals(Arc<dyn Faults>);

#[async_trait]
impl Faults for WithoutRefusals {
    fn supports(&self, fault: &WireFault) -> bool {
        let absent = matches!(
            fault,
            WireFault::Throttled(_)
                | WireFault::BadCredentials
                | WireFault::Forbidden
                | WireFault::Capacity
                | WireFault::Quota
                | WireFault::FailsLate(_)
        );
        !absent && self.0.supports(fault)
    }
    async fn inject(&self, operation: WireOp, nth: u64, fault: WireFault) {
        self.0.inject(operation, nth, fault).await;
    }
    async fn inject_always(&self, operation: WireOp, fault: WireFault) {
        self.0.inject_always(operation, fault).await;
    }
    async fn all_injected(&self) -> bool {
        self.0.all_injected().await
    }
    async fn clear(&self) -> bool {
        self.0.clear().await
    }
}
