//! Requests for spot instances: each is fulfilled at once by one instance, and follows it.
//!
//! States are those of the Amazon EC2 user guide ("Spot request status").

use std::time::Duration;

use super::{
    Engine, Mode, Seq,
    launch::SpotKind,
    record::{State, Tags},
    table::impl_resource,
};
use crate::ec2::error::Refusal;

/// A request for a spot instance.
#[derive(Clone, Debug)]
pub(crate) struct SpotRequest {
    /// The id.
    pub(crate) id: String,
    /// The instance that fulfills it.
    pub(crate) instance: String,
    /// What happens to the request after its instance ends.
    pub(crate) kind: SpotKind,
    /// When it was created.
    pub(crate) created: Duration,
    /// Whether it was cancelled.
    pub(crate) cancelled: bool,
    /// The image.
    pub(crate) image: String,
    /// The instance type.
    pub(crate) instance_type: String,
    /// The zone.
    pub(crate) zone: String,
    /// The maximum price; without effect.
    pub(crate) price: Option<String>,
    /// The tags.
    pub(crate) tags: Tags,
}

impl_resource!(SpotRequest);

impl Engine {
    /// Cancels requests. Their instances run on.
    ///
    /// # Errors
    ///
    /// `InvalidSpotInstanceRequestID.NotFound`
    pub(crate) fn cancel_spot_requests(
        &mut self,
        ids: &[String],
        mode: Mode,
    ) -> Result<(), Refusal> {
        for id in ids {
            self.spot_request(id)?;
        }
        mode.check_dry_run()?;
        for id in ids {
            if let Some(request) = self.spot_requests.get_mut(id) {
                request.cancelled = true;
            }
        }
        Ok(())
    }

    /// Returns a request.
    ///
    /// # Errors
    ///
    /// `InvalidSpotInstanceRequestID.NotFound`
    pub(crate) fn spot_request(&self, id: &str) -> Result<&SpotRequest, Refusal> {
        let missing = || {
            let message = format!("The spot instance request ID '{id}' does not exist");
            Refusal::client("InvalidSpotInstanceRequestID.NotFound", message)
        };
        self.spot_requests.get(id).ok_or_else(missing)
    }

    /// Returns the state of a request and the code of its status.
    pub(crate) fn spot_state(&self, request: &SpotRequest) -> (&'static str, &'static str) {
        let state = self
            .instance(&request.instance)
            .map(|instance| instance.current().state);
        let alive = state.is_some_and(|state| !state.is_ending());
        match (request.cancelled, alive, request.kind) {
            (true, true, _) => ("cancelled", "request-canceled-and-instance-running"),
            (true, false, _) => ("cancelled", "canceled-before-fulfillment"),
            (false, true, _) if state == Some(State::Stopped) => {
                ("disabled", "instance-stopped-by-user")
            }
            (false, true, _) => ("active", "fulfilled"),
            (false, false, SpotKind::OneTime) => ("closed", "instance-terminated-by-user"),
            (false, false, SpotKind::Persistent) => ("open", "instance-terminated-by-user"),
        }
    }

    /// Records the request of a new spot instance.
    pub(super) fn record_spot_request(&mut self, seq: Seq, price: Option<&str>, tags: &Tags) {
        let Some(instance) = self.instances.get(&seq) else {
            return;
        };
        let fixed = std::sync::Arc::clone(&instance.fixed);
        let Some((id, kind)) = fixed.spot.clone() else {
            return;
        };
        let request = SpotRequest {
            id,
            instance: fixed.id.clone(),
            kind,
            created: self.now(),
            cancelled: false,
            image: fixed.image.clone(),
            instance_type: instance.current().instance_type.clone(),
            zone: fixed.zone.clone(),
            price: price.map(str::to_owned),
            tags: tags.clone(),
        };
        let seq = self.next_seq();
        self.spot_requests.put(seq, request);
    }
}
