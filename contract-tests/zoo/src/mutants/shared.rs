//! Clauses without a mutant that violates only them, each with the reason why the clause is kept.
//!
//! `tests/zoo/unique.rs` compares this list with what it measures: a clause that gains a mutant of its
//! own must be removed from the list, and one that loses its last must be added.

/// The sweeps and the model run whole lifecycles, so they detect most mutants.
const WHOLE_LIFECYCLES: &str = "the sweeps and the model run whole lifecycles and detect it too; the \
     clause names the promise, and fails with a short sequence";

/// ERRORS-15 goes over all errors of a cloud.
const ALL_ERRORS: &str = "ERRORS-15 injects the same fault beside others; the clause names the promise, and holds a harness \
     without native errors to it";

/// The clauses with their reasons.
pub const SHARED: &[(&str, &str)] = &[
    (
        "LAUNCH-01",
        "a launch that returns another state also breaks replays and the order of states",
    ),
    (
        "LAUNCH-02",
        "with a reused id, every clause that counts or terminates confuses two instances",
    ),
    (
        "LAUNCH-04",
        "a launch from a snapshot also detects an ignored image",
    ),
    (
        "LAUNCH-05",
        "LAUNCH-12 passes more kinds of user data, to single launches and to batches",
    ),
    (
        "LAUNCH-06",
        "an ignored disk size also makes two configs equal, and STOP-04 checks the size of the disk",
    ),
    (
        "LAUNCH-08",
        "LAUNCH-12 launches with user data of the declared size, TOKEN-05 with more",
    ),
    (
        "LAUNCH-10",
        "a replay is a launch, too, and TOKEN-04 checks the state that it returns",
    ),
    ("TOKEN-01", WHOLE_LIFECYCLES),
    (
        "TOKEN-02",
        "TOKEN-20 compares every field, and this one fails with a short sequence",
    ),
    (
        "TOKEN-07",
        "every lookup of a lost launch uses another handle",
    ),
    ("TOKEN-08", WHOLE_LIFECYCLES),
    ("TOKEN-09", WHOLE_LIFECYCLES),
    ("TOKEN-10", WHOLE_LIFECYCLES),
    (
        "TOKEN-14",
        "every sweep of lost responses makes concurrent launches",
    ),
    ("STATE-01", WHOLE_LIFECYCLES),
    (
        "STATE-02",
        "LIST-15 also lists terminated instances, and the model replays their launches",
    ),
    (
        "STATE-05",
        "an address that a stop loses is also missing after the start",
    ),
    (
        "STATE-06",
        "reads that differ also differ between list and stream",
    ),
    (
        "DESCRIBE-01",
        "a description of another instance is also the wrong result for a concurrent caller",
    ),
    (
        "DESCRIBE-02",
        "ERRORS-09 also provokes the error of an unknown id",
    ),
    (
        "DESCRIBE-05",
        "DESCRIBE-06 also reads through another handle, and detects a lag that is longer than declared",
    ),
    (
        "DESCRIBE-03",
        "a cache that hides external changes also hides an external power-off in STOP-05",
    ),
    ("DESCRIBE-06", WHOLE_LIFECYCLES),
    (
        "LIST-04",
        "tags that are combined with OR also hide a tag that VERBS-01 removed",
    ),
    (
        "LIST-06",
        "LIST-15 also lists by every state alone and by every pair",
    ),
    ("LIST-07", "LIST-15 also lists terminated instances"),
    (
        "LIST-08",
        "every clause that stops an instance and reads its list entry detects it, too",
    ),
    ("LIST-09", "ERRORS-09 also provokes the errors of a list"),
    (
        "LIST-10",
        "LIST-16 also makes a part unreachable, beside several pages",
    ),
    (
        "LIST-12",
        "LAUNCH-13 compares launch times with the oracle, and this one needs no oracle",
    ),
    (
        "LIST-13",
        "LIST-15 and LIST-18 compare streams with what their filters select",
    ),
    (
        "LIST-18",
        "a list that joins another one also hangs with it, which CONCURRENCY-01 detects",
    ),
    (
        "STOP-01",
        "a stop that is not reported also breaks the order of states",
    ),
    ("STOP-02", "every restarted process repeats a stop"),
    ("STOP-03", "an old address is also an old state in a replay"),
    (
        "STOP-04",
        "START-09 and VERBS-15 also compare tags and disk of a stopped instance",
    ),
    ("STOP-06", WHOLE_LIFECYCLES),
    (
        "STOP-07",
        "ERRORS-09 also provokes the error of an unknown id",
    ),
    (
        "START-01",
        "a start that returns too early also breaks the order of states",
    ),
    ("START-04", WHOLE_LIFECYCLES),
    (
        "START-05",
        "ERRORS-09 also provokes the error of an unknown id",
    ),
    (
        "TERMINATE-01",
        "a terminate that is not reported also breaks the order of states",
    ),
    ("TERMINATE-02", WHOLE_LIFECYCLES),
    (
        "TERMINATE-03",
        "ERRORS-09 also provokes the error of an unknown id",
    ),
    (
        "TERMINATE-05",
        "every wait for the termination detects a delayed terminate",
    ),
    (
        "TERMINATE-06",
        "every wait for the termination detects a terminate without effect",
    ),
    (
        "TERMINATE-07",
        "ERRORS-05 also provokes missing permissions",
    ),
    ("ERRORS-01", ALL_ERRORS),
    ("ERRORS-02", ALL_ERRORS),
    ("ERRORS-03", ALL_ERRORS),
    ("ERRORS-04", ALL_ERRORS),
    ("ERRORS-05", ALL_ERRORS),
    ("ERRORS-06", ALL_ERRORS),
    (
        "TAGS-02",
        "every clause that counts instances by tags detects an instance without tags",
    ),
    (
        "TAGS-07",
        "LIST-15 and VERBS-15 also compare tags with the oracle",
    ),
    (
        "ERRORS-07",
        "ERRORS-14 also makes every call with responses that cannot be parsed",
    ),
    ("ERRORS-08", WHOLE_LIFECYCLES),
    (
        "BATCH-01",
        "every clause that counts instances by tags detects a batch without tags",
    ),
    (
        "BATCH-02",
        "TOKEN-16 also replays a batch, through a handle with other options",
    ),
    (
        "BATCH-05",
        "BATCH-15 describes missing and repeated ids in batches that are larger than the cloud's own",
    ),
    (
        "BATCH-06",
        "ERRORS-13 also terminates a batch with an unknown id",
    ),
    (
        "BATCH-10",
        "BATCH-16 also has a terminated instance in its batches",
    ),
    (
        "VERBS-08",
        "ERRORS-09 also provokes the error of an unknown id",
    ),
    (
        "CONCURRENCY-02",
        "TOKEN-22 also launches concurrently, with a token for each instance",
    ),
    (
        "CONCURRENCY-03",
        "TERMINATE-06 makes the same calls concurrently, one pair at a time",
    ),
    (
        "CONCURRENCY-04",
        "TOKEN-19 also makes two different launches with one token at the same moment",
    ),
    ("CANCELLATION-01", WHOLE_LIFECYCLES),
    ("CRASH-01", WHOLE_LIFECYCLES),
    ("CRASH-02", WHOLE_LIFECYCLES),
    ("CRASH-03", WHOLE_LIFECYCLES),
    ("CRASH-04", WHOLE_LIFECYCLES),
    ("CRASH-05", WHOLE_LIFECYCLES),
];
