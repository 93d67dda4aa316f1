//! Console output, console sessions, and images.

use std::time::Duration;

use fleetwright::{ConsoleOutput, ConsoleSession, ImageId, InstanceId, SnapshotRequest};

use super::{Image, World, launch::DEFAULT_DISK_GB};
use crate::{error::NativeError, state::NativeState};

/// The lifetime of a console session: 10 minutes.
const SESSION: Duration = Duration::from_secs(600);

impl World {
    /// Returns the console output so far: one line for each boot and each requested reboot.
    pub(crate) fn console_output(&mut self, id: &InstanceId) -> Result<ConsoleOutput, NativeError> {
        let seq = self.find_in(id, "not terminated", |_| true)?;
        let lines = self
            .records
            .get(&seq)
            .map(|record| record.console.join("\n"));
        let mut output = ConsoleOutput::new(lines.unwrap_or_default());
        output.captured_at = Some(self.date_at(self.now));
        Ok(output)
    }

    /// Opens a console session of a running instance, with a new key each time.
    pub(crate) fn console_session(
        &mut self,
        id: &InstanceId,
    ) -> Result<ConsoleSession, NativeError> {
        self.find_in(id, "running", |state| state == NativeState::Active)?;
        let key = self.session_rng.bits();
        let mut session = ConsoleSession::new(format!("memory://console/{id}?key={key:016x}"));
        session.expires_at = Some(self.date_at(self.now.saturating_add(SESSION)));
        Ok(session)
    }

    /// Creates an image, or returns the existing one with this name if it is a snapshot of the same
    /// instance, so that a snapshot can be retried.
    pub(crate) fn snapshot(
        &mut self,
        id: &InstanceId,
        request: &SnapshotRequest,
    ) -> Result<ImageId, NativeError> {
        let fits = |state| matches!(state, NativeState::Active | NativeState::Halted);
        let source = self.find_in(id, "running or stopped", fits)?;
        // The fields are public, so the name may have bypassed the check of the constructor.
        SnapshotRequest::new(request.name.as_str()).map_err(NativeError::Invalid)?;
        self.knobs
            .capabilities
            .tags
            .check(&request.tags)
            .map_err(NativeError::Invalid)?;
        if let Some(image) = self.images.get(&request.name) {
            if image.source != *id {
                return Err(NativeError::NameTaken {
                    name: request.name.clone(),
                });
            }
            return Ok(image.id.clone());
        }
        let disk = self.records.get(&source).and_then(|one| one.disk.as_ref());
        let disk_size_gb = disk.map_or(DEFAULT_DISK_GB, |disk| disk.size_gb);
        let created = Image {
            id: self.ids.image(),
            name: request.name.clone(),
            source: id.clone(),
            tags: request.tags.clone(),
            disk_size_gb,
        };
        let image = created.id.clone();
        self.image_ids.insert(image.clone());
        self.images.insert(request.name.clone(), created);
        Ok(image)
    }

    /// Deletes an image of an instance. One that does not exist counts as deleted. Images of the catalog are
    /// refused; without a catalog that is every name that no snapshot created.
    pub(crate) fn delete_image(&mut self, image: &ImageId) -> Result<(), NativeError> {
        if self.image_ids.remove(image) {
            self.images.retain(|_, other| other.id != *image);
            self.deleted_images.insert(image.clone());
            return Ok(());
        }
        if self.check_image(image).is_ok() {
            return Err(NativeError::NotASnapshot(image.clone()));
        }
        Ok(())
    }
}
