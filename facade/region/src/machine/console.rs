//! The console of a machine: its output, and interactive sessions.

use std::num::NonZeroUsize;

use fleetwright::{ConsoleOutput, ConsoleSession, OptionalVerb};
use fleetwright_identity::{Principal, Verb};

use super::{
    MachineAccess, MachineError, RequiredState, cloud_error::translate_error, ready_machine,
};
use crate::server::{Server, ServerId};

impl MachineAccess {
    /// Returns the console output of a server's machine: all that the cloud still has, or its last lines. Available as soon as there is a
    /// machine, also if that does not boot.
    pub async fn console_output(
        &self,
        principal: &Principal,
        id: ServerId,
        lines: Option<NonZeroUsize>,
    ) -> Result<ConsoleOutput, MachineError> {
        let verb = Verb::ConsoleOutput;
        let server = self.permitted(principal, verb, id).await?;
        let result = async {
            let output = self.read_console(&server, lines).await?;
            self.record_disclosure(principal, verb, &server).await?;
            Ok(output)
        };
        let result = result.await;
        Self::record_outcome(verb, id, Some(&server.region), result)
    }

    /// Opens a console session on a running server. Anyone with its URL has access: treat it as a secret.
    pub async fn console_session(
        &self,
        principal: &Principal,
        id: ServerId,
    ) -> Result<ConsoleSession, MachineError> {
        let verb = Verb::ConsoleSession;
        let server = self.permitted(principal, verb, id).await?;
        let result = async {
            let session = self.open_console(&server).await?;
            self.record_disclosure(principal, verb, &server).await?;
            Ok(session)
        };
        let result = result.await;
        Self::record_outcome(verb, id, Some(&server.region), result)
    }

    async fn read_console(
        &self,
        server: &Server,
        lines: Option<NonZeroUsize>,
    ) -> Result<ConsoleOutput, MachineError> {
        let verb = Verb::ConsoleOutput;
        let cloud = self.offering(server, verb, OptionalVerb::ConsoleOutput)?;
        let machine = ready_machine(server, RequiredState::Machine)?;
        let result = cloud.console_output(&machine.id).await;
        let mut output = result.map_err(|error| translate_error(server, verb, error))?;
        if let Some(lines) = lines {
            let start = last_lines(&output.text, lines);
            output.text.drain(..start);
        }
        Ok(output)
    }

    async fn open_console(&self, server: &Server) -> Result<ConsoleSession, MachineError> {
        let verb = Verb::ConsoleSession;
        let cloud = self.offering(server, verb, OptionalVerb::ConsoleSession)?;
        let machine = ready_machine(server, RequiredState::Running)?;
        let result = cloud.console_session(&machine.id).await;
        result.map_err(|error| translate_error(server, verb, error))
    }
}

/// Returns the start of the last lines of a text. A line break at the end does not start another line.
fn last_lines(text: &str, lines: NonZeroUsize) -> usize {
    let body = text.strip_suffix('\n').unwrap_or(text);
    let breaks = body.rmatch_indices('\n');
    let before = breaks.map(|(at, _)| at).nth(lines.get() - 1);
    before.map_or(0, |at| at + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn last_lines_are_counted_like_a_reader_does(text in "[ab\u{e9}\r\n]{0,24}", lines in 1_usize..6) {
            let start = last_lines(&text, NonZeroUsize::new(lines).unwrap());
            let all: Vec<_> = text.split_inclusive('\n').collect();
            let kept = all.len().saturating_sub(lines);
            prop_assert_eq!(&text[start..], all[kept..].concat());
        }
    }
}
