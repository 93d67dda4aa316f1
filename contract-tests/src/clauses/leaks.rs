//! The family leaks.

use crate::{Cx, Outcome, Stop};

pub(crate) async fn leaks_01_terminate_leaves_nothing(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn leaks_02_a_refused_launch_leaves_nothing(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn leaks_03_a_launch_that_fails_late_leaves_nothing(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn leaks_04_terminating_a_stopped_instance_leaves_nothing(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}
