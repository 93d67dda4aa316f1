//! What the tests over the zoo share: two hands.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

/// Does `one` for each of `items` on two threads.
pub(crate) fn side_by_side<T: Sync, R: Send>(items: &[T], one: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some((at, item)) = {
            let at = next.fetch_add(1, Ordering::SeqCst);
            items.get(at).map(|item| (at, item))
        } {
            done.push((at, one(item)));
        }
        done
    };
    let mut all: Vec<(usize, R)> = thread::scope(|scope| {
        let hands: Vec<_> = (0..2).map(|_| scope.spawn(work)).collect();
        hands
            .into_iter()
            .flat_map(|hand| hand.join().unwrap())
            .collect()
    });
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, result)| result).collect()
}
