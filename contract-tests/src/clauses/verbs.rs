//! The family verbs.

use crate::{Cx, Outcome, Stop};

pub(crate) async fn verbs_01_update_tags(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn verbs_02_reboot(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn verbs_03_resize(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn verbs_04_reimage(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn verbs_05_console_output(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn verbs_06_console_session(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn verbs_07_snapshot_image(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn verbs_08_unknown_ids_are_not_found(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn verbs_09_terminated_instances_are_in_the_wrong_state(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}
