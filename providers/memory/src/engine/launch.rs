//! Launches and launch tokens.
//!
//! Owns idempotency: a token that was used before returns the same instances, conflicts, or is
//! spent, and it never creates more than the requested count.

use std::{collections::VecDeque, num::NonZeroU32, sync::Arc};

use fleetwright::{
    BatchLaunch, Fingerprint, InstanceConfig, InvalidValue, LaunchToken, Market, NetworkId,
    Problem, PublicAddress, SecurityGroupId, Zone,
};

use super::{Event, Lag, Record, Seq, Version, View, World, record::Disk};
use crate::{error::NativeError, state::NativeState};

/// The size of the root disk if neither the config nor a snapshot has one: 8 GB.
pub(super) const DEFAULT_DISK_GB: NonZeroU32 = NonZeroU32::new(8).unwrap();

/// The parameters of one launch call.
#[derive(Clone, Debug)]
pub(crate) struct LaunchRequest<'a> {
    pub(crate) config: &'a InstanceConfig,
    pub(crate) count: NonZeroU32,
    /// The reason with which the instances fail to boot, injected by a fault.
    pub(crate) boot_failure: Option<String>,
}

/// The launched instances and, if some are missing, the error that explains why.
#[derive(Debug)]
pub(crate) struct LaunchOutcome {
    pub(crate) views: Vec<View>,
    pub(crate) error: Option<NativeError>,
}

/// The record of a launch token.
#[derive(Debug)]
pub(super) struct TokenEntry {
    fingerprint: Fingerprint,
    instances: Vec<Seq>,
    /// How many of the instances are not terminated.
    existing: u64,
}

impl World {
    /// Launches instances, or returns the instances that the same token launched before. In partial
    /// mode, a replay creates the missing ones.
    ///
    /// # Errors
    ///
    /// Every error is without effect. A partial launch returns its error inside the outcome.
    pub(crate) fn launch(
        &mut self,
        request: &LaunchRequest<'_>,
    ) -> Result<LaunchOutcome, NativeError> {
        let config = request.config;
        config
            .check(&self.knobs.capabilities)
            .map_err(NativeError::Invalid)?;
        let zone = self.choose_zone(config)?;
        let earlier = self.find_replayed(request)?;
        let missing = request.count.get().saturating_sub(len32(&earlier));
        let market = config.placement.market.unwrap_or(Market::OnDemand);
        let kind = (config.instance_type.clone(), zone.clone(), market);
        let public_address = config
            .placement
            .public_address
            .unwrap_or(self.knobs.public_address);
        let (granted, mut error) = self.grant(&kind, public_address, missing.into());
        let late = self.late_shortage(request, &mut error, u64::from(missing) - granted);
        let all_or_nothing = self.knobs.capabilities.batch_launch == BatchLaunch::AllOrNothing;
        if let Some(error) = &error {
            if all_or_nothing || (granted == 0 && earlier.is_empty()) {
                return Err(error.clone());
            }
        }
        let mut created = Vec::new();
        let token = request.config.launch_token.as_ref();
        let fingerprint = token.map(|_| request.config.fingerprint(request.count));
        for _ in 0..granted {
            created.extend(self.create(request, fingerprint, &zone, market));
        }
        for request in late {
            created.extend(self.create(&request, fingerprint, &zone, market));
        }
        self.record_token(request, &earlier, &created);
        let views = earlier
            .iter()
            .chain(&created)
            .filter_map(|seq| self.view(*seq))
            .collect();
        Ok(LaunchOutcome { views, error })
    }

    /// Returns the zone to launch in: the requested one, or the first. Checks image, type and zone
    /// against the catalog.
    fn choose_zone(&self, config: &InstanceConfig) -> Result<Zone, NativeError> {
        self.check_image(&config.image)?;
        self.check_type(&config.instance_type)?;
        let zones = &self.knobs.zones;
        let requested = config.placement.zone.as_ref();
        let zone = requested.map_or(zones.first(), |requested| {
            zones.iter().find(|zone| *zone == requested)
        });
        let zone = zone.cloned().ok_or_else(|| {
            let names: Vec<_> = zones.iter().map(Zone::as_str).collect();
            not_offered("placement.zone", &names.join(", "))
        })?;
        if self.zones_down.contains(&zone) {
            return Err(NativeError::ZoneDown(zone));
        }
        Ok(zone)
    }

