//! The instances and images that the calls of the matrix are made on.
//!
//! Owns their reuse. An instance that one cell has stopped is started by another, one that was
//! launched is terminated later, and a wait is for all of them at once, so that a walk over some
//! hundred cells needs few instances and little time.

use std::num::NonZeroU32;

use fleetwright::{
    AccountId, CloudInstanceState, Effect, ErrorKind, ImageId, InstanceConfig, InstanceId,
    OptionalVerb, PlacementField, SnapshotRequest, TagChange, Tags, UserData,
};

use super::{
    operations::{Change, Needs, Row, Target},
    truth::find,
};
use crate::{Context, Failure, SCOPE_TAG, Truth};

/// How many instances are launched when more are needed.
const LAUNCHED_AT_ONCE: u32 = 6;
/// How many instances are kept for later cells.
const KEPT: usize = 14;
/// How many images are created when more are needed.
const IMAGES_AT_ONCE: usize = 6;
/// The tag that tells cells apart.
const CELL_TAG: &str = "kit-cell";

/// Instances in known states, ready images, and those that are on their way.
pub(super) struct Stock<'a> {
    cx: &'a Context,
    running: Vec<InstanceId>,
    stopped: Vec<InstanceId>,
    starting: Vec<InstanceId>,
    stopping: Vec<InstanceId>,
    images: Vec<(ImageId, SnapshotRequest)>,
    /// Images that cells created.
    created: Vec<ImageId>,
    /// How many names were given.
    pub(super) names: u32,
    /// The account of all of them.
    account: Option<AccountId>,
    /// The launch of an instance that is never changed.
    standing: InstanceConfig,
    /// That instance, one that is stopped and one that is terminated.
    bystanders: Vec<InstanceId>,
}

impl<'a> Stock<'a> {
    /// Launches the instances that are never changed, and the first ones that are. `names` is how many
    /// names an earlier stock has given.
    pub(super) async fn new(cx: &'a Context, names: u32) -> Result<Self, Failure> {
        let account = cx.provisioner().account_id().await;
        let account = account.map_err(|error| Failure::call_failed("account_id", &error))?;
        let mut stock = Self {
            cx,
            running: Vec::new(),
            stopped: Vec::new(),
            starting: Vec::new(),
            stopping: Vec::new(),
            images: Vec::new(),
            created: Vec::new(),
            names,
            account,
            standing: cx.config(),
            bystanders: Vec::new(),
        };
        stock.standing = stock.config()?;
        stock.standing.launch_token = Some(cx.new_token());
        let standing = cx.launch_config(&stock.standing).await?.id;
        stock.launch().await?;
        let mut two = stock.take_running(2).await?.into_iter();
        let (Some(stopped), Some(terminated)) = (two.next(), two.next()) else {
            return Err(Failure::KitError("two instances were launched".to_owned()));
        };
        cx.wait_for_state(&standing, CloudInstanceState::Running)
            .await?;
        cx.stop(&stopped).await?;
        cx.terminate(&terminated).await?;
        cx.wait_for_state(&stopped, CloudInstanceState::Stopped)
            .await?;
        cx.wait_until_terminated(&terminated).await?;
        stock.bystanders = vec![standing, stopped, terminated];
        Ok(stock)
    }

    /// Returns what a call needs, in a state that every read shows.
    pub(super) async fn take(&mut self, row: &Row) -> Result<Target, Failure> {
        let mut created = None;
        let ids = match row.needs {
            Needs::Nothing | Needs::Launch => Vec::new(),
            Needs::Running(count) => self.take_running(count).await?,
            Needs::Stopped(count) => self.take_stopped(count).await?,
            Needs::Image => {
                created = Some(self.take_image().await?);
                Vec::new()
            }
        };
        let config = match row.change {
            Change::Launch(_) => {
                let mut config = self.config()?;
                config.launch_token = Some(self.cx.new_token());
                config
            }
            Change::LaunchOnce => self.config()?,
            Change::Nothing
            | Change::Session
            | Change::Stop
            | Change::Start
            | Change::Terminate
            | Change::Tags
            | Change::Boot
            | Change::Type
            | Change::Image
            | Change::Snapshot
            | Change::Deletion => self.standing.clone(),
        };
        let truth = if matches!(row.change, Change::Type | Change::Image) {
            find(&self.truth().await?, ids.first())
        } else {
            None
        };
        let (first, other) = (self.cx.config(), self.cx.harness());
        let mut instance_type = other
            .other_type()
            .unwrap_or_else(|| first.instance_type.clone());
        if truth
            .as_ref()
            .and_then(|truth| truth.info.instance_type.as_ref())
            == Some(&instance_type)
        {
            instance_type = first.instance_type;
        }
        let mut image = other.other_image().unwrap_or_else(|| first.image.clone());
        if truth.and_then(|truth| truth.info.image).as_ref() == Some(&image) {
            image = first.image;
        }
        let (set, removed) = if self.names % 2 == 0 {
            ("kit-even", "kit-odd")
        } else {
            ("kit-odd", "kit-even")
        };
        let name = self.name();
        let tags = TagChange::new().set(set, name).map_err(kit_error)?;
        let tags = tags.remove(removed).map_err(kit_error)?;
        let (created, snapshot) = match created {
            Some((image, request)) => (Some(image), request),
            None => (None, self.snapshot()?),
        };
        Ok(Target {
            ids,
            config,
            filter: self.cx.filter(),
            tags,
            instance_type,
            image,
            snapshot,
            created,
            account: self.account.clone(),
        })
    }

