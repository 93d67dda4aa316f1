//! The family start.

use crate::{Cx, Outcome, Stop};

pub(crate) async fn start_01_same_id_after_stop_and_start(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn start_02_starting_again_changes_nothing(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn start_03_addresses_are_fresh(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn start_04_a_terminated_instance_cannot_be_started(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn start_05_an_unknown_id_is_not_found(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn start_06_the_answer_is_complete(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn start_07_a_stopping_instance_is_busy_or_starts(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}
