//! The list of clauses. The registry and the tests are generated from it, and a test compares the document with
//! it.
//!
//! A row is: how the body runs, the family's module, the name of body and test, the id, and what a store must
//! do. Rows are added and never renumbered.

use super::{Context, Environment, clauses};

/// Calls a macro with every clause.
#[doc(hidden)]
#[macro_export]
macro_rules! for_each_store_clause {
    ($then:ident $($given:tt)*) => {
        $crate::$then! { $($given)*
            async record record_01_what_is_absent_is_nothing "RECORD-01" "answer nothing for a record that is not there, whatever stands beside it";
            async record record_02_values_are_kept_exactly "RECORD-02" "keep every value exactly: numbers to the last digit, text to the byte, nulls and empty things";
            async record record_03_keys_are_told_apart_exactly "RECORD-03" "tell keys apart by every byte, also by case and at full length, and the same key of two kinds";
            async record record_04_revisions_grow "RECORD-04" "give each record the revision of the commit that wrote it last, which is larger than all before, also when it is made anew";
            async record record_05_a_deleted_record_is_gone "RECORD-05" "delete a record from every list, and take a delete of what is not there as no change";
            async record record_06_what_is_wrong_in_itself_is_refused "RECORD-06" "refuse as invalid what no store can keep: an undeclared kind, a value too large, too deep or not to be indexed, too many writes";
            async transaction txn_01_absent_is_checked "TXN-01" "commit a transaction that wants a record absent only if it is";
            async transaction txn_02_a_revision_is_checked "TXN-02" "commit a transaction that wants a record at a revision only if nobody has written it since";
            async transaction txn_03_existence_is_checked "TXN-03" "commit a transaction that wants a record to exist only if it does";
            async transaction txn_04_claims_are_checked "TXN-04" "commit a transaction that wants a value unclaimed only if no record but the excepted one has it under the index";
            async transaction txn_05_all_or_nothing "TXN-05" "leave no trace of a transaction that was refused: no record, no revision, nothing in a watch";
            async transaction txn_06_a_conflict_says_what_and_why "TXN-06" "name in a conflict the first part of the transaction that does not hold, and what was found";
            async transaction txn_07_one_revision_for_all "TXN-07" "give all that one transaction writes one revision, and show it as one commit in the order of its writes";
            async transaction txn_08_checks_see_the_state_before "TXN-08" "judge the checks of a transaction by the state before its writes";
            async transaction txn_09_a_transaction_contradicts_itself "TXN-09" "refuse as invalid a transaction that writes a record twice or claims a unique value twice, and take an empty one as no change";
            async unique unique_01_two_cannot_hold_one_value "UNIQUE-01" "refuse a second record with the same value under a unique index, and name the holder";
            async unique unique_02_a_value_is_free_again "UNIQUE-02" "free a unique value when its holder is deleted or has another one";
            async unique unique_03_a_value_changes_hands "UNIQUE-03" "let a unique value change hands within one transaction, and let two records swap theirs";
            async unique unique_04_nothing_is_no_value "UNIQUE-04" "let any number of records have nothing, or null, under a unique index";
            async unique unique_05_values_are_told_apart "UNIQUE-05" "tell values under an index apart by type and by where their parts end";
            async index index_01_finds_exactly_those "INDEX-01" "find by an index exactly the records that have the value there, in the order of their keys";
            async index index_02_follows_every_write "INDEX-02" "show in an index every change of a record at once: another value, none, deleted";
            async index index_03_an_array_is_each_of_its_items "INDEX-03" "find a record with an array under an index by each of its items, once";
            async index index_04_first_parts_find_all_that_begin_so "INDEX-04" "find by the first parts of a value all records that begin with them, in the order of the rest";
            async index index_05_an_unknown_index_is_refused "INDEX-05" "refuse as invalid a list by an index that is not there, or by more parts than it has";
            async page page_01_every_record_once_in_order "PAGE-01" "list every record exactly once in the order of keys, whatever the size of pages";
            async page page_02_others_come_and_go "PAGE-02" "neither lose nor double a record that is there throughout a list while others come and go";
            async page page_03_a_cursor_outlives_its_record "PAGE-03" "go on from a cursor whose record is gone, also through another handle";
            async page page_04_a_foreign_cursor_is_refused "PAGE-04" "refuse as invalid a cursor of another query, and what is no cursor";
            async page page_05_a_page_tells_its_moment "PAGE-05" "give a page the revision of which it is, so that a watch from there shows all later commits and none before";
            async page page_06_a_page_keeps_its_size "PAGE-06" "give at most as many records as asked for, a cursor only if there are more, and refuse a page of none";
            async watch watch_01_every_commit_in_order "WATCH-01" "show every commit after a revision in order, with what became of each record and how a deleted one was";
            async watch watch_02_waits_for_the_next "WATCH-02" "wait for the next commit and wake when it comes";
            async watch watch_03_goes_on_from_any_revision "WATCH-03" "go on from any revision with exactly what came after it";
            async watch watch_04_shows_what_is_of_interest "WATCH-04" "show only changes of the kinds asked for, move on past the others, and refuse kinds that are not declared";
            async watch watch_05_compacted_is_told "WATCH-05" "refuse a watch from before the compacted revision and name the oldest possible, and leave the records alone";
            async watch watch_06_the_future_is_refused "WATCH-06" "refuse a watch from a revision that it has not reached";
            async watch watch_07_all_handles_are_seen "WATCH-07" "show the commits of every handle";
            async watch watch_08_a_dropped_call_loses_nothing "WATCH-08" "lose nothing when a call for the next commit is dropped";
            async watch watch_09_no_gap_and_no_double_among_writers "WATCH-09" "show every commit of many writers once and in order while they write";
            async watch watch_10_a_slow_watch_is_told "WATCH-10" "tell a watch that has fallen behind what is compacted, and never leave a gap";
            async race race_01_no_increment_is_lost "RACE-01" "lose no increment of a counter that many writers raise by compare-and-set through several handles";
            async race race_02_one_wins_a_unique_value "RACE-02" "let exactly one of many win a unique value that all claim at once";
            async race race_03_what_is_acknowledged_is_seen "RACE-03" "show what was acknowledged to every read that begins afterwards, through any handle";
            async dropped drop_01_a_dropped_commit_is_whole_or_nothing "DROP-01" "leave all of a transaction or nothing when its call is dropped at any moment, and go on";
            sync against_model model_01_random_histories "MODEL-01" "answer any sequence of calls as the model does";
            sync durable crash_01_killed_a_hundred_times "CRASH-01" "have every acknowledged commit, none by half, and an unbroken watch after a process that writes is killed, a hundred times over";
            sync durable crash_02_opened_again "CRASH-02" "have all records, indexes and changes after every handle was dropped and a new one opened";
            async durable full_01_nothing_is_lost_for_want_of_room "FULL-01" "refuse what there is no room for as full, without a trace, keep all that was acknowledged readable, and go on once there is room";
        }
    };
}

/// Fills the registry.
#[doc(hidden)]
#[macro_export]
macro_rules! __store_registry {
    ($($rows:tt)*) => {
        fleetwright_clause_engine::clauses! { [Context, Environment] clauses; $($rows)* }
    };
}

for_each_store_clause! { __store_registry }
