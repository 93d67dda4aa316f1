//! Waiting for one response, for a limited time.

use std::time::Duration;

use google_cloud_gax::error::Error;

use super::{CallResult, failure::failure};
use crate::error::{Cause, Failure};

/// Waits for the response to a request, for `timeout` at most.
///
/// The SDK's futures have many kilobytes, and every `async fn` around one would copy it several times. So it is boxed at once, by a
/// function that is not `async`.
pub(super) fn within<'a, T: Send + 'a>(
    timeout: Duration,
    response: impl Future<Output = Result<T, Error>> + Send + 'a,
) -> impl Future<Output = CallResult<T>> + Send + 'a {
    let response = tokio::time::timeout(timeout, Box::pin(response));
    async move {
        match response.await {
            Ok(response) => response.map_err(failure),
            Err(_) => Err(Failure::new(Cause::TimedOut, "no response came in time")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::mem::size_of_val;

    use super::*;
    use google_cloud_auth::credentials::anonymous;
    use google_cloud_compute_v1::{client::Instances, model::Instance};

    #[tokio::test]
    async fn future_is_small_whatever_the_sdk_needs() {
        let credentials = anonymous::Builder::new().build();
        let client = Instances::builder().with_credentials(credentials);
        let client = client.build().await.unwrap();
        let insert = || client.insert().set_body(Instance::new()).send();
        let (sdk, ours) = (insert(), within(Duration::from_secs(1), insert()));
        let (sdk, ours) = (size_of_val(&sdk), size_of_val(&ours));
        assert!(ours * 4 < sdk, "{ours} bytes around {sdk}");
    }
}
