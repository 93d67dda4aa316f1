//! External actions on a project. They bypass the API: no throttling, no deletion protection, and a
//! new instance is found without lag.
//!
//! They are not among the recorded calls and do not count as reads. Each creates an operation: one of
//! the user `system` for what the guest or Compute Engine does (`compute.instances.guestTerminate`,
//! `compute.instances.preempted`, `compute.instances.hostError`), and that of the API's own call for
//! everything else. Changes of labels, metadata, disks and images are finished at once.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};

use super::{
    Engine,
    operation::NewOperation,
    record::{CurrentStep, Status, TerminationAction},
    rules::{self, Metadata},
};
use crate::{
    cloud::{fault::Failure, index::Seq},
    gcp::{
        catalog::Image,
        error::Refusal,
        wire::{
            link::ResourceLink,
            route::{Scope, Target},
        },
    },
};

/// Something that happens to a project without a call of the tested client: an action of an external
/// actor, of the guest or of Compute Engine.
///
/// In JSON, the field `action` has the name in snake case:
///
/// ```
/// # use fleetwright_emulators::gcp::ExternalAction;
/// let action: ExternalAction = serde_json::from_str(
///     r#"{"action": "stop", "instance": "projects/p/zones/us-central1-a/instances/n"}"#,
/// )?;
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum ExternalAction {
    /// Creates instances that the tested client did not create. The oracle reports them as
    /// external.
    LaunchExternal {
        /// The project.
        project: String,
        /// The zone. Default: the first zone of the knobs.
        #[serde(default)]
        zone: Option<String>,
        /// The name, followed by `-0`, `-1` and so on if `count` is not 1. Default: `external`.
        #[serde(default)]
        name: Option<String>,
        /// The machine type. Default: the first one of the knobs.
        #[serde(default)]
        machine_type: Option<String>,
        /// How many instances. Default: 1.
        #[serde(default = "one")]
        count: u32,
        /// Their labels. Default: none.
        #[serde(default)]
        labels: BTreeMap<String, String>,
        /// Their metadata. Default: none.
        #[serde(default)]
        metadata: BTreeMap<String, String>,
    },
    /// Creates a blank `pd-standard` disk that is not attached.
    AddDisk {
        /// The project.
        project: String,
        /// Its zone.
        zone: String,
        /// Its name; refused if a disk of the zone has it.
        name: String,
        /// Its size in GiB.
        gib: u32,
        /// Its labels. Default: none.
        #[serde(default)]
        labels: BTreeMap<String, String>,
    },
    /// Stops an instance that runs or boots, as a person at the cloud's console would.
    Stop {
        /// Its path, for example `projects/p/zones/z/instances/n`, or its link.
        instance: String,
    },
    /// Deletes an instance in any state, even a protected one.
    Delete {
        /// Its path, for example `projects/p/zones/z/instances/n`, or its link.
        instance: String,
    },
    /// Suspends a running instance.
    Suspend {
        /// Its path, for example `projects/p/zones/z/instances/n`, or its link.
        instance: String,
    },
    /// The guest of a running instance shuts down: the instance becomes `TERMINATED`, with an
    /// operation `compute.instances.guestTerminate`.
    GuestShutdown {
        /// Its path, for example `projects/p/zones/z/instances/n`, or its link.
        instance: String,
    },
    /// Compute Engine preempts an instance: it is stopped, or deleted if its scheduling says so,
    /// with an operation `compute.instances.preempted`.
    ///
    /// If the instance is still being created, its insert fails with `UNSUPPORTED_OPERATION`.
    Preempt {
        /// Its path, for example `projects/p/zones/z/instances/n`, or its link.
        instance: String,
    },
    /// The machine of a running instance fails: the instance is `REPAIRING` for `timing.repair`,
    /// and then boots, with an operation `compute.instances.hostError`.
    Repair {
        /// Its path, for example `projects/p/zones/z/instances/n`, or its link.
        instance: String,
    },
    /// Replaces all labels of an instance immediately, without a fingerprint.
    SetLabels {
        /// Its path, for example `projects/p/zones/z/instances/n`, or its link.
        instance: String,
        /// The new labels.
        labels: BTreeMap<String, String>,
    },
    /// Replaces all metadata of an instance immediately, without a fingerprint.
    SetMetadata {
        /// Its path, for example `projects/p/zones/z/instances/n`, or its link.
        instance: String,
        /// The new metadata.
        metadata: BTreeMap<String, String>,
    },
    /// Deletes an image immediately, even one of the knobs, which is then removed from them too.
    DeleteImage {
        /// Its project.
        project: String,
        /// Its name.
        name: String,
    },
}

