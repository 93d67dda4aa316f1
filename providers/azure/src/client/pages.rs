//! Lists that come page by page.

use std::{collections::BTreeSet, time::Duration};

use azure_core::{Pageable, error::Error};
use azure_mgmt_compute::package_2024_07_01::models::{VirtualMachine, VirtualMachineListResult};
use futures_util::StreamExt as _;

use super::{CallResult, machines, transport::failure, with_timeout};
use crate::{
    error::{Cause, Failure},
    machine::Machine,
};

/// A list of machines, page by page.
pub(crate) struct Pages {
    pages: Pageable<VirtualMachineListResult, Error>,
    /// The links that were followed, to detect loops.
    links: Links,
    timeout: Duration,
    finished: bool,
}

impl Pages {
    /// Reads the pages of `pages`, each within `timeout`.
    pub(super) fn new(pages: Pageable<VirtualMachineListResult, Error>, timeout: Duration) -> Self {
        Self {
            pages,
            links: Links::default(),
            timeout,
            finished: false,
        }
    }

    /// Returns the next page, or `None` after the last one.
    pub(crate) async fn next(&mut self) -> CallResult<Option<Vec<Machine>>> {
        self.next_with(machines::machine).await
    }

    /// Returns the next page, converted with `read`.
    pub(super) async fn next_with(
        &mut self,
        read: impl Fn(VirtualMachine) -> CallResult<Machine>,
    ) -> CallResult<Option<Vec<Machine>>> {
        if self.finished {
            return Ok(None);
        }
        let page = with_timeout(self.timeout, async {
            let page = self.pages.next().await;
            page.transpose().map_err(|error| failure(&error))
        });
        let Some(page) = page.await? else {
            return Ok(None);
        };
        self.finished = self.links.advance(page.next_link)?.is_none();
        page.value
            .into_iter()
            .map(read)
            .collect::<CallResult<_>>()
            .map(Some)
    }
}

/// The links between the pages of one list.
#[derive(Default)]
pub(super) struct Links(BTreeSet<String>);

impl Links {
    /// Returns the link of the next page. Refuses one that was followed before, which would loop.
    pub(super) fn advance(&mut self, next: Option<String>) -> CallResult<Option<String>> {
        let Some(next) = next.filter(|next| !next.is_empty()) else {
            return Ok(None);
        };
        if !self.0.insert(next.clone()) {
            let message = "a page link of Azure leads back to an earlier page";
            return Err(Failure::new(Cause::Unreadable, message));
        }
        Ok(Some(next))
    }
}
