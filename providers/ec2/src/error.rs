//! EC2's failures, and the shared error each becomes. Pure.
//!
//! Owns what every code means. A code that is not listed is judged by its status: a refusal of the
//! service changed nothing, an internal error may have changed anything.

use std::time::Duration;

use fleetwright::{
    Call, Effect, InstanceConfig, InstanceId, InvalidValue, LaunchToken, Market, Problem,
    ProvisionError, Scope,
};

/// How long to wait after throttling where EC2 does not say; its buckets refill by the second.
const AFTER_THROTTLING: Duration = Duration::from_secs(1);

/// A call that failed, as the client saw it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failure {
    pub(crate) cause: Cause,
    pub(crate) code: Option<String>,
    pub(crate) message: String,
    pub(crate) request_id: Option<String>,
    /// What the reply says about when to come back.
    pub(crate) retry_after: Option<Duration>,
}

/// How a call failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The service answered an error with this status.
    Answered(u16),
    /// No answer came in time.
    TimedOut,
    /// The connection failed, before or after the request arrived.
    #[default]
    Disconnected,
    /// An answer came that cannot be read.
    Unreadable,
    /// Nothing was sent, because there are no credentials.
    NoCredentials,
    /// Nothing was sent, because the request cannot be built.
    NotSent,
}

/// What a call was about, for errors that name it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct About<'a> {
    pub(crate) id: Option<&'a InstanceId>,
    pub(crate) config: Option<&'a InstanceConfig>,
    pub(crate) token: Option<&'a LaunchToken>,
    /// How long "not found" proves nothing.
    pub(crate) window: Duration,
}

impl Failure {
    pub(crate) fn is(&self, code: &str) -> bool {
        self.code.as_deref() == Some(code)
    }

    /// Whether EC2 knows no instance of one of the ids, or takes one for no id at all.
    pub(crate) fn is_unknown_id(&self) -> bool {
        self.code
            .as_deref()
            .is_some_and(|code| code.starts_with("InvalidInstanceID"))
    }

    /// The shared error.
    pub(crate) fn into_error(self, call: &Call, about: About<'_>) -> ProvisionError {
        let error = self.judged(call, about);
        let error = match self.code {
            Some(code) => error.with_native_code(code),
            None => error,
        };
        match self.request_id {
            Some(id) => error.with_request_id(id),
            None => error,
        }
    }

    fn judged(&self, call: &Call, about: About<'_>) -> ProvisionError {
        let message = self.message.as_str();
        match self.cause {
            Cause::TimedOut => call.timeout(Effect::Unknown),
            Cause::Disconnected => call.unavailable(Effect::Unknown, message),
            Cause::Unreadable => call.unexpected(Effect::Unknown, message),
            Cause::NoCredentials => call.unauthenticated(message),
            Cause::NotSent => call.unexpected(Effect::None, message),
            Cause::Answered(status) => match self.code.as_deref() {
                Some(code) => self.of_code(call, about, code, status),
                None => of_status(call, status, message),
            },
        }
    }

    fn of_code(&self, call: &Call, about: About<'_>, code: &str, status: u16) -> ProvisionError {
        let message = self.message.as_str();
        match (kind_of(code, message), about.token, about.id) {
            (Kind::UnknownId, _, Some(id)) => call.not_found_yet(id, about.window),
            (Kind::TokenMismatch, Some(token), _) => call.token_conflict(token),
            (Kind::TokenSpent, Some(token), _) => call.token_spent(token),
            (Kind::Capacity, ..) => call.capacity(offering(about.config), message),
            (Kind::NoAddress, ..) => call.capacity(subnet(about.config), message),
            (Kind::Quota, ..) => call.quota(Scope::Account, message),
            (Kind::Throttled, ..) => call.throttled(self.retry_after.unwrap_or(AFTER_THROTTLING)),
            (Kind::Unauthenticated, ..) => call.unauthenticated(message),
            (Kind::Forbidden, ..) => call.forbidden(message),
            (Kind::Unsupported, ..) => call.unsupported(),
            (Kind::Conflict, ..) => {
                let retry = fleetwright::RetryAdvice::After(AFTER_THROTTLING);
                call.conflict(message, retry)
            }
            (Kind::Invalid(field), ..) => {
                let instead = format!("EC2 says: {message}");
                call.invalid(InvalidValue::new(field, Problem::NotOffered { instead }))
            }
            (Kind::UnknownId | Kind::TokenMismatch | Kind::TokenSpent | Kind::Other, ..) => {
                of_status(call, status, message)
            }
        }
    }
}

