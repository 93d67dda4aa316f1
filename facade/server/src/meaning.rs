//! From the errors of the façade to what the caller learns. The façade decides what tenants may read.

use axum::http::StatusCode;
use fleetwright_compute::{ComputeError, Meaning};
use fleetwright_identity::{AuditError, LedgerError, Refused, TenancyError};
use fleetwright_region::{
    account::AcceptError,
    catalog::{ImageError, ReadError},
    network::RecordError,
};
use fleetwright_store::StoreError;

use crate::{failure::Failure, wire};

impl From<ComputeError> for Failure {
    fn from(error: ComputeError) -> Self {
        let meaning = error.meaning();
        let status = StatusCode::from_u16(meaning.status());
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut failure = match meaning {
            Meaning::Internal => Self::internal(chain(&error)),
            Meaning::InvalidRequest
            | Meaning::Forbidden
            | Meaning::NotFound
            | Meaning::Conflict
            | Meaning::Unprocessable
            | Meaning::NotOffered
            | Meaning::Unavailable => {
                let mut failure = Self::new(status, meaning.code(), error.tenant_message());
                failure.retry_after = error.retry_after();
                failure
            }
        };
        if error.may_be_done() {
            failure = Self::may_be_done();
        }
        if meaning == Meaning::Unavailable {
            failure.cause = Some(chain(&error));
        }
        if let ComputeError::NeedsConsent { plan, lost, .. } = &error {
            failure.code = "consent_needed";
            failure.plan = Some(wire::instance::plan(plan, Some(lost.clone())));
        }
        if let ComputeError::NameTaken { id, .. } = &error {
            failure.existing = Some(id.to_string());
        }
        // Its text names revisions, which count what other tenants do.
        if let ComputeError::Changed { id, .. } = &error {
            failure.status = StatusCode::PRECONDITION_FAILED;
            failure.code = "precondition_failed";
            failure.detail = format!("instance {id} was changed since it was read: read it again");
        }
        failure
    }
}

impl From<RecordError> for Failure {
    fn from(error: RecordError) -> Self {
        ComputeError::from(error).into()
    }
}

impl From<LedgerError> for Failure {
    fn from(error: LedgerError) -> Self {
        if let LedgerError::UnknownKind(unknown) = error {
            return Self::invalid("limits", unknown);
        }
        ComputeError::from(error).into()
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        ComputeError::from(error).into()
    }
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        ComputeError::Refused(refused).into()
    }
}

impl From<AuditError> for Failure {
    fn from(error: AuditError) -> Self {
        match error {
            AuditError::Refused(refused) => refused.into(),
            AuditError::Store(error) => error.into(),
            other => Self::internal(chain(&other)),
        }
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Refused(refused) => refused.into(),
            ReadError::Store(error) => error.into(),
            other => Self::internal(chain(&other)),
        }
    }
}

impl From<TenancyError> for Failure {
    fn from(error: TenancyError) -> Self {
        let status = match error {
            TenancyError::Refused(refused) => return refused.into(),
            TenancyError::Store(error) => return error.into(),
            TenancyError::NotFound { .. } => StatusCode::NOT_FOUND,
            TenancyError::NameTaken { .. }
            | TenancyError::IdTaken { .. }
            | TenancyError::Deleting { .. }
            | TenancyError::NotEmpty { .. }
            | TenancyError::TooManyBindings { .. }
            | TenancyError::LastAdministrator(_)
            | TenancyError::AlreadyBootstrapped => StatusCode::CONFLICT,
            TenancyError::InvalidRole(_) | TenancyError::NotAUser(_) => StatusCode::BAD_REQUEST,
            TenancyError::Escalation { .. } => StatusCode::FORBIDDEN,
            TenancyError::Busy { .. } | TenancyError::Entropy(_) => StatusCode::SERVICE_UNAVAILABLE,
            _ => return Self::internal(chain(&error)),
        };
        let mut failure = from_status(status, chain(&error));
        if let TenancyError::NameTaken { id, .. } = error {
            failure.existing = Some(id);
        }
        failure
    }
}

impl From<ImageError> for Failure {
    fn from(error: ImageError) -> Self {
        let status = match error {
            ImageError::Refused(refused) => return refused.into(),
            ImageError::Store(error) => return error.into(),
            ImageError::Ledger(error) => return error.into(),
            ImageError::NotFound(_) => StatusCode::NOT_FOUND,
            ImageError::NameTaken(_)
            | ImageError::FromFile(_)
            | ImageError::InvalidTransition { .. }
            | ImageError::Closed(_) => StatusCode::CONFLICT,
            ImageError::Busy(_) => StatusCode::SERVICE_UNAVAILABLE,
            _ => return Self::internal(chain(&error)),
        };
        from_status(status, error.to_string())
    }
}

impl From<AcceptError> for Failure {
    fn from(error: AcceptError) -> Self {
        match error {
            AcceptError::Refused(refused) => refused.into(),
            AcceptError::Store(error) => error.into(),
            AcceptError::NotRecorded(_) => from_status(StatusCode::NOT_FOUND, error.to_string()),
            AcceptError::Changed { .. } => from_status(StatusCode::CONFLICT, error.to_string()),
            other => Self::internal(chain(&other)),
        }
    }
}

fn from_status(status: StatusCode, detail: String) -> Failure {
    let code = match status {
        StatusCode::BAD_REQUEST => "invalid_request",
        StatusCode::FORBIDDEN => "forbidden",
        StatusCode::NOT_FOUND => "not_found",
        StatusCode::CONFLICT => "conflict",
        _ => "unavailable",
    };
    let failure = Failure::new(status, code, detail);
    if status == StatusCode::SERVICE_UNAVAILABLE {
        return failure.retry_after(std::time::Duration::from_secs(1));
    }
    failure
}

/// An error with its sources, in one line.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
