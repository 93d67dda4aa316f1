//! The family tags.

use crate::{Cx, Outcome, Stop};

pub(crate) async fn tags_01_odd_values_round_trip_exactly(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn tags_02_are_part_of_the_launch(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn tags_03_within_the_limits_are_taken(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn tags_04_beyond_the_limits_are_refused(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn tags_05_reserved_prefixes_are_refused(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn tags_06_own_tags_are_hidden(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn tags_07_survive_a_life(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}
