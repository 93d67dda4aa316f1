//! Clauses, outcomes and reports of a contract test suite, whatever the contract is about.