/// The states in which a client can see an instance.
const ANY: &[Status] = &Status::VISIBLE;
/// The state in which the guest runs.
const RUNNING: &[Status] = &[Status::Running];
/// The states in which an instance runs or is about to run.
const ALIVE: &[Status] = &[Status::Provisioning, Status::Staging, Status::Running];

/// Parses the path or the link of an instance.
///
/// # Errors
///
/// 400 `invalid` for any other text.
fn target(instance: &str) -> Result<Target, Refusal> {
    let parsed = ResourceLink::parse(instance);
    let parts = parsed.as_ref().map(ResourceLink::parts);
    match (parsed.as_ref(), parts.as_deref()) {
        (
            Some(ResourceLink {
                project: Some(project),
                ..
            }),
            Some(["zones", zone, "instances", name]),
        ) => Ok(Target {
            project: project.clone(),
            scope: Scope::Zone((*zone).to_owned()),
            name: (*name).to_owned(),
        }),
        _ => Err(Refusal::invalid(
            "instance",
            instance,
            "The URL is malformed.",
        )),
    }
}

/// The default of `count`.
const fn one() -> u32 {
    1
}

impl Engine {
    /// Performs an external action and returns the ids of the resources that it created or changed.
    ///
    /// # Errors
    ///
    /// The error that the API would return: for a missing resource, a wrong state or an invalid
    /// name.
    pub(crate) fn perform(&mut self, action: ExternalAction) -> Result<Vec<String>, Refusal> {
        let paused = self.core.pause_observation();
        let result = self.apply_action(action);
        self.core.resume_observation(&paused);
        result
    }

    /// Performs an external action. The caller has paused the counting of reads.
    fn apply_action(&mut self, action: ExternalAction) -> Result<Vec<String>, Refusal> {
        match action {
            ExternalAction::LaunchExternal {
                project,
                zone,
                name,
                machine_type,
                count,
                labels,
                metadata,
            } => {
                let spec = self.external_spec(project, zone, machine_type, labels, metadata)?;
                self.launch_external(&spec, name.as_deref().unwrap_or("external"), count)
            }
            ExternalAction::AddDisk {
                project,
                zone,
                name,
                gib,
                labels,
            } => self.add_external_disk((project, zone, name), gib, labels),
            ExternalAction::Stop { instance } => {
                self.with_instance(&instance, ALIVE, |engine, seq| {
                    let operation = engine.create_instance_operation(seq, "stop");
                    engine.begin_stop(seq, Some(operation));
                })
            }
            ExternalAction::Delete { instance } => {
                self.with_instance(&instance, ANY, |engine, seq| {
                    let operation = engine.create_instance_operation(seq, "delete");
                    engine.begin_delete(seq, Some(operation));
                })
            }
            ExternalAction::Suspend { instance } => {
                self.with_instance(&instance, RUNNING, |engine, seq| {
                    let operation = engine.create_instance_operation(seq, "suspend");
                    engine.begin_suspend(seq, Some(operation));
                })
            }
            ExternalAction::GuestShutdown { instance } => {
                self.with_instance(&instance, RUNNING, |engine, seq| {
                    engine.record_done(seq, "compute.instances.guestTerminate");
                    engine.begin_stop(seq, None);
                })
            }
            ExternalAction::Preempt { instance } => {
                self.with_instance(&instance, ALIVE, Self::preempt)
            }
            ExternalAction::Repair { instance } => {
                self.with_instance(&instance, RUNNING, |engine, seq| {
                    engine.record_done(seq, "compute.instances.hostError");
                    engine.begin_repair(seq);
                })
            }
            ExternalAction::SetLabels { instance, labels } => {
                rules::check_labels("labels", &labels)?;
                let labels = Arc::new(labels);
                self.with_instance(&instance, ANY, |engine, seq| {
                    engine.revise(seq, |version| version.labels = labels);
                    engine.record_done(seq, "setLabels");
                })
            }
            ExternalAction::SetMetadata { instance, metadata } => {
                let metadata = Metadata(metadata.into_iter().collect());
                rules::check_metadata("metadata", &metadata)?;
                let metadata = Arc::new(metadata);
                self.with_instance(&instance, ANY, |engine, seq| {
                    engine.revise(seq, |version| version.metadata = metadata);
                    engine.record_done(seq, "setMetadata");
                })
            }
            ExternalAction::DeleteImage { project, name } => {
                let path = format!("projects/{project}/global/images/{name}");
                let found = self.image(&project, &name);
                let Some((seq, id)) = found.map(|(seq, image)| (seq, image.id)) else {
                    return Err(Refusal::not_found(&path));
                };
                self.images.remove(&seq);
                self.record_done_on(&project, Scope::Global, "delete", (path, id));
                // Otherwise the next change of the knobs would add it again.
                let is_other = |image: &Image| image.project != project || image.name != name;
                self.core.knobs.images.retain(is_other);
                Ok(vec![id.to_string()])
            }
        }
    }

