//! The family cancellation.

use crate::{Cx, Outcome, Stop};

pub(crate) async fn cancellation_01_a_dropped_launch_is_found_again(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn cancellation_02_a_dropped_change_can_be_repeated(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn cancellation_03_one_caller_s_end_is_not_another_s(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}
