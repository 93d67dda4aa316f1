//! Shared look-ups in virtual time.

use std::sync::Arc;

use fleetwright::InstanceConfig;
use futures_util::{FutureExt as _, future::join_all};
use tokio::time::{Instant, sleep};

use super::*;
use crate::error::Cause;

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn tokens(count: usize) -> Vec<LaunchToken> {
    let token = |number| LaunchToken::new(format!("t-{number}")).unwrap();
    (0..count).map(token).collect()
}

/// A cloud on which every token has launched one instance, with the number of the read as its id.
#[derive(Default)]
struct Cloud {
    reads: TokenReads,
    /// How many tokens each read has selected.
    sizes: Mutex<Vec<usize>>,
    fails: bool,
}

impl Default for TokenReads {
    fn default() -> Self {
        Self::new()
    }
}

impl Cloud {
    async fn look_up(&self, token: &LaunchToken, takes: Duration) -> Found {
        let list = |filter: Filter| -> BoxFuture<'_, Found> {
            Box::pin(async move {
                let patterns = filter.values().to_vec();
                let read = {
                    let mut sizes = self.sizes.lock().unwrap();
                    sizes.push(patterns.len());
                    sizes.len()
                };
                sleep(takes).await;
                if self.fails {
                    return Err(Failure::new(Cause::Responded(503), "overloaded"));
                }
                let native = |pattern: String| {
                    Instance::builder()
                        .instance_id(format!("i-{read}"))
                        .client_token(pattern.replace('*', "0123abcd"))
                        .build()
                };
                Ok(patterns.into_iter().map(native).collect())
            })
        };
        self.reads.read(token, list).await
    }

    fn sizes(&self) -> Vec<usize> {
        self.sizes.lock().unwrap().clone()
    }
}

fn ids(found: &Found) -> Vec<&str> {
    let found = found.as_ref().unwrap();
    found.iter().filter_map(Instance::instance_id).collect()
}

