//! The permissions of the caller, as far as they depend on an instance's tags.
//!
//! IAM decides before EC2 looks at the instances, so a call that names one id without the required tag changes
//! none of its instances.

use super::{Engine, read, record::State};
use crate::ec2::error::Refusal;

impl Engine {
    /// Checks that every instance has the tag of `knobs.required_tag`.
    ///
    /// # Errors
    ///
    /// `UnauthorizedOperation` for the first id whose instance lacks the tag, is terminated or does not exist.
    pub(crate) fn check_permission(&self, action: &str, ids: &[String]) -> Result<(), Refusal> {
        let Some(required) = &self.core.knobs.required_tag else {
            return Ok(());
        };
        read::check_ids(ids, "i", "InvalidInstanceID.Malformed")?;
        let allowed = |id: &&String| {
            let instance = self.instance(id).map(|instance| instance.current());
            instance.is_some_and(|version| {
                // EC2 removes the tags of a terminated instance before its record.
                let has_tags = version.state != State::Terminated;
                has_tags && version.tags.get(&required.key) == Some(&required.value)
            })
        };
        let Some(denied) = ids.iter().find(|id| !allowed(id)) else {
            return Ok(());
        };
        let (region, account) = (&self.core.knobs.region, &self.core.knobs.account);
        let message = format!(
            "You are not authorized to perform this operation. User: arn:aws:iam::{account}:user/test is not \
             authorized to perform: ec2:{action} on resource: arn:aws:ec2:{region}:{account}:instance/{denied} \
             because no identity-based policy allows the ec2:{action} action."
        );
        Err(Refusal::new(403, "UnauthorizedOperation", message))
    }
}
