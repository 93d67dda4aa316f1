//! Codes that are not listed, by their form. Apart from the last of each row they are in EC2's reference ("Error codes").

use super::*;

#[test]
fn code_that_is_not_listed_is_classified_by_its_form() {
    let rows: [(u16, ErrorKind, &[&str]); 6] = [
        (
            400,
            ErrorKind::Capacity,
            &[
                "InsufficientCapacityOnHost",
                "InsufficientReservedInstancesCapacity",
                "InsufficientSomethingCapacity",
            ],
        ),
        (
            500,
            ErrorKind::Capacity,
            &["InsufficientSomethingCapacityException"],
        ),
        (
            400,
            ErrorKind::Quota,
            &[
                "PlacementGroupLimitExceeded",
                "MaxConfigLimitExceededException",
                "VolumeIOPSLimit",
                "SomethingQuotaExceeded",
            ],
        ),
        (
            400,
            ErrorKind::Throttled,
            &[
                "SnapshotCreationPerVolumeRateExceeded",
                "SomethingThrottled",
            ],
        ),
        (
            400,
            ErrorKind::Conflict,
            &[
                "IncorrectSpotRequestState",
                "IncorrectModificationState",
                "IncorrectStateException",
                "CreditSpecificationUpdateInProgress",
                "SomethingInProgress",
            ],
        ),
        (
            400,
            ErrorKind::Invalid,
            &[
                "SecurityGroupsPerInterfaceLimitExceeded",
                "FilterLimitExceeded",
                "ResourceCountExceeded",
                "InvalidAvailabilityZone",
                "TagPolicyViolation",
                "UnknownVolumeType",
            ],
        ),
    ];
    let config = config();
    let context = ErrorContext {
        config: Some(&config),
        zone: config.placement.zone.as_ref(),
        ..ErrorContext::default()
    };
    for (status, kind, codes) in rows {
        for code in codes {
            let error = response(status, code, "no").into_error(&launch(), context);
            assert_eq!(
                (error.kind(), error.effect()),
                (kind, Effect::None),
                "{code}"
            );
            let retried = matches!(kind, ErrorKind::Throttled | ErrorKind::Conflict);
            assert_eq!(error.retry() != RetryAdvice::Never, retried, "{code}");
            if kind == ErrorKind::Capacity {
                let offering = matches!(error.scopes(), [Scope::Offering { zone: Some(_), .. }]);
                assert!(offering, "{code}: {:?}", error.scopes());
            }
        }
    }
}