    /// Returns the instances that the request's token has launched so far.
    ///
    /// # Errors
    ///
    /// `TokenMismatch` if the config differs, `TokenSpent` if no instance of it will remain.
    fn find_replayed(&self, request: &LaunchRequest<'_>) -> Result<Vec<Seq>, NativeError> {
        let Some(token) = &request.config.launch_token else {
            return Ok(Vec::new());
        };
        match self.tokens.get(token) {
            None => Ok(Vec::new()),
            Some(entry) if entry.fingerprint != request.config.fingerprint(request.count) => {
                Err(NativeError::TokenMismatch(token.clone()))
            }
            Some(entry) if self.is_ending(entry) => Err(NativeError::TokenSpent(token.clone())),
            Some(entry) => Ok(entry.instances.clone()),
        }
    }

    /// Whether all instances of a token are terminating, terminated or purged.
    fn is_ending(&self, entry: &TokenEntry) -> bool {
        let kept = entry
            .instances
            .iter()
            .filter_map(|seq| self.records.get(seq));
        kept.map(|record| record.current().state)
            .all(NativeState::is_ending)
    }

    /// Returns the launches that are accepted and fail late, if missing capacity is found late. Takes the
    /// error, because the launch is not refused.
    fn late_shortage<'a>(
        &self,
        request: &LaunchRequest<'a>,
        error: &mut Option<NativeError>,
        missing: u64,
    ) -> Vec<LaunchRequest<'a>> {
        let is_late = self.knobs.accepts_without_capacity
            && matches!(error, Some(NativeError::NoCapacity { .. }));
        let Some(shortage) = error.take_if(|_| is_late) else {
            return Vec::new();
        };
        let failed = LaunchRequest {
            boot_failure: Some(format!("{}: no machine is free", shortage.code())),
            ..request.clone()
        };
        (0..missing).map(|_| failed.clone()).collect()
    }

    /// Creates one pending instance with its disk, network card and addresses.
    fn create(
        &mut self,
        request: &LaunchRequest<'_>,
        fingerprint: Option<Fingerprint>,
        zone: &Zone,
        market: Market,
    ) -> Option<Seq> {
        let config = request.config;
        let placement = &config.placement;
        let public_address = placement
            .public_address
            .unwrap_or(self.knobs.public_address);
        let private_ip = self.private.allocate()?;
        let public_ip = match public_address {
            PublicAddress::Assigned => self.public.allocate(),
            PublicAddress::Absent => None,
        };
        let (seq, id) = self.ids.instance();
        let mut snapshots = self.images.values();
        let snapshot = snapshots.find(|image| image.id == config.image);
        let image_size = snapshot.map_or(DEFAULT_DISK_GB, |image| image.disk_size_gb);
        let groups = placement.security_groups.iter().cloned().collect();
        let record = Record {
            seq,
            id,
            token: config.launch_token.clone(),
            config: fingerprint,
            zone: zone.clone(),
            network: placement.network.clone().unwrap_or_else(default_network),
            security_groups: groups_or_default(groups),
            public_address,
            market,
            user_data: config.user_data.clone(),
            launched: self.now,
            disk: Some(Disk {
                name: self.ids.disk(),
                size_gb: config.disk_size_gb.unwrap_or(image_size),
            }),
            holds_machine: false,
            boots: 0,
            console: Vec::new(),
            boot_failure: request.boot_failure.clone(),
            transition: 0,
            earlier: VecDeque::new(),
            latest: Version {
                since: self.now,
                state: NativeState::Provisioning,
                reason: None,
                launch_failed: false,
                mac: Some(self.ids.mac()),
                private_ip: Some(private_ip),
                public_ip,
                tags: Arc::new(config.tags.clone()),
                instance_type: config.instance_type.clone(),
                image: config.image.clone(),
            },
        };
        self.index.change(seq, &[], &record.index_entries());
        self.records.insert(seq, record);
        self.usage.instances += 1;
        let late_failures = self.knobs.capabilities.late_failures;
        let duration = if request.boot_failure.is_some() && !late_failures.is_zero() {
            late_failures
        } else {
            self.take_machine(seq);
            self.knobs.timing.boot
        };
        self.schedule(duration, Event::FinishTransition(seq, 0));
        Some(seq)
    }

    /// Records the instances that a launch has created under its token.
    fn record_token(&mut self, request: &LaunchRequest<'_>, earlier: &[Seq], created: &[Seq]) {
        let Some(token) = &request.config.launch_token else {
            return;
        };
        if earlier.is_empty() {
            let entry = TokenEntry {
                fingerprint: request.config.fingerprint(request.count),
                instances: created.to_vec(),
                existing: created.len() as u64,
            };
            self.tokens.insert(token.clone(), entry);
        } else if let Some(entry) = self.tokens.get_mut(token) {
            entry.instances.extend(created);
            entry.existing += created.len() as u64;
        }
    }

    /// Counts the termination of one instance of a token. After the last one, the token expires at
    /// the end of its retention.
    pub(super) fn release_token_instance(&mut self, token: &LaunchToken) {
        let Some(entry) = self.tokens.get_mut(token) else {
            return;
        };
        entry.existing -= 1;
        if entry.existing == 0 {
            let event = Event::ExpireToken(token.clone());
            self.schedule(self.knobs.capabilities.token_after_terminate, event);
        }
    }

    /// Forgets an instance whose launch failed late. A token without any other instance is free again.
    pub(super) fn free_token(&mut self, token: &LaunchToken, failed: Seq) {
        let Some(entry) = self.tokens.get_mut(token) else {
            return;
        };
        entry.existing -= 1;
        entry.instances.retain(|seq| *seq != failed);
        if entry.instances.is_empty() {
            self.tokens.remove(token);
        } else if entry.existing == 0 {
            let event = Event::ExpireToken(token.clone());
            self.schedule(self.knobs.capabilities.token_after_terminate, event);
        }
    }

    /// Removes a token. A spent token launches nothing, so no instance can still refer to it.
    pub(super) fn expire_token(&mut self, token: &LaunchToken) {
        self.tokens.remove(token);
    }

    /// Returns what a token has launched, as of the time that the read sees. `None` means that the
    /// read shows no launch; an empty list means that all of its instances have been purged.
    pub(crate) fn find_launch(
        &mut self,
        token: &LaunchToken,
        lag: Lag,
    ) -> Result<Option<Vec<View>>, NativeError> {
        let read_time = self.read_time(lag);
        let Some(entry) = self.tokens.get(token) else {
            return Ok(None);
        };
        let kept: Vec<_> = entry
            .instances
            .iter()
            .filter_map(|seq| self.records.get(seq))
            .collect();
        self.records_touched += kept.len() as u64;
        if kept.is_empty() {
            return Ok(Some(Vec::new()));
        }
        if let Some(record) = kept
            .iter()
            .find(|record| self.zones_down.contains(&record.zone))
        {
            return Err(NativeError::ZoneDown(record.zone.clone()));
        }
        let visible: Vec<_> = kept
            .iter()
            .filter_map(|record| Some((record, record.version_at(read_time)?)))
            .collect();
        let views = visible
            .iter()
            .map(|(r, version)| r.view(version, self.date_at(r.launched)));
        let views: Vec<_> = views.collect();
        Ok((!views.is_empty()).then_some(views))
    }

    /// Returns the current view of an instance.
    pub(crate) fn view(&self, seq: Seq) -> Option<View> {
        let record = self.records.get(&seq)?;
        Some(record.view(record.current(), self.date_at(record.launched)))
    }
}

/// The length, saturated.
fn len32(list: &[Seq]) -> u32 {
    u32::try_from(list.len()).unwrap_or(u32::MAX)
}

/// Returns the error for a value outside the catalog.
pub(super) fn not_offered(field: &str, offered: &str) -> NativeError {
    let instead = format!("choose one of: {offered}");
    NativeError::Invalid(InvalidValue::new(field, Problem::NotOffered { instead }))
}

#[expect(clippy::expect_used, reason = "the name is a valid constant")]
fn default_network() -> NetworkId {
    NetworkId::new("net-default").expect("a valid name")
}

#[expect(clippy::expect_used, reason = "the name is a valid constant")]
fn groups_or_default(groups: Vec<SecurityGroupId>) -> Vec<SecurityGroupId> {
    if groups.is_empty() {
        vec![SecurityGroupId::new("sg-default").expect("a valid name")]
    } else {
        groups
    }
}
