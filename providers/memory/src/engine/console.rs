//! Looking at an instance from outside: its console, and images made of it.

use std::time::Duration;

use fleetwright::{ConsoleOutput, ConsoleSession, ImageId, InstanceId, SnapshotRequest};

use super::{Image, World};
use crate::{error::Refusal, state::NativeState};

/// For how long a console session can be used.
const SESSION: Duration = Duration::from_secs(600);

impl World {
    /// What an instance has written so far.
    pub(crate) fn console_output(&mut self, id: &InstanceId) -> Result<ConsoleOutput, Refusal> {
        let seq = self.find_in(id, "not terminated", |_| true)?;
        let lines = self
            .records
            .get(&seq)
            .map(|record| record.console.join("\n"));
        let mut output = ConsoleOutput::new(lines.unwrap_or_default());
        output.captured_at = Some(self.date_at(self.now));
        Ok(output)
    }

    /// A new key to a running instance's console.
    pub(crate) fn console_session(&mut self, id: &InstanceId) -> Result<ConsoleSession, Refusal> {
        self.find_in(id, "running", |state| state == NativeState::Active)?;
        let key = self.session_dice.bits();
        let mut session = ConsoleSession::new(format!("memory://console/{id}?key={key:016x}"));
        session.expires_at = Some(self.date_at(self.now.saturating_add(SESSION)));
        Ok(session)
    }

    /// Makes an image, or answers the one that was made of this instance under this name.
    pub(crate) fn snapshot(
        &mut self,
        id: &InstanceId,
        request: &SnapshotRequest,
    ) -> Result<ImageId, Refusal> {
        let fits = |state| matches!(state, NativeState::Active | NativeState::Halted);
        self.find_in(id, "running or stopped", fits)?;
        // The fields are public, so a name need not have come through the constructor.
        SnapshotRequest::new(request.name.as_str()).map_err(Refusal::Invalid)?;
        self.knobs
            .capabilities
            .tags
            .check(&request.tags)
            .map_err(Refusal::Invalid)?;
        if let Some(image) = self.images.get(&request.name) {
            if image.source != *id {
                return Err(Refusal::NameTaken {
                    name: request.name.clone(),
                });
            }
            return Ok(image.id.clone());
        }
        let made = Image {
            id: self.names.image(),
            name: request.name.clone(),
            source: id.clone(),
            tags: request.tags.clone(),
        };
        let image = made.id.clone();
        self.image_ids.insert(image.clone());
        self.images.insert(request.name.clone(), made);
        Ok(image)
    }
}
