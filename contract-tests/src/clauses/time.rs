//! The family time.

use crate::{Cx, Outcome, Stop};

pub(crate) async fn time_01_waiting_ends_at_its_deadline(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn time_02_waiting_ends_when_the_goal_is_lost(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn time_03_waiting_is_frugal(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn time_04_capabilities_never_change(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn time_05_transitions_follow_the_clock(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}
