//! GetCallerIdentity, an action of STS.
//!
//! It needs no permission: STS serves it even if a policy denies it to the caller (AWS STS API reference,
//! "GetCallerIdentity").

use super::Call;
use crate::ec2::{
    engine::Engine,
    error::Refusal,
    wire::sts::{self, CallerIdentity},
};

/// Returns the account of the knobs, with a user of it. The emulator has no users, so all keys have the same.
///
/// # Errors
///
/// `ValidationError` for any parameter.
pub(super) fn caller(call: &Call<'_>, engine: &Engine) -> Result<String, Refusal> {
    call.finish().map_err(sts::convert)?;
    let knobs = &engine.core.knobs;
    let (partition, account) = (partition(&knobs.region), &knobs.account);
    let identity = CallerIdentity {
        arn: format!("arn:{partition}:iam::{account}:user/emulated"),
        user_id: "AIDAEMULATED000000000".to_owned(),
        account: account.clone(),
    };
    sts::identity(&identity, &call.context.request_id)
}

/// Returns the partition of a region.
fn partition(region: &str) -> &'static str {
    if region.starts_with("cn-") {
        "aws-cn"
    } else if region.starts_with("us-gov-") {
        "aws-us-gov"
    } else {
        "aws"
    }
}
