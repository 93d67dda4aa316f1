//! The list of clauses.
//!
//! The registry and the tests are generated from it, and a test compares `docs/store-contract.md`
//! with it.
//!
//! A row has: how the body runs (`async` on one fresh store, `sync` on stores that it opens
//! itself), the module of the family, the name of the body and of the test, the id, and what a
//! store must do. Rows are added at the end of their family. An id is never renumbered and never
//! given to another promise.

use crate::{Context, Environment, clauses};

/// Calls a macro of this crate with the given tokens followed by the row of every clause.
#[doc(hidden)]
#[macro_export]
macro_rules! for_each_store_clause {
    ($then:ident $($given:tt)*) => {
        $crate::$then! { $($given)*
            async record record_01_absent_record_is_none "RECORD-01" "return nothing for a record that does not exist, whatever other records exist";
            async record record_02_values_are_kept_exactly "RECORD-02" "store every value exactly: numbers to the last digit, text to the byte, nulls and empty values";
            async record record_03_keys_are_compared_exactly "RECORD-03" "distinguish keys by every byte, including their case and at full length, and the same key in two kinds";
            async record record_04_revisions_grow "RECORD-04" "give each record the revision of the commit that last wrote it, which is larger than all earlier ones, even if the record was deleted and created again";
            async record record_05_deleted_record_is_not_listed "RECORD-05" "remove a deleted record from every list, and treat the deletion of a record that does not exist as no change";
            async record record_06_invalid_writes_are_refused "RECORD-06" "refuse as invalid what no store can keep: an undeclared kind, a value that is too large, too deep or cannot be indexed, too many writes";
            async transaction txn_01_absent_is_checked "TXN-01" "commit a transaction that requires a record to be absent only if it is";
            async transaction txn_02_a_revision_is_checked "TXN-02" "commit a transaction that requires a record at a revision only if it was not written since";
            async transaction txn_03_existence_is_checked "TXN-03" "commit a transaction that requires a record to exist only if it does";
            async transaction txn_04_claims_are_checked "TXN-04" "commit a transaction that requires a value to be unclaimed only if no record but the excepted one has it under the index";
            async transaction txn_05_all_or_nothing "TXN-05" "leave no trace of a transaction that was refused: no record, no revision, nothing in a watch";
            async transaction txn_06_conflict_names_the_failed_check "TXN-06" "name in a conflict the first part of the transaction that does not hold, and what was found";
            async transaction txn_07_one_revision_for_all_writes "TXN-07" "give everything that one transaction writes one revision, and show it as one commit in the order of its writes";
            async transaction txn_08_checks_see_the_state_before "TXN-08" "evaluate the checks of a transaction against the state before its writes";
            async transaction txn_09_contradicting_transaction_is_refused "TXN-09" "refuse as invalid a transaction that writes a record twice or claims a unique value twice, and treat an empty one as no change";
            async unique unique_01_second_record_is_refused "UNIQUE-01" "refuse a second record with the same value under a unique index, and name the record that has it";
            async unique unique_02_value_becomes_free "UNIQUE-02" "free a unique value when its record is deleted or gets another value";
            async unique unique_03_value_moves_between_records "UNIQUE-03" "let a unique value move to another record within one transaction, and let two records swap theirs";
            async unique unique_04_missing_values_do_not_collide "UNIQUE-04" "let any number of records have no value, or null, under a unique index";
            async unique unique_05_values_are_compared_exactly "UNIQUE-05" "distinguish values under an index by type and by where their parts end";
            async index index_01_finds_exact_matches "INDEX-01" "find by an index exactly the records that have the value, in the order of their keys";
            async index index_02_follows_every_write "INDEX-02" "show every change of a record in its indexes at once: another value, no value, deleted";
            async index index_03_array_is_indexed_by_item "INDEX-03" "find a record with an array under an index by each of its items, once";
            async index index_04_finds_by_prefix_of_parts "INDEX-04" "find by the first parts of a value all records that begin with them, in the order of the other parts";
            async index index_05_unknown_index_is_refused "INDEX-05" "refuse as invalid a list by an index that does not exist, or by more parts than it has";
            async page page_01_every_record_once_in_order "PAGE-01" "list every record exactly once in the order of keys, whatever the page size";
            async page page_02_concurrent_writes_lose_nothing "PAGE-02" "neither lose nor duplicate a record that exists during a whole list while others are created and deleted";
            async page page_03_cursor_outlives_its_record "PAGE-03" "continue from a cursor whose record was deleted, also through another handle";
            async page page_04_foreign_cursor_is_refused "PAGE-04" "refuse as invalid a cursor of another query, and text that is no cursor";
            async page page_05_page_has_its_revision "PAGE-05" "give each page its revision, so that a watch from there shows all later commits and no earlier ones";
            async page page_06_page_size_is_respected "PAGE-06" "return at most the requested number of records, a cursor only if there are more, and refuse a page of zero";
            async watch watch_01_every_commit_in_order "WATCH-01" "show every commit after a revision in order, with the new value of each record and the last value of a deleted one";
            async watch watch_02_waits_for_the_next "WATCH-02" "wait for the next commit and return it once it is committed";
            async watch watch_03_continues_from_any_revision "WATCH-03" "continue from any revision with exactly the commits after it";
            async watch watch_04_shows_requested_kinds_only "WATCH-04" "show only changes of the requested kinds, advance past the others, and refuse kinds that are not declared";
            async watch watch_05_compacted_revision_is_refused "WATCH-05" "refuse a watch from before the compacted revision and name the oldest possible one, and keep the records";
            async watch watch_06_future_revision_is_refused "WATCH-06" "refuse a watch from a revision that it has not reached";
            async watch watch_07_shows_commits_of_all_handles "WATCH-07" "show the commits of every handle";
            async watch watch_08_dropped_call_loses_nothing "WATCH-08" "lose nothing when a call for the next commit is dropped";
            async watch watch_09_no_gap_and_no_duplicate_under_load "WATCH-09" "show every commit of many concurrent writers once and in order";
            async watch watch_10_slow_watch_gets_an_error "WATCH-10" "report to a watch that has fallen behind that its commits are compacted, and never leave a gap";
            async race race_01_no_increment_is_lost "RACE-01" "lose no increment of a counter that many writers increase by compare-and-set through several handles";
            async race race_02_one_writer_gets_a_unique_value "RACE-02" "let exactly one of many concurrent writers get a unique value that all of them claim";
            async race race_03_acknowledged_commit_is_visible "RACE-03" "show an acknowledged commit to every read that begins afterwards, through any handle";
            async dropped drop_01_dropped_commit_is_all_or_nothing "DROP-01" "commit all of a transaction or nothing when its call is dropped at any moment, and continue to work";
            sync against_model model_01_random_histories "MODEL-01" "return from any sequence of calls what the model returns";
            sync durable crash_01_killed_a_hundred_times "CRASH-01" "have every acknowledged commit, no partial one, and a watch without gaps after a writing process is killed, a hundred times";
            sync durable crash_02_survives_reopening "CRASH-02" "have all records, indexes and changes after every handle was dropped and a new one was opened";
            async durable full_01_full_store_loses_nothing "FULL-01" "refuse a write as full if there is no space for it, leave no trace of it, keep everything that was acknowledged readable, and accept writes again once there is space";
        }
    };
}

/// Defines [`CLAUSES`].
#[doc(hidden)]
#[macro_export]
macro_rules! __store_registry {
    ($($rows:tt)*) => {
        fleetwright_clause_engine::clauses! { [Context, Environment] clauses; $($rows)* }
    };
}

for_each_store_clause! { __store_registry }
