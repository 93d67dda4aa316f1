//! How a controller works through what changes: who is woken, whose turn it is, and how long who failed waits.
//!
//! A controller is woken by the store's [watch](wakes()) with keys and no data, [works](work()) on each key at most once at a
//! time and on a bounded number of them at once, and remembers nothing but [whose turn](Queue) it is. Whoever dies leaves nothing
//! behind: the next one begins with everything there is.

mod turns;
mod wakes;
mod work;

pub use turns::Queue;
pub use wakes::wakes;
pub(crate) use work::TURN;
pub use work::{Next, backoff, instant, work};
