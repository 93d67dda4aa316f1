//! What the backend's processes did wrong during one clause, whatever the clause is about.

use std::sync::{Arc, Mutex, PoisonError};

/// The first problem of all processes of a clause. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Problems(Arc<Mutex<Option<String>>>);

impl Problems {
    /// Records a problem. Later ones usually follow from the first, and are ignored.
    pub(crate) fn add(&self, problem: &str) {
        let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert_with(|| problem.to_owned());
    }

    /// Returns the first problem.
    pub(crate) fn first(&self) -> Option<String> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
