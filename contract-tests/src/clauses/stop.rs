//! The family stop.

use crate::{Cx, Outcome, Stop};

pub(crate) async fn stop_01_reaches_stopped(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn stop_02_stopping_again_changes_nothing(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn stop_03_no_public_address_while_stopped(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn stop_04_id_tags_and_disk_are_kept(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn stop_05_compute_is_released(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn stop_06_a_terminated_instance_cannot_be_stopped(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn stop_07_an_unknown_id_is_not_found(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}