    /// Calls `act` on an instance and returns its id.
    ///
    /// # Errors
    ///
    /// 404 for a missing instance, 400 `resourceNotReady` for one whose state is not in `states`.
    fn with_instance(
        &mut self,
        instance: &str,
        states: &[Status],
        act: impl FnOnce(&mut Self, Seq),
    ) -> Result<Vec<String>, Refusal> {
        let seq = self.find(&target(instance)?)?;
        let found = self.instances.get(&seq).ok_or_else(Refusal::internal)?;
        if !states.contains(&found.current().status) {
            return Err(Refusal::not_ready(&found.fixed.path()));
        }
        let id = found.fixed.id;
        act(self, seq);
        Ok(vec![id.to_string()])
    }

    /// Preempts an instance: ends its insert with an error, reports the event, and stops or
    /// deletes it.
    fn preempt(&mut self, seq: Seq) {
        let Some(instance) = self.instances.get_mut(&seq) else {
            return;
        };
        let deletes = instance.fixed.scheduling.termination == Some(TerminationAction::Delete);
        let creating = instance.current_step == CurrentStep::Insert;
        let operation = if creating {
            instance.operation.take()
        } else {
            None
        };
        if let Some(operation) = operation {
            let message = "The instance was preempted while it was being created.";
            let error = Failure::new("UNSUPPORTED_OPERATION", message);
            self.finish(operation, vec![error]);
        }
        self.record_done(seq, "compute.instances.preempted");
        if deletes {
            self.begin_delete(seq, None);
        } else {
            self.begin_stop(seq, None);
        }
    }

    /// Creates a finished operation for something that was done to an instance.
    fn record_done(&mut self, seq: Seq, kind: &'static str) {
        if let Some(instance) = self.instances.get(&seq) {
            let new_operation = NewOperation::on_instance(&instance.fixed.clone(), kind);
            let operation = self.create_operation(new_operation);
            self.finish(operation, Vec::new());
        }
    }

    /// Creates a finished operation on a resource with this path and id.
    pub(super) fn record_done_on(
        &mut self,
        project: &str,
        scope: Scope,
        kind: &'static str,
        (target, id): (String, u64),
    ) {
        let operation = self.create_operation(NewOperation {
            project: project.to_owned(),
            scope,
            kind,
            target,
            target_id: Some(id),
        });
        self.finish(operation, Vec::new());
    }
}
