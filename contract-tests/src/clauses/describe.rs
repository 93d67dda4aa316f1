//! The family describe.

use crate::{Cx, Outcome, Stop};

pub(crate) async fn describe_01_after_launch(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn describe_02_an_unknown_id_is_not_found(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn describe_03_changes_from_outside_are_seen(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn describe_04_a_terminated_instance_stays_describable(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn describe_05_another_handle_is_told_to_wait(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn describe_06_a_read_never_lags_longer_than_declared(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}
