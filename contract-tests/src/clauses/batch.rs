//! The family batch.

use crate::{Cx, Outcome, Stop};

pub(crate) async fn batch_01_launches_as_many_as_asked_for(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn batch_02_a_token_names_the_whole_batch(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn batch_03_another_count_is_a_conflict(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn batch_04_a_part_is_all_nothing_or_told(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn batch_05_describes_item_by_item(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn batch_06_terminates_item_by_item(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn batch_07_stops_and_starts_item_by_item(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn batch_08_more_than_one_native_batch(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}
