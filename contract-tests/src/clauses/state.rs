//! The family state.

use crate::{Cx, Outcome, Stop};

pub(crate) async fn state_01_a_life_follows_the_legal_order(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn state_02_terminated_is_final(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn state_03_an_unknown_native_state_is_pending(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn state_04_a_launch_that_fails_late_says_why(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn state_05_a_running_instance_has_an_address(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn state_06_list_and_describe_agree(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}
