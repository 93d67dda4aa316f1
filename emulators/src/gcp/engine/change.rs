//! Changes of labels, metadata and machine type.
//!
//! Labels and metadata are replaced as a whole, and the caller names the fingerprint of the
//! version that it read. The fingerprint is compared at the call and again when the change takes
//! effect, so of two concurrent changes of the same labels one fails: at the call with 412
//! `conditionNotMet`, or in its operation with `CONDITION_NOT_MET`.
//!
//! A change takes the knob `timing.change`.

use std::sync::Arc;

use super::{
    Engine,
    operation::{NewOperation, Work},
    record::{Instance, Labels, Status},
    rules::{self, Metadata},
};
use crate::{
    cloud::{fault::Failure, index::Seq},
    gcp::{error::Refusal, wire::route::Target},
};

/// The message of a change of labels with an old fingerprint.
const STALE_LABELS: &str = "Labels fingerprint either invalid or resource labels have changed";
/// The message of a change of metadata with an old fingerprint.
const STALE_METADATA: &str = "Supplied fingerprint does not match current metadata fingerprint.";

impl Engine {
    /// Begins to replace all labels of an instance and returns the operation.
    ///
    /// # Errors
    ///
    /// 404 for a missing instance, 412 for a fingerprint that is not current.
    pub(crate) fn set_labels(
        &mut self,
        target: &Target,
        fingerprint: &str,
        labels: Labels,
    ) -> Result<Seq, Refusal> {
        let seq = self.find(target)?;
        let instance = self.instances.get(&seq).ok_or_else(Refusal::internal)?;
        if rules::label_fingerprint(&instance.current().labels) != fingerprint {
            return Err(Refusal::stale(STALE_LABELS));
        }
        let work = Work::SetLabels(seq, fingerprint.to_owned(), Arc::new(labels));
        let new_operation = NewOperation::on_instance(&instance.fixed, "setLabels");
        Ok(self.create_change_operation(new_operation, work))
    }

    /// Begins to replace all metadata of an instance and returns the operation.
    ///
    /// # Errors
    ///
    /// 404 for a missing instance, 412 for a fingerprint that is not current.
    pub(crate) fn set_metadata(
        &mut self,
        target: &Target,
        fingerprint: &str,
        metadata: Metadata,
    ) -> Result<Seq, Refusal> {
        let seq = self.find(target)?;
        let instance = self.instances.get(&seq).ok_or_else(Refusal::internal)?;
        if instance.current().metadata.fingerprint() != fingerprint {
            return Err(Refusal::stale(STALE_METADATA));
        }
        let work = Work::SetMetadata(seq, fingerprint.to_owned(), Arc::new(metadata));
        let new_operation = NewOperation::on_instance(&instance.fixed, "setMetadata");
        Ok(self.create_change_operation(new_operation, work))
    }

    /// Begins to change the machine type of a stopped instance and returns the operation.
    ///
    /// The caller has checked that the zone offers the type.
    ///
    /// # Errors
    ///
    /// 404 for a missing instance, 400 `invalid` unless its state is `TERMINATED`.
    pub(crate) fn set_machine_type(&mut self, target: &Target, name: &str) -> Result<Seq, Refusal> {
        let seq = self.find(target)?;
        let instance = self.instances.get(&seq).ok_or_else(Refusal::internal)?;
        if instance.current().status != Status::Terminated {
            let problem = "Machine type can only be changed while the instance is stopped.";
            let status = instance.current().status.name();
            return Err(Refusal::invalid("instance.status", status, problem));
        }
        let work = Work::SetMachineType(seq, name.to_owned());
        let new_operation = NewOperation::on_instance(&instance.fixed, "setMachineType");
        Ok(self.create_change_operation(new_operation, work))
    }

    /// Replaces the labels at the end of the operation, if the fingerprint is still current.
    ///
    /// Returns the errors of the operation; empty means success.
    pub(super) fn apply_labels(
        &mut self,
        seq: Seq,
        fingerprint: &str,
        labels: Arc<Labels>,
    ) -> Vec<Failure> {
        let current = self.instances.get(&seq).map(Instance::current);
        let current_fingerprint = current.map(|version| rules::label_fingerprint(&version.labels));
        if current_fingerprint.as_deref() != Some(fingerprint) {
            return vec![Failure::new("CONDITION_NOT_MET", STALE_LABELS)];
        }
        self.revise(seq, |version| version.labels = labels);
        Vec::new()
    }

    /// Replaces the metadata at the end of the operation, if the fingerprint is still current.
    ///
    /// Returns the errors of the operation; empty means success.
    pub(super) fn apply_metadata(
        &mut self,
        seq: Seq,
        fingerprint: &str,
        metadata: Arc<Metadata>,
    ) -> Vec<Failure> {
        let current = self.instances.get(&seq).map(Instance::current);
        let current_fingerprint = current.map(|version| version.metadata.fingerprint());
        if current_fingerprint.as_deref() != Some(fingerprint) {
            return vec![Failure::new("CONDITION_NOT_MET", STALE_METADATA)];
        }
        self.revise(seq, |version| version.metadata = metadata);
        Vec::new()
    }

    /// Changes the machine type at the end of the operation, if the instance is still stopped.
    ///
    /// Returns the errors of the operation; empty means success.
    pub(super) fn apply_machine_type(&mut self, seq: Seq, name: String) -> Vec<Failure> {
        if self.status(seq) != Some(Status::Terminated) {
            let message = "The instance is no longer stopped.";
            return vec![Failure::new("RESOURCE_NOT_READY", message)];
        }
        self.revise(seq, |version| version.machine_type = name);
        Vec::new()
    }

    /// Creates an operation that takes `timing.change` and then does `work`.
    pub(super) fn create_change_operation(
        &mut self,
        new_operation: NewOperation,
        work: Work,
    ) -> Seq {
        self.create_operation_with_work(new_operation, self.core.knobs.timing.change, work)
    }
}
