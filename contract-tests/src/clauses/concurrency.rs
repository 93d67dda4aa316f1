//! The family concurrency.

use crate::{Cx, Factory, Outcome, Stop};

pub(crate) async fn concurrency_01_calls_do_not_wait_for_each_other(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn concurrency_02_launches_side_by_side(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn concurrency_03_terminate_races(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) fn concurrency_04_histories_are_linearizable(_factory: &Factory) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}
