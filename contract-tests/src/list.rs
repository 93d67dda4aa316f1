//! The list of clauses. The registry and the tests are generated from it, and a test compares the
//! document with it.
//!
//! A row is: how the body runs, the family's module, the name of body and test, the id, what a
//! backend must do, and what the clause needs. Rows are added and never renumbered, because
//! reports, waivers and the documentation of backends cite the ids.

use crate::{Context, Factory, clauses};

/// Calls a macro with every clause.
#[doc(hidden)]
#[macro_export]
macro_rules! for_each_clause {
    ($then:ident $($given:tt)*) => {
        $crate::$then! { $($given)*
            async launch launch_01_returns_valid_info "LAUNCH-01" "return from a launch at once, with an instance that has an id and is pending or running" "nothing";
            async launch launch_02_ids_are_never_reused "LAUNCH-02" "give every instance an id that no other instance has or had, even after others were terminated" "nothing";
            async launch launch_03_becomes_visible "LAUNCH-03" "return a launched instance from describe and from list, with and without a filter, once the consistency window has passed" "nothing";
            async launch launch_04_launches_requested_image_and_type "LAUNCH-04" "launch the requested image and instance type, and report both" "nothing";
            async launch launch_05_user_data_is_unchanged "LAUNCH-05" "pass the user data to the instance unchanged to the byte, whatever the bytes are" "oracle";
            async launch launch_06_disk_has_requested_size "LAUNCH-06" "give the root disk the requested size" "oracle";
            async launch launch_07_empty_or_unknown_config_is_refused "LAUNCH-07" "refuse a launch of an image that does not exist as invalid or not found, and create nothing" "an unknown image";
            async launch launch_08_oversized_user_data_is_refused "LAUNCH-08" "accept user data up to the declared limit, refuse longer user data as invalid, and create nothing" "nothing";
            async launch launch_09_placement_is_applied_or_refused "LAUNCH-09" "launch an instance in the requested zone and report it, and refuse every placement field that is not declared as invalid" "a zone";
            async launch launch_10_result_is_not_ahead_of_reads "LAUNCH-10" "not return running from a launch while reads return pending once the consistency window has passed" "nothing";
            async launch launch_11_every_field_reaches_the_instance "LAUNCH-11" "launch an instance with every field of its config that it declares, alone and with all others" "nothing";
            async launch launch_12_any_user_data_is_unchanged "LAUNCH-12" "pass user data unchanged that has the declared size, or looks as if it were encoded, packed or text, to the instance of a launch and to every instance of a batch" "oracle";
            async launch launch_13_addresses_and_launch_time_are_true "LAUNCH-13" "report the addresses and the launch time that the instance has" "oracle";
            async launch launch_14_private_addresses_are_different "LAUNCH-14" "give the instances of one network that are not terminated different private addresses" "nothing";
            async launch launch_15_unknown_type_is_refused "LAUNCH-15" "refuse a launch of an instance type that does not exist as invalid, not found or capacity, for one instance and for a batch, and create nothing" "an unknown type";
            async token token_01_same_token_same_instance "TOKEN-01" "return the same instance for the same token with the same config, and launch nothing more" "nothing";
            async token token_02_other_config_is_a_conflict "TOKEN-02" "refuse the same token with another config as a token conflict, and launch nothing" "nothing";
            async token token_03_equal_configs_are_equal "TOKEN-03" "compare configs by their content, not by the order in which they were built or their place in memory" "nothing";
            async token token_04_replay_returns_current_state "TOKEN-04" "return the current state of the instance from a replay, not its state at launch" "nothing";
            async token token_05_refused_launch_frees_its_token "TOKEN-05" "accept a token again after a launch with it was refused without effect" "nothing";
            async token token_06_spent_token_launches_nothing "TOKEN-06" "refuse a replay as spent once its instance is terminating, for as long as declared; after that, have at most one live instance for the token, with a new id" "nothing";
            async token token_07_second_handle_recognizes_token "TOKEN-07" "recognize a token in every handle on the account, not only in the one that launched" "nothing";
            async token token_08_restarted_process_recognizes_token "TOKEN-08" "recognize a token after every handle was dropped and a new one was opened" "nothing";
            async token token_09_find_launch_finds_the_instance "TOKEN-09" "find the instances of a token from any handle, once the consistency window has passed" "nothing";
            async token token_10_find_launch_launches_nothing "TOKEN-10" "report an unknown token as not found, and launch nothing by the lookup" "nothing";
            async token token_11_find_launch_reports_terminated "TOKEN-11" "report a launch as terminated once its instance is terminating, for as long as its token is remembered, and never as found" "nothing";
            async token token_12_launches_without_token_are_never_merged "TOKEN-12" "launch a new instance for every launch without a token" "nothing";
            async token token_13_tokens_are_compared_exactly "TOKEN-13" "distinguish tokens by every character, including their case and at full length" "nothing";
            async token token_14_concurrent_launches_with_one_token "TOKEN-14" "launch one instance for all concurrent launches with one token, through one handle or several" "nothing";
            async token token_15_zone_is_part_of_the_config "TOKEN-15" "refuse the same token for another zone as a token conflict instead of launching a second instance" "a zone";
            async token token_16_options_do_not_matter_to_a_replay "TOKEN-16" "return the live instances for a replay through a handle with other launch options, and launch nothing more" "nothing";
            async token token_17_fingerprint_is_that_of_the_config "TOKEN-17" "report each instance that a token launched with the fingerprint of its config or with none, and never with another one" "nothing";
            async token token_18_single_launch_and_batch_share_a_token "TOKEN-18" "launch either the instance of a single launch or those of a batch, if both have the same token, and refuse the other launch as a token conflict" "nothing";
            async token token_19_one_zone_for_concurrent_launches "TOKEN-19" "launch in one zone only, if a token is launched in two zones at the same moment" "a zone";
            async token token_20_every_field_is_compared "TOKEN-20" "refuse a replay that differs in any one field of the config as a token conflict, and launch nothing, for a launch of one instance and for a batch" "nothing";
            async token token_21_changed_instance_is_still_the_launch "TOKEN-21" "return the same instance for a replay of the original config after its tags, its type or its image were changed, and refuse the changed config as a token conflict" "any verb";
            async token token_22_many_tokens_are_recognized "TOKEN-22" "recognize every token whose instance is not terminated, however many there are" "nothing";
            async token token_23_similar_tokens_are_different "TOKEN-23" "treat tokens as different that are a part of another one, or look like its items or attempts, for launches, batches and lookups" "nothing";
            async state state_01_states_follow_the_allowed_order "STATE-01" "report states only in an order that the state machine allows, from launch through stop and start to terminated" "nothing";
            async state state_02_terminated_is_final "STATE-02" "never report a terminated instance in another state again" "nothing";
            async state state_03_unknown_native_state_is_pending "STATE-03" "report a native state that it does not know as pending with its native name, never as running or terminated" "fault: unknown state";
            async state state_04_late_failure_has_a_reason "STATE-04" "report a launch that fails after it was accepted as terminated, with the cloud's reason, or, if it waits for the outcome, refuse it with that reason" "fault: fails late";
            async state state_05_running_instance_has_an_address "STATE-05" "report the private address of a running instance" "nothing";
            async state state_06_list_and_describe_agree "STATE-06" "report the same state and addresses in a list and in a description of an instance that does not change" "nothing";
            async state state_07_late_failure_is_marked_and_frees_its_token "STATE-07" "mark an instance whose launch failed late as failed, with the cloud's code, mark no other one, and free the token of the launch, if it declares late failures" "fault: fails late";
            async state state_08_late_capacity_is_capacity "STATE-08" "report missing capacity as capacity if a launch fails for it after it was accepted, if it declares late failures" "fault: fails late, a code of missing capacity";
            async describe describe_01_after_launch "DESCRIBE-01" "describe an instance right after its launch through the launching handle, with its id and one of the six states" "nothing";
            async describe describe_02_unknown_id_is_not_found "DESCRIBE-02" "return not found for an id that no instance has" "nothing";
            async describe describe_03_external_changes_are_reported "DESCRIBE-03" "report a change that somebody else made once the consistency window has passed" "external actor";
            async describe describe_04_terminated_instance_can_be_described "DESCRIBE-04" "describe a terminated instance as terminated for as long as declared" "nothing";
            async describe describe_05_other_handle_finds_launch_in_time "DESCRIBE-05" "describe a launch through another handle, or return not found for it, and nothing else, until the consistency window has passed" "nothing";
            async describe describe_06_reads_lag_no_longer_than_declared "DESCRIBE-06" "report every change once the declared consistency window has passed since it was made" "fault: stale read";
            async list list_01_finds_instance_by_its_tags "LIST-01" "list an instance by the tags it was launched with" "nothing";
            async list list_02_unknown_tags_match_nothing "LIST-02" "list nothing for tags that no instance has" "nothing";
            async list list_03_complete_across_pages "LIST-03" "list every instance exactly once, however many pages that takes, even if no item of a page matches" "nothing";
            async list list_04_tags_are_anded "LIST-04" "list only instances that have all of the filter's tags" "nothing";
            async list list_05_tags_are_compared_exactly "LIST-05" "compare tags exactly: no prefix, no other case, no pattern" "nothing";
            async list list_06_states_are_ored "LIST-06" "list the instances that are in any one of the filter's states, and no others" "nothing";
            async list list_07_terminated_are_excluded_by_default "LIST-07" "leave terminated instances out of a list unless the filter selects them" "nothing";
            async list list_08_stopped_instances_are_listed "LIST-08" "list stopped instances like running ones" "nothing";
            async list list_09_failing_page_fails_the_list "LIST-09" "fail the whole list if any page of it fails, and never return a part of it as the whole" "fault: server error";
            async list list_10_unreachable_part_is_named "LIST-10" "refuse a list as incomplete and name the part that it could not read, and return the rest with a gap in the stream" "external actor, parts";
            async list list_11_foreign_instances_are_excluded "LIST-11" "leave instances with other tags out of a list by tags, and not touch them" "external actor";
            async list list_12_entries_are_complete "LIST-12" "include in a list everything that is known of an instance: tags, type, image, addresses, launch time" "nothing";
            async list list_13_stream_equals_list "LIST-13" "return from the stream exactly what the list returns" "nothing";
            async list list_14_concurrent_changes_lose_nothing "LIST-14" "neither lose nor duplicate an instance that exists during a whole list while others are created and terminated" "nothing";
            async list list_15_filters_are_combined "LIST-15" "list for any combination of tags and states exactly the instances that have all of the tags and are in one of the states" "oracle";
            async list list_16_gaps_beside_many_pages "LIST-16" "return every instance of the other parts exactly once and each part that it cannot read as one gap, however many pages that takes, also if the filter selects nothing in the unreachable part" "external actor, parts";
            async list list_17_error_ends_the_stream "LIST-17" "end a stream with its first error, whichever page fails" "fault: server error";
            async list list_18_concurrent_lists_are_independent "LIST-18" "return to each of several lists and streams at the same time what its own filter selects" "nothing";
            async list list_19_refused_page_is_no_end "LIST-19" "fail a list, or return a gap, if it may not read a part of it, whatever the reason and whichever page, and never return the rest as the whole" "fault: forbidden";
            async stop stop_01_reaches_stopped "STOP-01" "stop an instance: it becomes stopping, then stopped" "nothing";
            async stop stop_02_stopping_again_changes_nothing "STOP-02" "accept a stop of a stopping or stopped instance and change nothing" "nothing";
            async stop stop_03_no_public_address_while_stopped "STOP-03" "not report the public address that a stopped instance had" "nothing";
            async stop stop_04_id_tags_and_disk_are_kept "STOP-04" "keep the id, the tags and the disk of an instance when it is stopped" "nothing";
            async stop stop_05_compute_is_released "STOP-05" "release the machine of a stopped instance, even if it was powered off before it was stopped" "oracle";
            async stop stop_06_terminated_instance_cannot_be_stopped "STOP-06" "refuse to stop a terminating or terminated instance as wrong state, or as not found if no record is kept" "nothing";
            async stop stop_07_unknown_id_is_not_found "STOP-07" "return not found for a stop of an id that no instance has" "nothing";
            async stop stop_08_affects_only_its_targets "STOP-08" "stop the named instances and affect no other one, whatever state that is in" "nothing";
            async stop stop_09_spot_instance_is_not_terminated "STOP-09" "stop a spot instance like any other one, or refuse it without effect, and never terminate it" "nothing";
            async start start_01_same_id_after_stop_and_start "START-01" "start a stopped instance under the same id, and bring it to running" "nothing";
            async start start_02_starting_again_changes_nothing "START-02" "accept a start of a pending or running instance and change nothing" "nothing";
            async start start_03_addresses_are_current "START-03" "return from a start the addresses that the instance has from now on, and never report its former ones" "nothing";
            async start start_04_terminated_instance_cannot_be_started "START-04" "refuse to start a terminating or terminated instance as wrong state, or as not found if no record is kept, and leave it terminated" "nothing";
            async start start_05_unknown_id_is_not_found "START-05" "return not found for a start of an id that no instance has" "nothing";
            async start start_06_result_is_complete "START-06" "return from a start the instance's unchanged tags, image and type, and a launch time" "nothing";
            async start start_07_stopping_instance_is_refused_or_started "START-07" "refuse to start a stopping instance as a conflict with a delay to retry after, or start it once it has stopped" "nothing";
            async start start_08_affects_only_its_targets "START-08" "start the named instances and affect no other one, whatever state that is in" "nothing";
            async start start_09_missing_capacity_costs_nothing "START-09" "refuse a start for which there is no capacity as capacity, without effect, or let the instance become stopped again, keep its id, tags, type and disk, and start it once there is capacity" "external actor or fault: capacity";
            async terminate terminate_01_can_be_described_afterwards "TERMINATE-01" "describe a terminated instance as terminating, then terminated, without an error for as long as declared" "nothing";
            async terminate terminate_02_can_be_repeated "TERMINATE-02" "accept a second terminate of the same instance, while it is terminating and while its record is kept" "nothing";
            async terminate terminate_03_unknown_id_is_not_found "TERMINATE-03" "return not found for a terminate of an id that no instance ever had" "nothing";
            async terminate terminate_04_affects_only_its_target "TERMINATE-04" "terminate the named instance and no other, not even one of the same batch or of a longer token" "nothing";
            async terminate terminate_05_works_from_every_state "TERMINATE-05" "terminate a pending, running, stopping or stopped instance" "nothing";
            async terminate terminate_06_wins_over_stop_and_start "TERMINATE-06" "accept a terminate that is concurrent with a stop or a start, and end with a terminated instance" "nothing";
            async terminate terminate_07_failures_are_reported "TERMINATE-07" "report that a terminate failed, and not claim success for an instance that continues to run" "fault: server error";
            async terminate terminate_08_affects_only_its_targets "TERMINATE-08" "terminate the named instances and affect no other one, whatever state that is in" "nothing";
            async tags tags_01_unusual_values_round_trip "TAGS-01" "store tags with capitals, spaces, Unicode and empty values exactly, or refuse them as invalid; never alter them" "nothing";
            async tags tags_02_are_part_of_the_launch "TAGS-02" "set tags in the call that creates the instance, so that a lost response leaves no instance without tags" "fault: response lost";
            async tags tags_03_within_the_limits_are_accepted "TAGS-03" "accept as many and as long tags as declared" "nothing";
            async tags tags_04_beyond_the_limits_are_refused "TAGS-04" "refuse more or longer tags than declared as invalid, name the limit, and create nothing" "nothing";
            async tags tags_05_reserved_prefixes_are_refused "TAGS-05" "refuse tags under the cloud's reserved prefixes as invalid, and create nothing" "reserved prefixes";
            async tags tags_06_own_tags_are_hidden "TAGS-06" "not report tags that the backend sets for itself" "nothing";
            async tags tags_07_survive_a_lifecycle "TAGS-07" "report the same tags after stop, start and terminate" "nothing";
            async tags tags_08_unusual_keys_round_trip "TAGS-08" "store the keys of tags exactly, with any punctuation, emoji, white space at their ends and in any Unicode form, or refuse them as invalid, for launches, batches and filters" "nothing";
            async errors errors_01_quota_is_quota "ERRORS-01" "report the account's limit as quota, without effect, and not as something to retry at once" "fault: quota";
            async errors errors_02_capacity_is_capacity "ERRORS-02" "report missing capacity as capacity, without effect, with a scope" "fault: capacity";
            async errors errors_03_throttling_has_a_retry_delay "ERRORS-03" "report throttling as throttled, without effect, with the delay that the cloud demands" "fault: throttled";
            async errors errors_04_bad_credentials_are_unauthenticated "ERRORS-04" "report expired credentials as unauthenticated, never as not found" "fault: bad credentials";
            async errors errors_05_missing_permissions_are_forbidden "ERRORS-05" "report missing permissions as forbidden" "fault: forbidden";
            async errors errors_06_server_error_is_never_not_found "ERRORS-06" "report an internal error of the cloud as unavailable and retryable, never as not found, and a launch's effect as unknown unless it looks the token up and returns what it finds" "fault: server error";
            async errors errors_07_malformed_response_is_an_error "ERRORS-07" "report a response that it cannot parse as unexpected, with the effect unknown if there may be one, or look a launch's token up and return what it finds, and never panic" "fault: malformed";
            async errors errors_08_lost_response_has_unknown_effect "ERRORS-08" "report a launch without a response as of unknown effect, unless it looks the token up and returns what it finds" "fault: response lost";
            async errors errors_09_error_names_provider_and_operation "ERRORS-09" "name provider and operation in every error, on one line" "nothing";
            async errors errors_10_user_data_is_never_shown "ERRORS-10" "show user data in no error and no debug output" "nothing";
            async errors errors_11_failed_read_has_no_effect "ERRORS-11" "report a failed read as without effect" "fault: server error";
            async errors errors_12_throttled_call_is_not_retried_early "ERRORS-12" "respect the delay that the cloud demands when it retries a throttled call by itself" "oracle, fault: throttled";
            async errors errors_13_not_found_advises_no_retry "ERRORS-13" "advise no retry with not found for an id that no instance has, or of an instance that is long gone, from describe, stop, start and terminate, for one instance and in a batch" "nothing";
            sync errors errors_14_secrets_are_never_shown "ERRORS-14" "show neither credentials nor user data in any error, its sources, debug output, span or event, whatever call fails and for whatever reason" "nothing";
            async errors errors_15_native_errors_keep_their_meaning "ERRORS-15" "report every error of the cloud that the harness names with the kind, the effect and the retry advice that its meaning requires, and with the field that it refuses" "faults";
            async errors errors_16_scope_is_that_of_the_error "ERRORS-16" "give every error of missing capacity or quota a scope that covers the launches which it concerns, and none that could succeed" "fault: capacity or quota";
            async batch batch_01_launches_requested_number "BATCH-01" "launch exactly the requested number of instances, all different, all with their tags" "nothing";
            async batch batch_02_token_covers_the_whole_batch "BATCH-02" "return the same instances for a replay of a batch, and launch nothing more" "nothing";
            async batch batch_03_other_count_is_a_conflict "BATCH-03" "refuse the token of a batch with another count as a token conflict" "nothing";
            async batch batch_04_partial_launch_is_reported_or_undone "BATCH-04" "launch nothing of a batch that it cannot launch completely, or return the surviving instances in the error, as declared" "external actor or fault: capacity";
            async batch batch_05_describes_item_by_item "BATCH-05" "return a batch of descriptions item by item in the requested order, including missing and repeated ids" "nothing";
            async batch batch_06_terminates_item_by_item "BATCH-06" "terminate the valid items of a batch although others fail" "nothing";
            async batch batch_07_stops_and_starts_item_by_item "BATCH-07" "stop and start the valid items of a batch although others fail" "nothing";
            async batch batch_08_more_than_one_native_batch "BATCH-08" "accept batches that are larger than the cloud's own" "nothing";
            async batch batch_09_starts_as_many_as_there_is_capacity_for "BATCH-09" "start every item of a batch for which there is capacity, and leave the others stopped" "external actor";
            async batch batch_10_changes_items_whose_state_allows_it "BATCH-10" "stop and start the items of a batch whose state allows it although the state of others does not" "nothing";
            async batch batch_11_describes_like_single_calls "BATCH-11" "describe each instance of a batch exactly as a description of it alone does, and return from a batch of starts exactly what a start of it alone returns" "nothing";
            async batch batch_12_terminations_have_their_effect "BATCH-12" "terminate every instance for which a batch of terminations returns success, also one that its lists omit" "fault: stale read";
            async batch batch_13_every_field_reaches_every_instance "BATCH-13" "launch every instance of a batch with every field of the config that it declares, alone and with all others" "nothing";
            async batch batch_14_empty_batches_do_nothing "BATCH-14" "return an empty result for an empty list of ids, and change no instance" "nothing";
            async batch batch_15_large_batches_describe_like_single_calls "BATCH-15" "describe every instance of a batch that is larger than the cloud's own as a description of it alone does, whatever its state and its place in the batch" "nothing";
            async batch batch_16_items_in_every_state "BATCH-16" "terminate, stop and start an item of a batch in any state as a single call does" "nothing";
            async batch batch_17_token_finds_the_whole_batch "BATCH-17" "find all instances of a batch by its token, from any handle, and launch nothing more for a launch of one and a batch of one with the same token" "nothing";
            async batch batch_18_dropped_batches_can_be_repeated "BATCH-18" "let a batch launch, stop, start or termination that was dropped at any point be repeated, with its full effect on every item" "nothing";
            async batch batch_19_crash_at_every_call_of_a_batch "BATCH-19" "end with exactly the instances of a batch, then with none of them, wherever in the batch launch and in the batch termination the process dies and is restarted" "fault: crash";
            async batch batch_20_token_lives_with_its_last_instance "BATCH-20" "recognize the token of a batch while one of its instances is not terminated, however long ago the others were: find those that live, return them or refuse a replay as spent, and never have more alive than were requested" "nothing";
            async verbs verbs_01_update_tags "VERBS-01" "change tags as requested, all or nothing, within the limits, and list by the new ones" "verb update_tags";
            async verbs verbs_02_reboot "VERBS-02" "reboot a running instance and keep its id, tags and addresses, and refuse to reboot a stopped one as wrong state" "verb reboot_instance";
            async verbs verbs_03_resize "VERBS-03" "change the type of a stopped instance and keep its id and tags, and refuse it while the instance runs as wrong state" "verb resize_instance, another type";
            async verbs verbs_04_reimage "VERBS-04" "put a new image on a running or stopped instance and keep its id, tags and addresses" "verb reimage_instance";
            async verbs verbs_05_console_output "VERBS-05" "return the console output of an instance, and hide it in debug output" "verb console_output";
            async verbs verbs_06_console_session "VERBS-06" "open a console of a running instance and of no other, with its address hidden in debug output" "verb console_session";
            async verbs verbs_07_snapshot_image "VERBS-07" "create a launchable image of an instance, return the same image for the same name again, and create none under a name that another instance's image has" "verb snapshot_image";
            async verbs verbs_08_unknown_ids_are_not_found "VERBS-08" "return not found for an optional verb on an id that no instance has" "any verb";
            async verbs verbs_09_terminated_instance_is_in_wrong_state "VERBS-09" "refuse optional verbs on a terminated instance as wrong state, or as not found if no record is kept" "any verb";
            async verbs verbs_10_delete_image "VERBS-10" "delete an image that a snapshot created, accept a second deletion of it, then refuse launches from it as invalid or not found, and change no instance and no other image" "verb delete_image";
            async verbs verbs_11_other_images_are_kept "VERBS-11" "refuse to delete an image that no snapshot created as a conflict, with advice not to retry, and keep it" "verb delete_image";
            async verbs verbs_12_interrupted_deletion_is_completed "VERBS-12" "leave nothing of an image whose deletion is repeated, whatever fault occurred at whichever call of the first one, and wherever its process died" "oracle, faults";
            async verbs verbs_13_interrupted_tag_change_is_completed "VERBS-13" "complete a change of tags when it is repeated, whatever fault occurred at whichever call of the first one, report it as without effect only if no tag changed, and change no other tag" "oracle, faults";
            async verbs verbs_14_concurrent_tag_changes_are_kept "VERBS-14" "keep the changes of two calls that change different tags of an instance at the same time, or refuse one of them as a conflict with a delay to retry after" "oracle";
            async verbs verbs_15_content_is_kept "VERBS-15" "keep the user data, the size of the disk, the tags, the zone and the token of an instance when it is stopped, started, resized, reimaged and rebooted" "oracle";
            async verbs verbs_16_image_is_of_the_named_instance "VERBS-16" "create an image of the disk of the named instance and of no other one: what is launched from it without a size has a disk of the same size" "verb snapshot_image, oracle";
            async concurrency concurrency_01_hanging_call_blocks_no_other "CONCURRENCY-01" "serve calls on one instance while a call on another one hangs" "fault: hang";
            async concurrency concurrency_02_concurrent_launches "CONCURRENCY-02" "launch one instance for each of many concurrent launches" "nothing";
            async concurrency concurrency_03_terminate_races "CONCURRENCY-03" "end with a terminated instance, whatever stops and starts are concurrent with the terminate" "nothing";
            sync concurrency concurrency_04_histories_are_linearizable "CONCURRENCY-04" "return from concurrent launches, stops and terminates what some sequential order of them would return" "nothing";
            async concurrency concurrency_05_each_caller_gets_its_own_result "CONCURRENCY-05" "return to each of many concurrent calls its own instance, whichever of the others fail or are dropped" "nothing";
            async cancellation cancellation_01_dropped_launch_can_be_found "CANCELLATION-01" "leave at most one instance of a launch that is dropped at any point, and find it again by its token" "nothing";
            async cancellation cancellation_02_dropped_change_can_be_retried "CANCELLATION-02" "let a stop, start or terminate that was dropped at any point be retried, with its full effect" "nothing";
            async cancellation cancellation_03_dropped_call_affects_no_other "CANCELLATION-03" "not affect a call because another one was dropped" "nothing";
            async crash crash_01_lost_response_is_settled "CRASH-01" "find the instance of a launch whose response was lost, by token and by tags, and launch no second one on a replay" "fault: response lost";
            async crash crash_02_lost_request_is_settled "CRASH-02" "launch exactly one instance when a launch whose request was lost is retried" "fault: request lost";
            async crash crash_03_every_fault_at_every_call_converges "CRASH-03" "end with exactly one instance, then none, whatever fault occurs at whichever call of a lifecycle" "faults";
            async crash crash_04_crash_at_every_call_converges "CRASH-04" "end with exactly one instance, then none, wherever in a lifecycle the process dies and is restarted" "fault: crash";
            async crash crash_05_everything_is_found_by_tags "CRASH-05" "list through a new handle, by tags alone, everything that a dead process launched" "nothing";
            sync crash crash_06_any_sequence_matches_the_model "CRASH-06" "behave as the model allows in any sequence of calls, faults, dropped calls and restarts" "nothing";
            async crash crash_07_unsafe_calls_are_sent_once "CRASH-07" "not resend a launch without a token, or a reboot, while its outcome is unknown" "oracle, fault: response lost";
            async time time_01_waiting_ends_at_its_deadline "TIME-01" "let a wait fail at its deadline, and never return success for a goal that was not reached" "nothing";
            async time time_02_waiting_ends_when_goal_is_unreachable "TIME-02" "let a wait fail as soon as its goal can no longer be reached" "nothing";
            async time time_03_waiting_makes_few_calls "TIME-03" "let a wait for many instances poll no faster than the declared interval, with one call for all" "oracle";
            async time time_04_capabilities_never_change "TIME-04" "declare the same capabilities during the lifetime of a handle, with a poll interval above zero and a batch and page size of at least one" "nothing";
            async time time_05_transitions_follow_the_clock "TIME-05" "complete transitions by the clock that it was given, however rarely they are observed, and sleep on no other clock" "nothing";
            async time time_06_no_call_blocks_its_thread "TIME-06" "let other tasks of its thread run while a call waits" "nothing";
            async leaks leaks_01_terminate_leaves_nothing "LEAKS-01" "delete the disk, the network interface and the address with the instance" "oracle";
            async leaks leaks_02_refused_launch_leaves_nothing "LEAKS-02" "leave nothing of a launch that was refused" "oracle, fault: capacity";
            async leaks leaks_03_late_failure_leaves_nothing "LEAKS-03" "leave nothing of a launch that failed after it was accepted" "oracle, fault: fails late";
            async leaks leaks_04_terminating_a_stopped_instance_leaves_nothing "LEAKS-04" "delete everything of an instance that is terminated while it is stopped" "oracle";
            async account account_01_every_handle_reports_the_same_id "ACCOUNT-01" "report the same account id through every handle on the account, at any time, whatever is launched, or none through any of them" "nothing";
            async account account_02_failed_read_is_an_error "ACCOUNT-02" "return an error without effect, and neither none nor another id, while it cannot read the account" "fault: server error";
            async matrix matrix_01_effect_is_true "MATRIX-01" "report as the effect of a failed call what the call has changed, and success for what was done, for every operation and batch, whatever fault occurs at whichever of its native calls" "oracle, faults";
            async matrix matrix_02_kind_fits_the_fault "MATRIX-02" "return the kind of error that fits the fault, with the operation and without an effect of a read, for every operation and each item of a batch, whatever fault occurs at whichever of its native calls" "oracle, faults";
            async matrix matrix_03_advice_leads_to_success "MATRIX-03" "advise a retry after faults that pass, with the delay that the cloud demands, and succeed when the advice is followed, for every operation and batch, whatever fault occurred at whichever of its native calls" "oracle, faults";
            async matrix matrix_04_token_settles "MATRIX-04" "find by its token exactly what a single or a batch launch has left, and complete it by a replay without one instance more, whatever fault, crash or drop occurred at whichever of its native calls" "oracle, faults";
            async matrix matrix_05_others_are_untouched "MATRIX-05" "leave every instance that a call does not name as it is, running, stopped or terminated, its own or somebody else's, whatever fault, crash or drop occurs at whichever of the call's native calls" "oracle, faults";
            async matrix matrix_06_content_is_that_of_the_cloud "MATRIX-06" "leave and return exactly what was requested and what the cloud has when a call succeeds, for every operation and batch, whatever fault, crash or drop occurred before at whichever of its native calls" "oracle, faults";
            async matrix matrix_07_nothing_is_left "MATRIX-07" "leave nothing of an instance or an image once it is terminated or deleted, whatever fault, crash or drop occurred at whichever native call of its launch, its changes and its termination" "oracle, faults";
            async matrix matrix_08_secrets_are_never_shown "MATRIX-08" "show user data in no error and no result of any operation, whatever fault occurs at whichever of its native calls" "oracle, faults";
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
