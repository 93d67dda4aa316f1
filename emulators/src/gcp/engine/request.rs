//! Repeated requests: a request id, a method and a target identify one operation. No
//! second.
//!
//! Google's reference gives no time for which an id is remembered; here it is a knob, and never
//! longer than the operation. A request that failed without effect is not remembered.

use std::time::Duration;

use uuid::Uuid;

use super::{Engine, Event};
use crate::{
    cloud::index::Seq,
    gcp::{error::Refusal, wire::method::Method},
};

/// The id, the method and the path of what it is about.
pub(crate) type RequestKey = (Uuid, Method, String);

/// What a request came to.
#[derive(Debug)]
pub(crate) struct Remembered {
    digest: Uuid,
    operation: Seq,
    until: Duration,
}

impl Engine {
    /// The operation that this very request has begun already, if it has.
    pub(crate) fn replay(&self, key: &RequestKey, digest: Uuid) -> Result<Option<Seq>, Refusal> {
        let Some(remembered) = self.requests.get(key) else {
            return Ok(None);
        };
        if !self.operations.contains_key(&remembered.operation) {
            return Ok(None);
        }
        if remembered.digest != digest {
            let why = "The request ID was used with another request.";
            return Err(Refusal::invalid("requestId", &key.0.to_string(), why));
        }
        Ok(Some(remembered.operation))
    }

    pub(crate) fn remember(&mut self, key: RequestKey, digest: Uuid, operation: Seq) {
        let memory = self.core.knobs.timing.request_retention;
        self.after(memory, Event::ForgetRequest(key.clone()));
        let remembered = Remembered {
            digest,
            operation,
            until: self.now().saturating_add(memory),
        };
        self.requests.insert(key, remembered);
    }

    pub(super) fn forget_request(&mut self, key: &RequestKey) {
        let now = self.now();
        // The request may have been repeated since.
        if self.requests.get(key).is_some_and(|kept| kept.until <= now) {
            self.requests.remove(key);
        }
    }
}
