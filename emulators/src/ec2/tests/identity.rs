//! The identity of the caller.

use super::{Fixture, all};

#[test]
fn caller_identity_names_the_account_and_its_partition() {
    for (region, partition) in [
        ("us-east-1", "aws"),
        ("cn-north-1", "aws-cn"),
        ("us-gov-west-1", "aws-us-gov"),
    ] {
        let mut fixture = Fixture::with(|knobs| {
            knobs.region = region.to_owned();
            knobs.account = "210987654321".to_owned();
        });
        let response = fixture.ok("GetCallerIdentity");
        assert_eq!(all(&response, "Account"), ["210987654321"]);
        let arn = format!("arn:{partition}:iam::210987654321:user/emulated");
        assert_eq!(all(&response, "Arn"), [arn]);
        assert!(response.contains(
            "<GetCallerIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">"
        ));
        assert!(response.ends_with("</ResponseMetadata></GetCallerIdentityResponse>"));
    }
    let refused = Fixture::new().refusal_code("GetCallerIdentity&DryRun=true");
    assert_eq!(refused, "ValidationError");
}
