//! The list of clauses. The registry and the tests are generated from it, and a test compares the
//! document with it.
//!
//! A row is: how the body runs, the family's module, the name of body and test, the id, what a
//! backend must do, and what the clause needs. Rows are added and never renumbered.

use crate::{Context, Factory, clauses};

/// Calls a macro with every clause.
#[doc(hidden)]
#[macro_export]
macro_rules! for_each_clause {
    ($then:ident $($given:tt)*) => {
        $crate::$then! { $($given)*
            async launch launch_01_returns_valid_info "LAUNCH-01" "answer a launch at once with an instance that has an id and is pending or running" "nothing";
            async launch launch_02_ids_are_never_reused "LAUNCH-02" "give every instance an id that no instance has or had, also after others were terminated" "nothing";
            async launch launch_03_becomes_visible "LAUNCH-03" "show a launched instance by describe and by list, with and without a filter, once the consistency window has passed" "nothing";
            async launch launch_04_image_and_type_are_honoured "LAUNCH-04" "launch the image and the type that were asked for, and show both" "nothing";
            async launch launch_05_user_data_arrives_to_the_byte "LAUNCH-05" "hand the user data to the instance to the byte, whatever the bytes are" "oracle";
            async launch launch_06_disk_size_is_honoured "LAUNCH-06" "give the root disk the size that was asked for" "oracle";
            async launch launch_07_empty_or_unknown_config_is_refused "LAUNCH-07" "refuse a launch of an image that does not exist as invalid or not found, and create nothing" "an unknown image";
            async launch launch_08_oversized_user_data_is_refused "LAUNCH-08" "take user data up to the declared limit, refuse more as invalid, and create nothing" "nothing";
            async launch launch_09_placement_is_honoured_or_refused "LAUNCH-09" "put an instance into the zone that was asked for and show it, and refuse every field of a placement that is not declared as invalid" "a zone";
            async launch launch_10_the_answer_is_not_ahead_of_the_truth "LAUNCH-10" "not answer a launch with running while reads say pending once the consistency window has passed" "nothing";
            async token token_01_same_token_same_instance "TOKEN-01" "answer the same token with the same config with the same instance, and launch nothing more" "nothing";
            async token token_02_other_config_is_a_conflict "TOKEN-02" "refuse the same token with another config as a token conflict, and launch nothing" "nothing";
            async token token_03_equal_configs_are_equal "TOKEN-03" "compare configs by what they ask for, not by the order or the memory they were built in" "nothing";
            async token token_04_a_replay_shows_the_instance_as_it_is "TOKEN-04" "answer a replay with the instance as it is now, not as it was launched" "nothing";
            async token token_05_a_launch_without_effect_frees_its_token "TOKEN-05" "let a token be used again after a launch with it was refused without effect" "nothing";
            async token token_06_a_spent_token_launches_nothing "TOKEN-06" "refuse a replay as spent once its instance is terminating, for as long as declared; beyond that at most one instance lives for the token, with a new id" "nothing";
            async token token_07_a_second_handle_knows_the_token "TOKEN-07" "know a token in every handle on the account, not only in the one that launched" "nothing";
            async token token_08_a_restarted_process_knows_the_token "TOKEN-08" "know a token after every handle was dropped and a new one opened" "nothing";
            async token token_09_find_launch_finds_the_instance "TOKEN-09" "find what a token launched from any handle, once the consistency window has passed" "nothing";
            async token token_10_find_launch_launches_nothing "TOKEN-10" "answer that an unknown token was not seen, and launch nothing by looking" "nothing";
            async token token_11_find_launch_knows_what_is_gone "TOKEN-11" "answer a launch as gone once its instance is terminating, for as long as its token is remembered, and never as found" "nothing";
            async token token_12_launches_without_token_are_never_merged "TOKEN-12" "launch a new instance for every launch without a token" "nothing";
            async token token_13_tokens_are_told_apart_exactly "TOKEN-13" "tell tokens apart by every character, also by case and at full length" "nothing";
            async token token_14_a_race_on_one_token_makes_one "TOKEN-14" "make one instance of launches with one token that are under way at the same time, through one handle or several" "nothing";
            async token token_15_a_zone_is_part_of_the_config "TOKEN-15" "refuse the same token for another zone as a token conflict instead of launching a second instance" "a zone";
            async state state_01_a_life_follows_the_legal_order "STATE-01" "show only states in an order that the state machine allows, from launch through stop and start to terminated" "nothing";
            async state state_02_terminated_is_final "STATE-02" "never show a terminated instance in another state again" "nothing";
            async state state_03_an_unknown_native_state_is_pending "STATE-03" "show a native state that it does not know as pending with its native name, never as running or terminated" "fault: unknown state";
            async state state_04_a_launch_that_fails_late_says_why "STATE-04" "show a launch that fails after it was accepted as terminated, with the cloud's reason, or refuse it with that reason where it waits for it" "fault: fails late";
            async state state_05_a_running_instance_has_an_address "STATE-05" "show the private address of a running instance" "nothing";
            async state state_06_list_and_describe_agree "STATE-06" "show the same state and addresses in a list and in a description of an instance at rest" "nothing";
            async describe describe_01_after_launch "DESCRIBE-01" "describe an instance right after its launch through the launching handle, with its id and one of the six states" "nothing";
            async describe describe_02_an_unknown_id_is_not_found "DESCRIBE-02" "answer not found for an id that no instance has" "nothing";
            async describe describe_03_changes_from_outside_are_seen "DESCRIBE-03" "show a change that somebody else made once the consistency window has passed" "external actor";
            async describe describe_04_a_terminated_instance_stays_describable "DESCRIBE-04" "describe a terminated instance as terminated for as long as declared" "nothing";
            async describe describe_05_another_handle_is_told_to_wait "DESCRIBE-05" "answer not found about a fresh launch through another handle only with a time to retry, and not at all once the consistency window has passed" "nothing";
            async describe describe_06_a_read_never_lags_longer_than_declared "DESCRIBE-06" "show every change once the declared consistency window has passed since it was made" "fault: stale read";
            async list list_01_same_tags_contain_it "LIST-01" "list an instance by the tags it was launched with" "nothing";
            async list list_02_other_tags_give_nothing "LIST-02" "list nothing for tags that no instance has" "nothing";
            async list list_03_complete_across_pages "LIST-03" "list every instance exactly once, however many pages that takes, also when nothing on one of them fits" "nothing";
            async list list_04_tags_are_anded "LIST-04" "list only instances that have all of the filter's tags" "nothing";
            async list list_05_tags_are_compared_exactly "LIST-05" "compare tags exactly: no prefix, no other case, no pattern" "nothing";
            async list list_06_states_are_ored "LIST-06" "list the instances in any one of the filter's states, and no others" "nothing";
            async list list_07_terminated_are_left_out_unless_asked_for "LIST-07" "leave terminated instances out of a list unless the filter asks for them" "nothing";
            async list list_08_stopped_instances_are_listed "LIST-08" "list stopped instances like running ones" "nothing";
            async list list_09_a_failing_page_fails_the_list "LIST-09" "fail the whole list if any page of it fails, never answer a part of it as all" "fault: server error";
            async list list_10_an_unreachable_part_is_named "LIST-10" "refuse a list as incomplete and name what it could not see, and show the rest with a gap in the stream" "external actor, parts";
            async list list_11_foreign_instances_stay_apart "LIST-11" "leave instances with other tags out of a list by tags, and leave them alone" "external actor";
            async list list_12_carries_everything "LIST-12" "carry in a list all that is known of an instance: tags, type, image, addresses, launch time" "nothing";
            async list list_13_the_stream_is_the_list "LIST-13" "show in the stream exactly what the list answers" "nothing";
            async list list_14_changes_while_listing_lose_nothing "LIST-14" "neither lose nor double an instance that exists throughout a list while others come and go" "nothing";
            async stop stop_01_reaches_stopped "STOP-01" "stop an instance: it is stopping, then stopped" "nothing";
            async stop stop_02_stopping_again_changes_nothing "STOP-02" "accept a stop of a stopping or stopped instance and change nothing" "nothing";
            async stop stop_03_no_public_address_while_stopped "STOP-03" "not show the public address that a stopped instance had" "nothing";
            async stop stop_04_id_tags_and_disk_are_kept "STOP-04" "keep id, tags and disk of an instance through a stop" "nothing";
            async stop stop_05_compute_is_released "STOP-05" "release the machine of a stopped instance, also of one that was switched off before it was stopped" "oracle";
            async stop stop_06_a_terminated_instance_cannot_be_stopped "STOP-06" "refuse to stop a terminating or terminated instance as wrong state, or as not found where no record is kept" "nothing";
            async stop stop_07_an_unknown_id_is_not_found "STOP-07" "answer not found to a stop of an id that no instance has" "nothing";
            async start start_01_same_id_after_stop_and_start "START-01" "start a stopped instance with its id kept, and bring it to running" "nothing";
            async start start_02_starting_again_changes_nothing "START-02" "accept a start of a pending or running instance and change nothing" "nothing";
            async start start_03_addresses_are_fresh "START-03" "answer a start with the addresses that the instance has from now on, and never show those it had before" "nothing";
            async start start_04_a_terminated_instance_cannot_be_started "START-04" "refuse to start a terminating or terminated instance as wrong state, or as not found where no record is kept, and leave it terminated" "nothing";
            async start start_05_an_unknown_id_is_not_found "START-05" "answer not found to a start of an id that no instance has" "nothing";
            async start start_06_the_answer_is_complete "START-06" "answer a start with the instance's tags, image and type as they were, and with a launch time" "nothing";
            async start start_07_a_stopping_instance_is_busy_or_starts "START-07" "refuse to start a stopping instance as a conflict with a time to retry, or start it once it has stopped" "nothing";
            async terminate terminate_01_then_describe "TERMINATE-01" "describe a terminated instance as terminating, then terminated, without an error for as long as declared" "nothing";
            async terminate terminate_02_twice_is_fine "TERMINATE-02" "accept a second terminate of the same instance, while it is terminating and while it is remembered" "nothing";
            async terminate terminate_03_an_unknown_id_is_not_found "TERMINATE-03" "answer not found to a terminate of an id that no instance ever had" "nothing";
            async terminate terminate_04_touches_only_its_target "TERMINATE-04" "terminate the instance that was named and no other, not even one of the same batch or of a longer token" "nothing";
            async terminate terminate_05_works_from_every_state "TERMINATE-05" "terminate a pending, running, stopping or stopped instance" "nothing";
            async terminate terminate_06_wins_against_stop_and_start "TERMINATE-06" "accept a terminate that meets a stop or a start, and end with a terminated instance" "nothing";
            async terminate terminate_07_failures_are_told "TERMINATE-07" "tell that a terminate failed, and not claim success for an instance that goes on" "fault: server error";
            async tags tags_01_odd_values_round_trip_exactly "TAGS-01" "hold tags with capitals, spaces, Unicode and empty values exactly, or refuse them as invalid; never alter them" "nothing";
            async tags tags_02_are_part_of_the_launch "TAGS-02" "set tags in the very call that creates, so that a lost reply leaves no instance without them" "fault: reply lost";
            async tags tags_03_within_the_limits_are_taken "TAGS-03" "take as many and as long tags as declared" "nothing";
            async tags tags_04_beyond_the_limits_are_refused "TAGS-04" "refuse more or longer tags than declared as invalid, name the limit, and create nothing" "nothing";
            async tags tags_05_reserved_prefixes_are_refused "TAGS-05" "refuse tags under the cloud's reserved prefixes as invalid, and create nothing" "reserved prefixes";
            async tags tags_06_own_tags_are_hidden "TAGS-06" "not show tags that the backend sets for itself" "nothing";
            async tags tags_07_survive_a_life "TAGS-07" "show the same tags after stop, start and terminate" "nothing";
            async errors errors_01_quota_is_quota "ERRORS-01" "report the account's limit as quota, without effect, and not as something to repeat at once" "fault: quota";
            async errors errors_02_capacity_is_capacity "ERRORS-02" "report missing machines as capacity, without effect, with a scope" "fault: capacity";
            async errors errors_03_throttling_tells_when_to_return "ERRORS-03" "report throttling as throttled, without effect, with the cloud's time to retry" "fault: throttled";
            async errors errors_04_bad_credentials_are_unauthenticated "ERRORS-04" "report expired credentials as unauthenticated, never as not found" "fault: bad credentials";
            async errors errors_05_missing_rights_are_forbidden "ERRORS-05" "report missing rights as forbidden" "fault: forbidden";
            async errors errors_06_a_server_error_is_never_not_found "ERRORS-06" "report an internal error of the cloud as unavailable and worth repeating, never as not found, and a launch's effect as unknown unless it looks the token up and answers what it finds" "fault: server error";
            async errors errors_07_a_malformed_answer_is_an_error "ERRORS-07" "report an answer that it cannot read as unexpected, with the effect unknown where there may be one, or look a launch's token up and answer what it finds, and never panic" "fault: malformed";
            async errors errors_08_a_lost_reply_is_of_unknown_effect "ERRORS-08" "report a launch without an answer as of unknown effect, unless it looks the token up and answers what it finds" "fault: reply lost";
            async errors errors_09_an_error_names_itself "ERRORS-09" "name provider and operation in every error, on one line" "nothing";
            async errors errors_10_no_secret_is_shown "ERRORS-10" "show user data in no error and no debug output" "nothing";
            async errors errors_11_a_failed_read_has_no_effect "ERRORS-11" "report a failed read as without effect" "fault: server error";
            async errors errors_12_a_throttled_call_is_not_repeated_early "ERRORS-12" "keep the cloud's time to retry when it repeats a throttled call by itself" "oracle, fault: throttled";
            async batch batch_01_launches_as_many_as_asked_for "BATCH-01" "launch exactly as many instances as asked for, all different, all with their tags" "nothing";
            async batch batch_02_a_token_names_the_whole_batch "BATCH-02" "answer a replay of a batch with the same instances, and launch nothing more" "nothing";
            async batch batch_03_another_count_is_a_conflict "BATCH-03" "refuse the token of a batch with another count as a token conflict" "nothing";
            async batch batch_04_a_part_is_all_nothing_or_told "BATCH-04" "launch nothing of a batch that it cannot launch whole, or carry the survivors in the error, as declared" "external actor or fault: capacity";
            async batch batch_05_describes_item_by_item "BATCH-05" "answer a batch of descriptions item by item in the order asked, a missing and a repeated one among them" "nothing";
            async batch batch_06_terminates_item_by_item "BATCH-06" "terminate the good items of a batch although others fail" "nothing";
            async batch batch_07_stops_and_starts_item_by_item "BATCH-07" "stop and start the good items of a batch although others fail" "nothing";
            async batch batch_08_more_than_one_native_batch "BATCH-08" "answer batches that are larger than the cloud's own" "nothing";
            async verbs verbs_01_update_tags "VERBS-01" "change tags as asked, all or nothing, within the limits, and list by the new ones" "verb update_tags";
            async verbs verbs_02_reboot "VERBS-02" "reboot a running instance with id, tags and addresses kept, and refuse it for a stopped one as wrong state" "verb reboot_instance";
            async verbs verbs_03_resize "VERBS-03" "change the type of a stopped instance with id and tags kept, and refuse it while it runs as wrong state" "verb resize_instance, another type";
            async verbs verbs_04_reimage "VERBS-04" "put a new image on a running or stopped instance with id, tags and addresses kept" "verb reimage_instance";
            async verbs verbs_05_console_output "VERBS-05" "show what an instance wrote to its console, and hide it in debug output" "verb console_output";
            async verbs verbs_06_console_session "VERBS-06" "open a console of a running instance and of no other, with its address hidden in debug output" "verb console_session";
            async verbs verbs_07_snapshot_image "VERBS-07" "make an image of an instance that can be launched, the same one when asked again under the same name, and none under a name that another instance's image has" "verb snapshot_image";
            async verbs verbs_08_unknown_ids_are_not_found "VERBS-08" "answer not found to an optional verb on an id that no instance has" "any verb";
            async verbs verbs_09_terminated_instances_are_in_the_wrong_state "VERBS-09" "refuse optional verbs on a terminated instance as wrong state, or as not found where no record is kept" "any verb";
            async concurrency concurrency_01_calls_do_not_wait_for_each_other "CONCURRENCY-01" "serve calls on one instance while a call on another one hangs" "fault: hang";
            async concurrency concurrency_02_launches_side_by_side "CONCURRENCY-02" "launch as many instances as there are launches under way at the same time" "nothing";
            async concurrency concurrency_03_terminate_races "CONCURRENCY-03" "end with terminated, whatever stops and starts are under way beside a terminate" "nothing";
            sync concurrency concurrency_04_histories_are_linearizable "CONCURRENCY-04" "answer concurrent launches, stops and terminates as some order of them would" "nothing";
            async concurrency concurrency_05_each_caller_gets_its_own_answer "CONCURRENCY-05" "answer each of many calls under way at the same time with its own instance, whichever of the others fail or are dropped" "nothing";
            async cancellation cancellation_01_a_dropped_launch_is_found_again "CANCELLATION-01" "leave at most one instance of a launch that is dropped at any point, and find it again by its token" "nothing";
            async cancellation cancellation_02_a_dropped_change_can_be_repeated "CANCELLATION-02" "let a stop, start or terminate that was dropped at any point be repeated, with its full effect" "nothing";
            async cancellation cancellation_03_one_caller_s_end_is_not_another_s "CANCELLATION-03" "not touch a call because another one was dropped" "nothing";
            async crash crash_01_a_lost_reply_is_settled "CRASH-01" "find the instance of a launch whose reply was lost, by token and by tags, and launch no second one on a replay" "fault: reply lost";
            async crash crash_02_a_lost_request_is_settled "CRASH-02" "launch exactly one instance when a launch whose request was lost is repeated" "fault: request lost";
            async crash crash_03_every_fault_at_every_call_converges "CRASH-03" "end with exactly one instance, then none, whatever goes wrong at whichever call of a life" "faults";
            async crash crash_04_a_crash_at_every_call_converges "CRASH-04" "end with exactly one instance, then none, wherever in a life the process dies and is restarted" "fault: crash";
            async crash crash_05_everything_is_found_again_by_tags "CRASH-05" "list through a new handle, by tags alone, everything that a lost process launched" "nothing";
            sync crash crash_06_any_sequence_is_legal "CRASH-06" "answer any sequence of calls, faults, dropped calls and restarts as the model allows" "nothing";
            async crash crash_07_what_cannot_be_repeated_is_sent_once "CRASH-07" "not send a launch without a token, or a reboot, again while its outcome is unknown" "oracle, fault: reply lost";
            async time time_01_waiting_ends_at_its_deadline "TIME-01" "let a wait fail at its deadline, and never answer success for a goal that was not reached" "nothing";
            async time time_02_waiting_ends_when_the_goal_is_lost "TIME-02" "let a wait fail as soon as its goal cannot be reached any more" "nothing";
            async time time_03_waiting_is_frugal "TIME-03" "let a wait for many instances poll no faster than the declared tick, with one call for all" "oracle";
            async time time_04_capabilities_never_change "TIME-04" "declare the same capabilities during the life of a handle, with a poll tick above zero and a batch and page of at least one" "nothing";
            async time time_05_transitions_follow_the_clock "TIME-05" "carry out transitions in the time of the clock it was given, however few look at them, and sleep on no other clock" "nothing";
            async leaks leaks_01_terminate_leaves_nothing "LEAKS-01" "destroy disk, network card and address with the instance" "oracle";
            async leaks leaks_02_a_refused_launch_leaves_nothing "LEAKS-02" "leave nothing of a launch that was refused" "oracle, fault: capacity";
            async leaks leaks_03_a_launch_that_fails_late_leaves_nothing "LEAKS-03" "leave nothing of a launch that failed after it was accepted" "oracle, fault: fails late";
            async leaks leaks_04_terminating_a_stopped_instance_leaves_nothing "LEAKS-04" "destroy everything of an instance that is terminated while stopped" "oracle";
        }
    };
}

/// Fills the registry.
#[doc(hidden)]
#[macro_export]
macro_rules! __registry {
    ($($rows:tt)*) => {
        fleetwright_clause_engine::clauses! { [Context, Factory] clauses; $($rows)* }
    };
}

for_each_clause! { __registry }
