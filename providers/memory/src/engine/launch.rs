//! Launching, and what is remembered of a launch by its token.

use std::{collections::VecDeque, num::NonZeroU32, sync::Arc};

use fleetwright::{
    BatchLaunch, Fingerprint, InstanceConfig, InvalidValue, LaunchToken, Market, NetworkId,
    Problem, PublicAddress, SecurityGroupId, Zone,
};

use super::{Event, Lag, Record, Seq, Version, View, World, record::Disk};
use crate::{error::Refusal, state::NativeState};

/// The root disk's size where the config gives none.
const DEFAULT_DISK_GB: NonZeroU32 = NonZeroU32::new(8).unwrap();

/// What is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Order<'a> {
    pub(crate) config: &'a InstanceConfig,
    pub(crate) count: NonZeroU32,
    /// Why the instances are going to fail before they run.
    pub(crate) doom: Option<String>,
}

/// What was launched, and where that is not all of it, why not.
#[derive(Debug)]
pub(crate) struct Launched {
    pub(crate) views: Vec<View>,
    pub(crate) refusal: Option<Refusal>,
}

/// What is remembered of a launch.
#[derive(Debug)]
pub(super) struct TokenEntry {
    fingerprint: Fingerprint,
    instances: Vec<Seq>,
    /// How many of them are not terminated.
    going: u64,
}

impl World {
    /// Launches, or answers what the same token launched before.
    pub(crate) fn launch(&mut self, order: &Order<'_>) -> Result<Launched, Refusal> {
        let config = order.config;
        config
            .check(&self.knobs.capabilities)
            .map_err(Refusal::Invalid)?;
        let zone = self.offered(config)?;
        let earlier = self.earlier(order)?;
        let missing = order.count.get().saturating_sub(len32(&earlier));
        let market = config.placement.market.unwrap_or(Market::OnDemand);
        let kind = (config.instance_type.clone(), zone.clone(), market);
        let public_address = config
            .placement
            .public_address
            .unwrap_or(self.knobs.public_address);
        let (granted, refusal) = self.grant(&kind, public_address, missing.into());
        let all_or_nothing = self.knobs.capabilities.batch_launch == BatchLaunch::AllOrNothing;
        if let Some(refusal) = &refusal {
            if all_or_nothing || (granted == 0 && earlier.is_empty()) {
                return Err(refusal.clone());
            }
        }
        let mut made = Vec::new();
        for _ in 0..granted {
            made.extend(self.create(order, &zone, market));
        }
        self.remember(order, &earlier, &made);
        let views = earlier
            .iter()
            .chain(&made)
            .filter_map(|seq| self.view(*seq))
            .collect();
        Ok(Launched { views, refusal })
    }

    /// The zone to launch in, if everything that is asked for is offered there.
    fn offered(&self, config: &InstanceConfig) -> Result<Zone, Refusal> {
        self.check_image(&config.image)?;
        self.check_type(&config.instance_type)?;
        let zones = &self.knobs.zones;
        let wanted = config.placement.zone.as_ref();
        let zone = wanted.map_or(zones.first(), |wanted| {
            zones.iter().find(|zone| *zone == wanted)
        });
        let zone = zone.cloned().ok_or_else(|| {
            let names: Vec<_> = zones.iter().map(Zone::as_str).collect();
            not_offered("placement.zone", &names.join(", "))
        })?;
        if self.zones_down.contains(&zone) {
            return Err(Refusal::ZoneDown(zone));
        }
        Ok(zone)
    }

    /// What the order's token has launched so far.
    fn earlier(&self, order: &Order<'_>) -> Result<Vec<Seq>, Refusal> {
        let Some(token) = &order.config.launch_token else {
            return Ok(Vec::new());
        };
        match self.tokens.get(token) {
            None => Ok(Vec::new()),
            Some(entry) if entry.fingerprint != order.config.fingerprint(order.count) => {
                Err(Refusal::TokenMismatch(token.clone()))
            }
            Some(entry) if self.is_ending(entry) => Err(Refusal::TokenSpent(token.clone())),
            Some(entry) => Ok(entry.instances.clone()),
        }
    }

    /// Whether nothing of a launch will be left.
    fn is_ending(&self, entry: &TokenEntry) -> bool {
        let kept = entry
            .instances
            .iter()
            .filter_map(|seq| self.records.get(seq));
        kept.map(|record| record.current().state)
            .all(NativeState::is_ending)
    }

