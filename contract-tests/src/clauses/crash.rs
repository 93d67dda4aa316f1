//! The family crash.

use crate::{Cx, Factory, Outcome, Stop};

pub(crate) async fn crash_01_a_lost_reply_is_settled(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn crash_02_a_lost_request_is_settled(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn crash_03_every_fault_at_every_call_converges(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn crash_04_a_crash_at_every_call_converges(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn crash_05_everything_is_found_again_by_tags(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) fn crash_06_any_sequence_is_legal(_factory: &Factory) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}