#[tokio::test(start_paused = true)]
async fn lone_look_up_is_sent_at_once() {
    let (cloud, began) = (Cloud::default(), Instant::now());
    for (read, token) in (1..).zip(&tokens(3)) {
        let found = cloud.look_up(token, Duration::ZERO).await;
        assert_eq!(ids(&found), [format!("i-{read}")]);
    }
    assert_eq!(cloud.sizes(), [1, 1, 1]);
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn five_hundred_look_ups_are_four_reads() {
    let (cloud, tokens) = (Cloud::default(), tokens(500));
    let found = join_all(tokens.iter().map(|token| cloud.look_up(token, millis(20)))).await;
    assert_eq!(cloud.sizes(), [1, 200, 200, 99]);
    let config = InstanceConfig::builder("ami-1", "t3.micro")
        .build()
        .unwrap();
    for (token, found) in tokens.iter().zip(found) {
        let [native] = &found.unwrap()[..] else {
            panic!("one instance")
        };
        let own = token::client_token(token, &config, 1);
        let shown = native.client_token().unwrap();
        assert_eq!(token::prefix_of(shown), token::prefix_of(&own));
    }
}

#[tokio::test(start_paused = true)]
async fn look_ups_of_one_token_share_a_filter_value() {
    let (cloud, token) = (Cloud::default(), &tokens(1)[0]);
    let found = join_all((0..3).map(|_| cloud.look_up(token, millis(20)))).await;
    assert_eq!(cloud.sizes(), [1, 1]);
    // A look-up that began during a read gets the result of the next one.
    let found: Vec<_> = found.iter().flat_map(ids).collect();
    assert_eq!(found, ["i-1", "i-2", "i-2"]);
}

#[tokio::test(start_paused = true)]
async fn slow_read_delays_the_others_no_longer_than_the_patience() {
    let (cloud, tokens) = (Cloud::default(), tokens(9));
    let began = Instant::now();
    let mut slow = Box::pin(cloud.look_up(&tokens[0], Duration::from_secs(60)));
    assert!(slow.as_mut().now_or_never().is_none());
    let others = tokens[1..]
        .iter()
        .map(|token| cloud.look_up(token, millis(20)));
    assert!(join_all(others).await.iter().all(Result::is_ok));
    assert_eq!(began.elapsed(), PATIENCE + millis(20));
    assert_eq!(cloud.sizes(), [1, 8]);
}

#[tokio::test(start_paused = true)]
async fn dropped_look_up_leaves_its_read_to_another() {
    for patient in [true, false] {
        let (cloud, tokens) = (Cloud::default(), tokens(5));
        let began = Instant::now();
        let mut first = Box::pin(cloud.look_up(&tokens[0], millis(20)));
        assert!(first.as_mut().now_or_never().is_none());
        let mut sender = Box::pin(cloud.look_up(&tokens[1], Duration::from_secs(60)));
        assert!(sender.as_mut().now_or_never().is_none());
        let others = tokens[2..]
            .iter()
            .map(|token| cloud.look_up(token, millis(20)));
        let mut others = Box::pin(join_all(others));
        assert!(others.as_mut().now_or_never().is_none());
        first.await.unwrap();
        assert!(sender.as_mut().now_or_never().is_none());
        assert_eq!(cloud.sizes(), [1, 4]);
        // With or without another attempt to get a turn in between.
        let until = if patient { millis(10) } else { PATIENCE * 2 };
        let waited = tokio::time::timeout(until, &mut others).await;
        assert!(waited.is_err());
        drop(sender);
        let found = others.await;
        assert!(found.iter().all(|found| ids(found) == ["i-3"]));
        assert_eq!(cloud.sizes(), [1, 4, 3]);
        assert!(began.elapsed() < STUCK_AFTER);
    }
}

#[tokio::test(start_paused = true)]
async fn look_up_that_is_not_polled_does_not_stop_the_others() {
    let (cloud, tokens) = (Cloud::default(), tokens(5));
    let mut first = Box::pin(cloud.look_up(&tokens[0], millis(20)));
    assert!(first.as_mut().now_or_never().is_none());
    let mut sender = Box::pin(cloud.look_up(&tokens[1], millis(20)));
    assert!(sender.as_mut().now_or_never().is_none());
    let others = tokens[2..]
        .iter()
        .map(|token| cloud.look_up(token, millis(20)));
    let mut others = Box::pin(join_all(others));
    assert!(others.as_mut().now_or_never().is_none());
    first.await.unwrap();
    // It sends the read of all, and is not polled again.
    assert!(sender.as_mut().now_or_never().is_none());
    let found = others.await;
    assert!(found.iter().all(|found| ids(found) == ["i-3"]));
    assert_eq!(cloud.sizes(), [1, 4, 3]);
    assert_eq!(ids(&sender.await), ["i-2"]);
}

#[tokio::test(start_paused = true)]
async fn dropped_look_ups_are_not_sent() {
    let (cloud, tokens) = (Cloud::default(), tokens(3));
    let mut first = Box::pin(cloud.look_up(&tokens[0], millis(20)));
    assert!(first.as_mut().now_or_never().is_none());
    let mut dropped = Box::pin(cloud.look_up(&tokens[1], millis(20)));
    assert!(dropped.as_mut().now_or_never().is_none());
    drop(dropped);
    let last = cloud.look_up(&tokens[2], millis(20));
    let (_, found) = tokio::join!(first, last);
    assert_eq!((cloud.sizes(), ids(&found)), (vec![1, 1], vec!["i-2"]));
}

#[tokio::test(start_paused = true)]
async fn failed_read_is_the_result_of_all_its_look_ups() {
    let fails = true;
    let cloud = Arc::new(Cloud {
        fails,
        ..Cloud::default()
    });
    let tokens = tokens(4);
    let look_ups = tokens.iter().map(|token| cloud.look_up(token, millis(20)));
    let found = join_all(look_ups).await;
    let statuses: Vec<_> = found
        .into_iter()
        .map(|one| one.unwrap_err().status())
        .collect();
    assert_eq!(statuses, [Some(503); 4]);
    assert_eq!(cloud.sizes(), [1, 3]);
}

#[tokio::test(start_paused = true)]
async fn nothing_waits_after_the_last_look_up() {
    let (cloud, tokens) = (Cloud::default(), tokens(250));
    join_all(tokens.iter().map(|token| cloud.look_up(token, millis(20)))).await;
    assert!(cloud.reads.lock().lookups.is_empty());
    assert_eq!(cloud.reads.turn.available_permits(), 1);
}