    /// Takes back what a call was made on. `settled` says whether the call has its full effect; if
    /// not, nobody knows the state of its instances, and they are left to the cleanup.
    pub(super) async fn give_back(
        &mut self,
        row: &Row,
        target: &Target,
        settled: bool,
    ) -> Result<(), Failure> {
        let launched = row.change.launches() > 0;
        let ids = if launched {
            let truth = self.truth().await?;
            super::truth::launched(target, &truth)
        } else {
            target.ids.clone()
        };
        if row.change == Change::Snapshot {
            // The same request returns the same image, however far the cell got.
            let created = self
                .cx
                .provisioner()
                .snapshot_image(&ids[0], &target.snapshot);
            self.created.extend(created.await.ok());
        }
        match row.change {
            Change::Nothing | Change::Session | Change::Tags => self.running.extend(ids),
            Change::Launch(_) | Change::LaunchOnce | Change::Boot | Change::Snapshot => {
                self.starting.extend(ids);
            }
            Change::Start if settled => self.starting.extend(ids),
            Change::Stop | Change::Type | Change::Image if settled => self.stopping.extend(ids),
            Change::Start
            | Change::Stop
            | Change::Type
            | Change::Image
            | Change::Terminate
            | Change::Deletion => {}
        }
        self.trim().await
    }

    /// Returns whether no call is changing this instance.
    pub(super) fn is_stable(&self, id: &InstanceId) -> bool {
        let known = [&self.running, &self.stopped, &self.bystanders];
        known.into_iter().any(|ids| ids.contains(id))
    }

    /// Returns everything that the clause has launched, as the oracle has it.
    pub(super) async fn truth(&self) -> Result<Vec<Truth>, Failure> {
        Ok(self.cx.oracle()?.instances(self.cx.scope()).await)
    }

    /// Terminates all instances but the ones that are never changed, and deletes all images.
    pub(super) async fn clear(&mut self) -> Result<Vec<InstanceId>, Failure> {
        let mut ids = std::mem::take(&mut self.running);
        for more in [&mut self.stopped, &mut self.starting, &mut self.stopping] {
            ids.append(more);
        }
        self.terminate(&ids).await?;
        if !self.cx.capabilities().supports(OptionalVerb::DeleteImage) {
            return Ok(ids);
        }
        let ready = std::mem::take(&mut self.images);
        let mut images = std::mem::take(&mut self.created);
        images.extend(ready.into_iter().map(|(image, _)| image));
        for image in images {
            let what = format!("{image} can be deleted");
            let deleted = self.cx.eventually(&what, async || {
                match self.cx.provisioner().delete_image(&image).await {
                    Ok(()) => Ok(Some(())),
                    Err(error) if error.retry().delay().is_some() => Ok(None),
                    Err(error) => Err(Failure::call_failed("delete_image", &error)),
                }
            });
            deleted.await?;
        }
        Ok(ids)
    }

    async fn terminate(&self, ids: &[InstanceId]) -> Result<(), Failure> {
        let results = self.cx.provisioner().terminate_instances(ids).await;
        for error in results.into_iter().filter_map(Result::err) {
            if error.kind() != ErrorKind::NotFound {
                return Err(Failure::call_failed("terminate_instances", &error));
            }
        }
        Ok(())
    }

    /// Terminates what is not needed.
    async fn trim(&mut self) -> Result<(), Failure> {
        let all = self.running.len() + self.starting.len() + self.stopped.len();
        let surplus = (all + self.stopping.len()).saturating_sub(KEPT);
        let from = self.starting.len().saturating_sub(surplus);
        let ids = self.starting.split_off(from);
        if ids.is_empty() {
            return Ok(());
        }
        self.terminate(&ids).await
    }

    async fn launch(&mut self) -> Result<(), Failure> {
        let mut config = self.config()?;
        config.launch_token = Some(self.cx.new_token());
        let count = NonZeroU32::MIN.saturating_add(LAUNCHED_AT_ONCE - 1);
        let launched = self.cx.provisioner().launch_instances(&config, count).await;
        let launched =
            launched.map_err(|error| Failure::call_failed("launch_instances", &error))?;
        self.starting
            .extend(launched.into_iter().map(|info| info.id));
        Ok(())
    }

