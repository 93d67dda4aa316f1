//! Proving with lists that machines which this handle has deleted are gone.
//!
//! Owns that proof. Absence from a list proves nothing by itself, and a GET of each machine, three times,
//! costs more than the deletions did. So many machines are gone together if
//!
//! 1. Azure has accepted the `delete` of each from this handle,
//! 2. the list of states and the list of the group's machines omit them [`ABSENT_READS`] times in a row, and
//! 3. no interface names them afterwards. Another service of Azure keeps the interfaces, and an
//!    interface names its machine until that is deleted, so a deletion that failed later would show there.
//!
//! A machine that one of these lists names, and every machine if one of the lists fails, is read with a
//! GET. Related trap in the README: 47 (reads omit machines that exist).

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use tokio::time::sleep;

use crate::{
    AzureProvisioner,
    address::{self, Address, lowercase},
    error::Failure,
    list::Statuses,
    lookup::{ABSENT_READS, FEW},
};

/// A machine without a proof of its end: its resource id in lower case, and its VM id.
type Open<'a> = (String, &'a str);

impl AzureProvisioner {
    /// Notes the end of the machines that this handle has deleted and that `listed`, which began at
    /// `began`, does not show, if further lists prove it. Does nothing if GETs of them cost less.
    pub(crate) async fn note_listed_ends(
        &self,
        all: &[Option<Address>],
        listed: &Statuses,
        began: DateTime<Utc>,
    ) {
        let window = self.capabilities.consistency_window;
        let known = all.iter().flatten();
        let open: Vec<Open<'_>> = known
            .filter(|at| self.deletions.is_deleted(&at.vm_id))
            .filter(|at| !self.deletions.is_gone(&at.vm_id) && !at.is_recent(window, began))
            .map(|at| (path_of(at), at.vm_id.as_str()))
            .filter(|(path, _)| !listed.contains_key(path))
            .collect();
        // A page of each of the two lists, for each round.
        let pages = listed.len() / self.options.page_size.get() + 1;
        if open.len() <= FEW * pages {
            return;
        }
        match self.omitted_by_lists(open).await {
            Ok(ended) => {
                for (_, vm_id) in ended {
                    self.deletions.note_end(vm_id, window);
                }
            }
            Err(failure) => tracing::debug!(
                code = failure.code,
                "a list failed; deleted machines are read one by one"
            ),
        }
    }

    /// Returns the machines of `open`, which one list of states has omitted, whose end the other lists prove.
    async fn omitted_by_lists<'a>(
        &self,
        mut open: Vec<Open<'a>>,
    ) -> Result<Vec<Open<'a>>, Failure> {
        for round in 0..ABSENT_READS {
            if round > 0 {
                sleep(self.absence_delay(true, round)).await;
                let Some(statuses) = self.client.statuses().await? else {
                    return Ok(Vec::new());
                };
                open.retain(|(path, _)| !statuses.contains_key(path));
            }
            let mut pages = self.client.pages();
            while let Some(page) = pages.next().await? {
                let shown: BTreeSet<_> = page.iter().map(|one| lowercase(&one.path)).collect();
                open.retain(|(path, _)| !shown.contains(path));
            }
            if open.is_empty() {
                return Ok(open);
            }
        }
        let interfaces = self.client.interfaces().await?;
        let owners = interfaces.iter().filter_map(|one| one.machine.as_deref());
        let owners: BTreeSet<_> = owners.map(lowercase).collect();
        open.retain(|(path, _)| !owners.contains(path));
        Ok(open)
    }
}

/// Returns the resource id of a machine in lower case.
fn path_of(at: &Address) -> String {
    lowercase(&address::machine_path(
        &at.subscription,
        &at.group,
        &at.name,
    ))
}
