//! Repeated requests: a request id, a method and a target identify one operation.
//!
//! Google's reference does not say how long an id is remembered. Here a knob sets the time, and an
//! id counts as new once its operation is removed. A request that failed without effect is not
//! remembered.

use std::time::Duration;

use uuid::Uuid;

use super::{Engine, Event};
use crate::{
    cloud::index::Seq,
    gcp::{error::Refusal, wire::method::Method},
};

/// The request id, the method, and the project, scope and name of the target.
pub(crate) type RequestKey = (Uuid, Method, String);

/// A request that was executed.
#[derive(Debug)]
pub(crate) struct Remembered {
    /// The digest of its body.
    digest: Uuid,
    /// The operation that it began.
    operation: Seq,
    /// The time until which it is remembered.
    until: Duration,
}

impl Engine {
    /// Returns the operation that the same request began before, or `None` for a new request.
    ///
    /// # Errors
    ///
    /// 400 `invalid` if the id was used with another body.
    pub(crate) fn replay(&self, key: &RequestKey, digest: Uuid) -> Result<Option<Seq>, Refusal> {
        let Some(remembered) = self.requests.get(key) else {
            return Ok(None);
        };
        if !self.operations.contains_key(&remembered.operation) {
            return Ok(None);
        }
        if remembered.digest != digest {
            let problem = "The request ID was used with another request.";
            return Err(Refusal::invalid("requestId", &key.0.to_string(), problem));
        }
        Ok(Some(remembered.operation))
    }

    /// Remembers a request for `timing.request_retention`.
    pub(crate) fn remember(&mut self, key: RequestKey, digest: Uuid, operation: Seq) {
        let retention = self.core.knobs.timing.request_retention;
        self.after(retention, Event::ForgetRequest(key.clone()));
        let remembered = Remembered {
            digest,
            operation,
            until: self.now().saturating_add(retention),
        };
        self.requests.insert(key, remembered);
    }

    /// Forgets a request, if its time is over.
    pub(super) fn forget_request(&mut self, key: &RequestKey) {
        let now = self.now();
        // The same request may have been executed again since, and is then remembered for longer.
        if self.requests.get(key).is_some_and(|kept| kept.until <= now) {
            self.requests.remove(key);
        }
    }
}
