//! What the engine does, method by method, on a clock that stands still.
