//! Clauses without a mutant that violates only them, each with the reason why the clause is kept.
//!
//! `tests/zoo/unique.rs` compares this list with what it measures: a clause that gains a mutant of its
//! own must be removed from the list, and one that loses its last must be added.

/// The sweeps and the model run whole lifecycles, so they detect most mutants.
const WHOLE_LIFECYCLES: &str = "the sweeps and the model run whole lifecycles and detect it too; the \
     clause names the promise, and fails with a short sequence";

/// The clauses with their reasons.
pub const SHARED: &[(&str, &str)] = &[
    (
        "LAUNCH-01",
        "a launch that answers another state also confuses replays and the order of states",
    ),
    (
        "LAUNCH-02",
        "a reused id makes one instance of two, for everything that counts or terminates",
    ),
    (
        "LAUNCH-04",
        "an ignored image also shows in the snapshot that is launched from",
    ),
    (
        "LAUNCH-06",
        "an ignored disk size also makes two configs one, and shows in the disk that a stop keeps",
    ),
    (
        "LAUNCH-10",
        "a replay is a launch too, and must not be ahead of the truth either",
    ),
    ("TOKEN-01", WHOLE_LIFECYCLES),
    (
        "TOKEN-07",
        "every look-up of a lost launch comes from another handle",
    ),
    ("TOKEN-08", WHOLE_LIFECYCLES),
    ("TOKEN-09", WHOLE_LIFECYCLES),
    ("TOKEN-10", WHOLE_LIFECYCLES),
    (
        "TOKEN-14",
        "races are what every sweep of lost replies makes",
    ),
    ("STATE-01", WHOLE_LIFECYCLES),
    (
        "STATE-05",
        "an address that is lost through a stop is missing after the start as well",
    ),
    (
        "STATE-06",
        "two reads that disagree also disagree as list and stream",
    ),
    (
        "DESCRIBE-01",
        "a description of another instance is also the wrong answer to one of many callers",
    ),
    (
        "DESCRIBE-02",
        "an unknown id is also the plainest error there is, and ERRORS-09 makes it",
    ),
    (
        "DESCRIBE-03",
        "a cache that hides strangers also hides a machine that was switched off from outside",
    ),
    ("DESCRIBE-06", WHOLE_LIFECYCLES),
    (
        "LIST-04",
        "tags that are ORed also hide that an update took one away",
    ),
    (
        "LIST-08",
        "a stopped instance that is not listed is missing wherever one is prepared by stopping it",
    ),
    (
        "LIST-09",
        "the errors of a list are among those that ERRORS-09 makes",
    ),
    (
        "STOP-01",
        "a stop that is not shown breaks the order of states too",
    ),
    (
        "STOP-02",
        "a repeated stop is what every restarted process does",
    ),
    (
        "STOP-03",
        "an old address is also an old snapshot in a replay",
    ),
    ("STOP-06", WHOLE_LIFECYCLES),
    (
        "STOP-07",
        "an unknown id is also the plainest error there is, and ERRORS-09 makes it",
    ),
    (
        "START-01",
        "a start that answers too early breaks the order of states too",
    ),
    ("START-04", WHOLE_LIFECYCLES),
    (
        "START-05",
        "an unknown id is also the plainest error there is, and ERRORS-09 makes it",
    ),
    (
        "TERMINATE-01",
        "a terminate that is not shown breaks the order of states too",
    ),
    ("TERMINATE-02", WHOLE_LIFECYCLES),
    (
        "TERMINATE-03",
        "an unknown id is also the plainest error there is, and ERRORS-09 makes it",
    ),
    (
        "TERMINATE-05",
        "a terminate that is put off is seen by every wait for it",
    ),
    (
        "TERMINATE-06",
        "who swallows a terminate goes on being seen",
    ),
    (
        "TERMINATE-07",
        "missing rights are among the errors that ERRORS-05 makes",
    ),
    (
        "TAGS-02",
        "an instance without its tags is missing for everything that counts by tags",
    ),
    ("ERRORS-08", WHOLE_LIFECYCLES),
    (
        "BATCH-01",
        "a batch without its tags is missing for everything that counts by tags",
    ),
    (
        "VERBS-08",
        "an unknown id is also the plainest error there is, and ERRORS-09 makes it",
    ),
    (
        "CONCURRENCY-03",
        "TERMINATE-06 makes the same race, one call at a time",
    ),
    ("CANCELLATION-01", WHOLE_LIFECYCLES),
    ("CRASH-01", WHOLE_LIFECYCLES),
    ("CRASH-02", WHOLE_LIFECYCLES),
    ("CRASH-03", WHOLE_LIFECYCLES),
    ("CRASH-04", WHOLE_LIFECYCLES),
    ("CRASH-05", WHOLE_LIFECYCLES),
];