/// An error without a code that says more: what the service refused had no effect, and of what it
/// broke down over nobody knows.
fn of_status(call: &Call, status: u16, message: &str) -> ProvisionError {
    match status {
        500..=599 => call.unavailable(Effect::Unknown, message),
        400..=499 => call.unexpected(Effect::None, message),
        _ => call.unexpected(Effect::Unknown, "EC2's answer cannot be read"),
    }
}

enum Kind {
    UnknownId,
    TokenMismatch,
    TokenSpent,
    Capacity,
    NoAddress,
    Quota,
    Throttled,
    Unauthenticated,
    Forbidden,
    Unsupported,
    Conflict,
    Invalid(&'static str),
    Other,
}

fn kind_of(code: &str, message: &str) -> Kind {
    match code {
        "InvalidInstanceID.NotFound" | "InvalidInstanceID.Malformed" => Kind::UnknownId,
        "IdempotentParameterMismatch" => Kind::TokenMismatch,
        "IdempotentInstanceTerminated" => Kind::TokenSpent,
        "InsufficientInstanceCapacity"
        | "InsufficientHostCapacity"
        | "InsufficientReservedInstanceCapacity"
        | "InsufficientCapacity"
        | "ReservationCapacityExceeded"
        | "UnfulfillableCapacity"
        | "VolumeTypeNotAvailableInZone"
        | "SpotMaxPriceTooLow" => Kind::Capacity,
        // A type that a zone does not have is short of capacity there, and not elsewhere.
        "Unsupported" if message.contains("vailability Zone") => Kind::Capacity,
        "Unsupported" => Kind::Invalid("config"),
        "InsufficientFreeAddressesInSubnet" => Kind::NoAddress,
        "VcpuLimitExceeded"
        | "InstanceLimitExceeded"
        | "MaxSpotInstanceCountExceeded"
        | "MaxFleetCountExceeded"
        | "VolumeLimitExceeded"
        | "MaxIOPSLimitExceeded"
        | "AddressLimitExceeded"
        | "NetworkInterfaceLimitExceeded"
        | "SnapshotLimitExceeded"
        | "ResourceLimitExceeded" => Kind::Quota,
        "RequestLimitExceeded"
        | "Throttling"
        | "ThrottlingException"
        | "RequestThrottled"
        | "RequestThrottledException"
        | "EC2ThrottledException"
        | "TooManyRequestsException"
        | "BandwidthLimitExceeded" => Kind::Throttled,
        "AuthFailure"
        | "ExpiredToken"
        | "ExpiredTokenException"
        | "IncompleteSignature"
        | "InvalidClientTokenId"
        | "MissingAuthenticationToken"
        | "RequestExpired"
        | "SignatureDoesNotMatch"
        | "UnrecognizedClientException" => Kind::Unauthenticated,
        "UnauthorizedOperation"
        | "AccessDenied"
        | "AccessDeniedException"
        | "AuthFailure.ServiceLinkedRoleCreationNotPermitted"
        | "Blocked"
        | "OperationNotPermitted"
        | "OptInRequired"
        | "PendingVerification" => Kind::Forbidden,
        "UnsupportedOperation" => Kind::Unsupported,
        "ConcurrentTagAccess" | "IncorrectState" | "ResourceInUse" => Kind::Conflict,
        "InvalidUserData.Malformed" => Kind::Invalid("user data"),
        "InvalidBlockDeviceMapping" => Kind::Invalid("disk size"),
        "TagLimitExceeded" | "InvalidTagKey.Malformed" => Kind::Invalid("tags"),
        _ => of_prefix(code),
    }
}

fn of_prefix(code: &str) -> Kind {
    let fields = [
        ("InvalidAMIID", "image"),
        ("InvalidInstanceType", "instance type"),
        ("InvalidSubnet", "placement.network"),
        ("InvalidGroup", "placement.security_groups"),
        ("InvalidSecurityGroup", "placement.security_groups"),
        ("InvalidZone", "placement.zone"),
        ("InvalidKeyPair", "key_pair"),
        ("Invalid", "config"),
        ("MissingParameter", "config"),
        ("UnknownParameter", "config"),
    ];
    let known = fields.iter().find(|(prefix, _)| code.starts_with(prefix));
    known.map_or(Kind::Other, |(_, field)| Kind::Invalid(field))
}

fn offering(config: Option<&InstanceConfig>) -> Scope {
    let Some(config) = config else {
        return Scope::Region;
    };
    Scope::Offering {
        instance_type: Some(config.instance_type.clone()),
        zone: config.placement.zone.clone(),
        market: Some(config.placement.market.unwrap_or(Market::OnDemand)),
    }
}

fn subnet(config: Option<&InstanceConfig>) -> Scope {
    let network = config.and_then(|config| config.placement.network.clone());
    network.map_or_else(|| offering(config), Scope::Network)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fleetwright::{ErrorKind, NetworkId, Operation, RetryAdvice, Zone};

    fn answered(status: u16, code: &str, message: &str) -> Failure {
        Failure {
            cause: Cause::Answered(status),
            code: Some(code.to_owned()),
            message: message.to_owned(),
            request_id: Some("req-1".to_owned()),
            retry_after: None,
        }
    }

    fn launch() -> Call {
        Call::new("ec2", Operation::LaunchInstance)
    }

    fn config() -> InstanceConfig {
        let mut config = InstanceConfig::builder("ami-1", "m7i.large")
            .build()
            .unwrap();
        config.placement.zone = Some(Zone::new("us-east-1b").unwrap());
        config.placement.network = Some(NetworkId::new("subnet-1").unwrap());
        config
    }

    #[test]
    fn a_code_is_of_one_kind_whatever_its_status() {
        let cases = [
            (500, "InsufficientInstanceCapacity", "", ErrorKind::Capacity),
            (
                400,
                "Unsupported",
                "not supported in your requested Availability Zone (us-east-1b)",
                ErrorKind::Capacity,
            ),
            (
                400,
                "Unsupported",
                "the image needs another architecture",
                ErrorKind::Invalid,
            ),
            (
                400,
                "InsufficientFreeAddressesInSubnet",
                "",
                ErrorKind::Capacity,
            ),
            (400, "VcpuLimitExceeded", "", ErrorKind::Quota),
            (400, "MaxSpotInstanceCountExceeded", "", ErrorKind::Quota),
            (503, "RequestLimitExceeded", "", ErrorKind::Throttled),
            (401, "AuthFailure", "", ErrorKind::Unauthenticated),
            (400, "RequestExpired", "", ErrorKind::Unauthenticated),
            (403, "UnauthorizedOperation", "", ErrorKind::Forbidden),
            (400, "PendingVerification", "", ErrorKind::Forbidden),
            (400, "OperationNotPermitted", "", ErrorKind::Forbidden),
            (400, "InvalidAMIID.NotFound", "", ErrorKind::Invalid),
            (400, "InvalidUserData.Malformed", "", ErrorKind::Invalid),
            (400, "UnsupportedOperation", "", ErrorKind::Unsupported),
            (500, "InternalError", "", ErrorKind::Unavailable),
            (503, "Unavailable", "", ErrorKind::Unavailable),
            (418, "ATeapot", "", ErrorKind::Unexpected),
        ];
        for (status, code, message, kind) in cases {
            let config = config();
            let about = About {
                config: Some(&config),
                ..About::default()
            };
            let error = answered(status, code, message).into_error(&launch(), about);
            assert_eq!(error.kind(), kind, "{code}: {error}");
            let broke_down = kind == ErrorKind::Unavailable;
            let effect = if broke_down {
                Effect::Unknown
            } else {
                Effect::None
            };
            assert_eq!(error.effect(), effect, "{code}: {error}");
            assert_eq!(error.native_code(), Some(code));
            assert_eq!(error.request_id(), Some("req-1"));
        }
    }

    #[test]
    fn capacity_says_what_and_where() {
        let config = config();
        let about = About {
            config: Some(&config),
            ..About::default()
        };
        let error =
            answered(500, "InsufficientInstanceCapacity", "none").into_error(&launch(), about);
        assert_eq!(
            error.scopes(),
            [Scope::Offering {
                instance_type: Some("m7i.large".parse().unwrap()),
                zone: Some("us-east-1b".parse().unwrap()),
                market: Some(Market::OnDemand),
            }]
        );
        let error =
            answered(400, "InsufficientFreeAddressesInSubnet", "none").into_error(&launch(), about);
        assert_eq!(
            error.scopes(),
            [Scope::Network("subnet-1".parse().unwrap())]
        );
    }

    #[test]
    fn throttling_keeps_the_time_that_is_asked_for() {
        let mut failure = answered(503, "RequestLimitExceeded", "slow down");
        let told = |failure: &Failure| {
            failure
                .clone()
                .into_error(&launch(), About::default())
                .retry()
        };
        assert_eq!(told(&failure), RetryAdvice::After(AFTER_THROTTLING));
        failure.retry_after = Some(Duration::from_secs(7));
        assert_eq!(told(&failure), RetryAdvice::After(Duration::from_secs(7)));
    }

    #[test]
    fn tokens_and_ids_are_named() {
        let (token, id) = (
            LaunchToken::new("t-1").unwrap(),
            InstanceId::new("i-1").unwrap(),
        );
        let about = About {
            token: Some(&token),
            ..About::default()
        };
        let error = answered(400, "IdempotentParameterMismatch", "").into_error(&launch(), about);
        assert_eq!(error.kind(), ErrorKind::TokenConflict);
        let error = answered(400, "IdempotentInstanceTerminated", "").into_error(&launch(), about);
        assert_eq!(error.kind(), ErrorKind::TokenSpent);
        let stop = Call::new("ec2", Operation::StopInstance);
        for (window, retry) in [
            (Duration::ZERO, RetryAdvice::Never),
            (
                Duration::from_secs(9),
                RetryAdvice::After(Duration::from_secs(9)),
            ),
        ] {
            let about = About {
                id: Some(&id),
                window,
                ..About::default()
            };
            let error = answered(400, "InvalidInstanceID.NotFound", "").into_error(&stop, about);
            assert_eq!((error.kind(), error.retry()), (ErrorKind::NotFound, retry));
        }
    }

    #[test]
    fn what_was_not_answered_is_unknown_and_what_was_not_sent_is_not() {
        let cases = [
            (Cause::TimedOut, ErrorKind::Timeout, Effect::Unknown),
            (Cause::Disconnected, ErrorKind::Unavailable, Effect::Unknown),
            (Cause::Unreadable, ErrorKind::Unexpected, Effect::Unknown),
            (Cause::Answered(200), ErrorKind::Unexpected, Effect::Unknown),
            (
                Cause::Answered(502),
                ErrorKind::Unavailable,
                Effect::Unknown,
            ),
            (
                Cause::NoCredentials,
                ErrorKind::Unauthenticated,
                Effect::None,
            ),
            (Cause::NotSent, ErrorKind::Unexpected, Effect::None),
        ];
        for (cause, kind, effect) in cases {
            let failure = Failure {
                cause,
                message: "x".to_owned(),
                ..Failure::default()
            };
            let error = failure.into_error(&launch(), About::default());
            assert_eq!((error.kind(), error.effect()), (kind, effect), "{cause:?}");
        }
    }
}
