//! Sending one call through the SDK, and reading why it failed.
//!
//! Owns whether a request was sent, which the SDK's errors do not say: a failure to obtain credentials and a
//! broken connection are the same variant. It retries nothing.

use std::{cell::Cell, error::Error as StdError, future::Future, time::Duration};

use aws_sdk_ec2::{
    config::{
        ConfigBag, Intercept, RuntimeComponents,
        http::HttpResponse,
        interceptors::{
            AfterDeserializationInterceptorContextRef, BeforeTransmitInterceptorContextRef,
        },
    },
    error::{BoxError, ProvideErrorMetadata, SdkError},
    operation::RequestId as _,
};

use crate::{
    error::{Cause, Failure},
    unsent,
};

tokio::task_local! {
    /// Whether the request of the call that this task is sending was handed to the HTTP client.
    static SENT: Cell<bool>;
}

/// Waits for a call of a client that has the interceptors of this module, and converts its error.
///
/// The SDK's futures have many kilobytes, and every `async fn` around one would copy it several times. So it is boxed at once, by a
/// function that is not `async`.
pub(crate) fn send<'a, T, E>(
    call: impl Future<Output = Result<T, SdkError<E, HttpResponse>>> + Send + 'a,
) -> impl Future<Output = Result<T, Failure>> + Send + 'a
where
    T: Send + 'a,
    E: ProvideErrorMetadata + StdError + Send + Sync + 'static,
{
    let call = Box::pin(call);
    async move {
        let observed = async {
            let result = call.await;
            (result, SENT.with(Cell::get))
        };
        let (result, sent) = SENT.scope(Cell::new(false), observed).await;
        result.map_err(|error| {
            if sent {
                failure(&error)
            } else {
                unsent::failure(&error)
            }
        })
    }
}

/// Notes that a request is about to be sent. It runs after the credentials are there and the request is signed.
#[derive(Debug)]
pub(crate) struct NoteSent;

impl Intercept for NoteSent {
    fn name(&self) -> &'static str {
        "NoteSent"
    }

    fn read_before_transmit(
        &self,
        _: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        SENT.try_with(|sent| sent.set(true)).map_err(Into::into)
    }
}

/// Refuses truncated responses. The SDK reads truncated XML up to its end, and would return half of a list as the
/// whole list.
#[derive(Debug)]
pub(crate) struct CompleteResponses;

impl Intercept for CompleteResponses {
    fn name(&self) -> &'static str {
        "CompleteResponses"
    }

    fn read_after_deserialization(
        &self,
        context: &AfterDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let response = context.response();
        let body = response.body().bytes().unwrap_or_default();
        if response.status().is_success() && !body.trim_ascii_end().ends_with(b"Response>") {
            return Err("the response is truncated".into());
        }
        Ok(())
    }
}

/// Converts the error of a request that was sent. Headers and bodies, which may contain secrets, are left out.
///
/// The cause decides the effect later: a lost or unreadable response has an unknown one.
fn failure<E: ProvideErrorMetadata + StdError + 'static>(
    error: &SdkError<E, HttpResponse>,
) -> Failure {
    let request_id = error.request_id().map(ToOwned::to_owned);
    let header = error
        .raw_response()
        .and_then(|raw| raw.headers().get("retry-after"));
    let retry_after = header
        .and_then(|text| text.trim().parse().ok())
        .map(Duration::from_secs);
    let (cause, message) = match error {
        SdkError::ServiceError(service) => {
            let status = service.raw().status().as_u16();
            let message = error.message().unwrap_or("EC2 gave no message");
            (Cause::Responded(status), message)
        }
        SdkError::TimeoutError(_) => (Cause::TimedOut, ""),
        SdkError::DispatchFailure(failed) if failed.is_timeout() => (Cause::TimedOut, ""),
        SdkError::DispatchFailure(_) => (Cause::Disconnected, "the connection to EC2 failed"),
        SdkError::ResponseError(_) => (Cause::Unreadable, "the response of EC2 cannot be read"),
        SdkError::ConstructionFailure(_) | _ => (
            Cause::Unreadable,
            "the SDK reported an unknown kind of failure",
        ),
    };
    Failure::new(cause, message)
        .with_code(error.code().unwrap_or_default())
        .with_request_id(request_id)
        .with_retry_after(retry_after)
}

#[cfg(test)]
mod tests {
    use std::mem::size_of_val;

    use super::*;
    use aws_sdk_ec2::{Client, Config, config::BehaviorVersion};

    #[test]
    fn future_is_small_whatever_the_sdk_needs() {
        let config = Config::builder().behavior_version(BehaviorVersion::latest());
        let client = Client::from_conf(config.build());
        let stop = || client.stop_instances().send();
        let (sdk, ours) = (size_of_val(&stop()), size_of_val(&send(stop())));
        assert!(ours * 4 < sdk, "{ours} bytes around {sdk}");
    }
}
