//! The controller runtime: work queue, clock, entropy and the reconcile loop.
