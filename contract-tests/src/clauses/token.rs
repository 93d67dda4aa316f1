//! The family token.

use crate::{Cx, Outcome, Stop};

pub(crate) async fn token_01_same_token_same_instance(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn token_02_other_config_is_a_conflict(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn token_03_equal_configs_are_equal(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn token_04_a_replay_shows_the_instance_as_it_is(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn token_05_a_launch_without_effect_frees_its_token(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn token_06_a_spent_token_launches_nothing(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn token_07_a_second_handle_knows_the_token(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn token_08_a_restarted_process_knows_the_token(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn token_09_find_launch_finds_the_instance(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn token_10_find_launch_launches_nothing(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn token_11_find_launch_knows_what_is_gone(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn token_12_launches_without_token_are_never_merged(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn token_13_tokens_are_told_apart_exactly(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn token_14_a_race_on_one_token_makes_one(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}

pub(crate) async fn token_15_a_zone_is_part_of_the_config(_cx: &Cx) -> Outcome {
    Err(Stop::Kit("not written".to_owned()))
}
