//! The family terminate.

use crate::{Cx, Outcome, Stop};

pub(crate) async fn terminate_01_then_describe(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn terminate_02_twice_is_fine(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn terminate_03_an_unknown_id_is_not_found(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn terminate_04_touches_only_its_target(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn terminate_05_works_from_every_state(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn terminate_06_wins_against_stop_and_start(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn terminate_07_failures_are_told(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}