    async fn take_running(&mut self, count: usize) -> Result<Vec<InstanceId>, Failure> {
        if self.running.len() < count && self.starting.len() + self.running.len() < count {
            self.launch().await?;
        }
        if self.running.len() < count {
            let starting = std::mem::take(&mut self.starting);
            self.wait(&starting, CloudInstanceState::Running).await?;
            self.running.extend(starting);
        }
        Ok(self.running.drain(..count).collect())
    }

    async fn take_stopped(&mut self, count: usize) -> Result<Vec<InstanceId>, Failure> {
        if self.stopped.len() < count && self.stopping.len() + self.stopped.len() < count {
            let ids = self.take_running(count).await?;
            for result in self.cx.provisioner().stop_instances(&ids).await {
                result.map_err(|error| Failure::call_failed("stop_instances", &error))?;
            }
            self.stopping.extend(ids);
        }
        if self.stopped.len() < count {
            let stopping = std::mem::take(&mut self.stopping);
            self.wait(&stopping, CloudInstanceState::Stopped).await?;
            self.stopped.extend(stopping);
        }
        Ok(self.stopped.drain(..count).collect())
    }

    /// Waits until every read shows these instances in `state`.
    async fn wait(&self, ids: &[InstanceId], state: CloudInstanceState) -> Result<(), Failure> {
        // A read may still show the state before the last change.
        self.cx.wait_for_consistent_reads().await;
        for id in ids {
            self.cx.wait_for_state(id, state).await?;
        }
        self.cx.wait_for_consistent_reads().await;
        Ok(())
    }

    /// Returns an image that can be deleted. Images take some time until that is so; when the last one can
    /// be launched, all of them can be deleted.
    async fn take_image(&mut self) -> Result<(ImageId, SnapshotRequest), Failure> {
        if let Some(image) = self.images.pop() {
            return Ok(image);
        }
        let source = self.take_running(1).await?;
        let mut last = None;
        for _ in 0..IMAGES_AT_ONCE {
            let request = self.snapshot()?;
            let created = self.cx.provisioner().snapshot_image(&source[0], &request);
            let image = created
                .await
                .map_err(|error| Failure::call_failed("snapshot_image", &error))?;
            last = Some((image.clone(), request.clone()));
            self.images.push((image, request));
        }
        self.starting.extend(source);
        let last = last.ok_or_else(|| Failure::KitError("no image was created".to_owned()))?;
        let mut config = self.config()?;
        config.image = last.0.clone();
        let launched = self.cx.eventually("an image can be launched", async || {
            match self.cx.provisioner().launch_instance(&config).await {
                Ok(info) => Ok(Some(info.id)),
                Err(error) if error.effect() == Effect::None => Ok(None),
                Err(error) => Err(Failure::call_failed("launch_instance", &error)),
            }
        });
        let launched = launched.await?;
        self.terminate(&[launched]).await?;
        self.cx.wait_for_consistent_reads().await;
        self.images.pop();
        Ok(last)
    }

    /// Returns a name that nothing else has.
    fn name(&mut self) -> String {
        self.names += 1;
        self.names.to_string()
    }

    /// Returns a config that sets every field that can be compared, with a tag that no other launch has.
    fn config(&mut self) -> Result<InstanceConfig, Failure> {
        let cx = self.cx;
        let mut config = cx.config();
        let name = self.name();
        config.tags.insert(CELL_TAG, name).map_err(kit_error)?;
        let marker = marker(cx);
        if marker.len() <= cx.capabilities().max_user_data_bytes {
            config.user_data = Some(UserData::new(marker).map_err(kit_error)?);
        }
        config.disk_size_gb = NonZeroU32::new(33);
        if cx.capabilities().placement.contains(&PlacementField::Zone) {
            config.placement.zone = cx.harness().zone();
        }
        Ok(config)
    }

    fn snapshot(&mut self) -> Result<SnapshotRequest, Failure> {
        let scope = self.cx.scope().get(SCOPE_TAG).unwrap_or_default();
        let name = self.name();
        let request = SnapshotRequest::new(format!("kit-{scope}-{name}"));
        let mut request = request.map_err(kit_error)?;
        request.tags = image_tags(self.cx)?;
        request.tags.insert(CELL_TAG, name).map_err(kit_error)?;
        Ok(request)
    }
}

/// Returns the user data of every launch: a text that nothing else contains. Its length is a multiple of
/// three, so that its base64 form has no padding and can be found.
pub(super) fn marker(cx: &Context) -> String {
    let scope = cx.scope().get(SCOPE_TAG).unwrap_or_default();
    let mut marker = format!("kit-secret-{scope}");
    while marker.len() % 3 != 0 {
        marker.push('x');
    }
    marker
}

/// Returns the tag of every image. It is a label on every cloud: images need not have other tags.
pub(super) fn image_tags(cx: &Context) -> Result<Tags, Failure> {
    let scope = cx.scope().get(SCOPE_TAG).unwrap_or_default();
    Tags::new().with(SCOPE_TAG, scope).map_err(kit_error)
}

pub(super) fn kit_error(error: impl std::fmt::Display) -> Failure {
    Failure::KitError(error.to_string())
}