    fn create(&mut self, order: &Order<'_>, zone: &Zone, market: Market) -> Option<Seq> {
        let config = order.config;
        let placement = &config.placement;
        let public_address = placement
            .public_address
            .unwrap_or(self.knobs.public_address);
        let private_ip = self.private.take()?;
        let public_ip = match public_address {
            PublicAddress::Assigned => self.public.take(),
            PublicAddress::Absent => None,
        };
        self.last_seq += 1;
        let seq = self.last_seq;
        let groups = placement.security_groups.iter().cloned().collect();
        let record = Record {
            seq,
            id: self.names.instance(),
            token: config.launch_token.clone(),
            zone: zone.clone(),
            network: placement.network.clone().unwrap_or_else(default_network),
            security_groups: or_default(groups),
            public_address,
            market,
            user_data: config.user_data.clone(),
            launched: self.now,
            disk: Some(Disk {
                name: self.names.disk(),
                size_gb: config.disk_size_gb.unwrap_or(DEFAULT_DISK_GB),
            }),
            holds_machine: false,
            boots: 0,
            console: Vec::new(),
            doom: order.doom.clone(),
            transition: 0,
            versions: VecDeque::from([Version {
                since: self.now,
                state: NativeState::Provisioning,
                reason: None,
                mac: Some(self.names.mac()),
                private_ip: Some(private_ip),
                public_ip,
                tags: Arc::new(config.tags.clone()),
                instance_type: config.instance_type.clone(),
                image: config.image.clone(),
            }]),
        };
        self.index.change(seq, &[], &record.standings());
        self.by_id.insert(record.id.clone(), seq);
        self.records.insert(seq, record);
        self.usage.instances += 1;
        self.take_machine(seq);
        self.after(self.knobs.timing.boot, Event::Settle(seq, 0));
        Some(seq)
    }

    fn remember(&mut self, order: &Order<'_>, earlier: &[Seq], made: &[Seq]) {
        let Some(token) = &order.config.launch_token else {
            return;
        };
        if earlier.is_empty() {
            let entry = TokenEntry {
                fingerprint: order.config.fingerprint(order.count),
                instances: made.to_vec(),
                going: made.len() as u64,
            };
            self.tokens.insert(token.clone(), entry);
        } else if let Some(entry) = self.tokens.get_mut(token) {
            entry.instances.extend(made);
            entry.going += made.len() as u64;
        }
    }

    /// One instance of a token is terminated. After the last, the token is forgotten in time.
    pub(super) fn token_lost_one(&mut self, token: &LaunchToken) {
        let Some(entry) = self.tokens.get_mut(token) else {
            return;
        };
        entry.going -= 1;
        if entry.going == 0 {
            let event = Event::Forget(token.clone());
            self.after(self.knobs.capabilities.token_after_terminate, event);
        }
    }

    /// Forgets a token. Until then it launches nothing, so nothing new is forgotten with it.
    pub(super) fn forget(&mut self, token: &LaunchToken) {
        self.tokens.remove(token);
    }

    /// What a token launched, as a lagging read sees it: nothing where it shows no launch, an empty
    /// list where the launch is known and every instance of it has vanished.
    pub(crate) fn find_launch(
        &mut self,
        token: &LaunchToken,
        lag: Lag,
    ) -> Result<Option<Vec<View>>, Refusal> {
        let moment = self.moment(lag);
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
            return Err(Refusal::ZoneDown(record.zone.clone()));
        }
        let seen: Vec<_> = kept
            .iter()
            .filter_map(|record| Some((record, record.version_at(moment)?)))
            .collect();
        let views = seen
            .iter()
            .map(|(r, version)| r.view(version, self.date_at(r.launched)));
        let views: Vec<_> = views.collect();
        Ok((!views.is_empty()).then_some(views))
    }

    /// An instance as it truly is.
    pub(crate) fn view(&self, seq: Seq) -> Option<View> {
        let record = self.records.get(&seq)?;
        Some(record.view(record.current(), self.date_at(record.launched)))
    }
}

fn len32(list: &[Seq]) -> u32 {
    u32::try_from(list.len()).unwrap_or(u32::MAX)
}

/// The refusal of a value that is not in the catalog.
pub(super) fn not_offered(field: &str, offered: &str) -> Refusal {
    let instead = format!("choose one of: {offered}");
    Refusal::Invalid(InvalidValue::new(field, Problem::NotOffered { instead }))
}

#[expect(clippy::expect_used, reason = "the name is a valid constant")]
fn default_network() -> NetworkId {
    NetworkId::new("net-default").expect("a plain name")
}

#[expect(clippy::expect_used, reason = "the name is a valid constant")]
fn or_default(groups: Vec<SecurityGroupId>) -> Vec<SecurityGroupId> {
    if groups.is_empty() {
        vec![SecurityGroupId::new("sg-default").expect("a plain name")]
    } else {
        groups
    }
}
