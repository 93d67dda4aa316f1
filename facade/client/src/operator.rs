//! What only operators of the installation may do.

use fleetwright_api::{AccountAccept, Inspection, LeakResolve, RegionReport, RegionReportList};

use crate::{Client, Error, call::Call, operation};

impl Client {
    /// An instance with its server and its allocation.
    pub async fn inspect_instance(&self, id: &str) -> Result<Inspection, Error> {
        self.fetch(Call::new(&operation::INSPECT_INSTANCE, &[id])?)
            .await
    }

    /// The regions with their last scan, orphans, and why one is frozen.
    pub async fn list_region_reports(&self) -> Result<RegionReportList, Error> {
        self.fetch(Call::new(&operation::LIST_REGION_REPORTS, &[])?)
            .await
    }

    /// Accepts another account for a region. The machines of the recorded account are left as they are.
    pub async fn accept_region_account(
        &self,
        region: &str,
        accept: &AccountAccept,
    ) -> Result<RegionReport, Error> {
        self.fetch(Call::new(&operation::ACCEPT_REGION_ACCOUNT, &[region])?.body(accept)?)
            .await
    }

    /// Removes a leaked launch from the list, after its machine was terminated at the cloud.
    pub async fn resolve_leaked_launch(
        &self,
        region: &str,
        resolve: &LeakResolve,
    ) -> Result<(), Error> {
        self.perform(Call::new(&operation::RESOLVE_LEAKED_LAUNCH, &[region])?.body(resolve)?)
            .await
    }
}
