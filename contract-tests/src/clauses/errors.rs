//! The family errors.

use crate::{Cx, Outcome, Stop};

pub(crate) async fn errors_01_quota_is_quota(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn errors_02_capacity_is_capacity(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn errors_03_throttling_tells_when_to_return(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn errors_04_bad_credentials_are_unauthenticated(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn errors_05_missing_rights_are_forbidden(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn errors_06_a_server_error_is_never_not_found(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn errors_07_a_malformed_answer_is_an_error(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn errors_08_a_lost_reply_is_of_unknown_effect(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn errors_09_an_error_names_itself(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn errors_10_no_secret_is_shown(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn errors_11_a_failed_read_has_no_effect(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}
