use std::{
    collections::VecDeque,
    sync::atomic::{AtomicU32, Ordering},
};

use fleetwright::async_trait;
use proptest::prelude::*;

use super::*;

const TIMEOUT: Duration = Duration::from_secs(30);

/// What the source does with a request.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// Returns a token that lasts for so many seconds.
    Issue(i64),
    Fail,
    Hang,
    Panic,
}

/// A source that follows a script, and then fails. Its tokens have numbers.
#[derive(Debug, Default)]
struct Scripted {
    script: Mutex<VecDeque<Act>>,
    requests: AtomicU32,
    running: AtomicU32,
    most_running: AtomicU32,
    /// Seconds after the epoch.
    now: Mutex<i64>,
}

impl Scripted {
    fn now(&self) -> DateTime<Utc> {
        DateTime::from_timestamp(*self.now.lock().unwrap(), 0).unwrap()
    }

    fn advance(&self, seconds: i64) {
        *self.now.lock().unwrap() += seconds;
    }

    fn push(&self, act: Act) {
        self.script.lock().unwrap().push_back(act);
    }

    fn requests(&self) -> u32 {
        self.requests.load(Ordering::SeqCst)
    }
}

/// Counts the requests that run at the same time.
struct Running<'a>(&'a AtomicU32);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl TokenSource for Scripted {
    async fn token(&self, scope: &str) -> Result<Token, TokenFailure> {
        assert_eq!(scope, "x/.default");
        let number = self.requests.fetch_add(1, Ordering::SeqCst);
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_running.fetch_max(running, Ordering::SeqCst);
        let _running = Running(&self.running);
        let act = self.script.lock().unwrap().pop_front();
        tokio::task::yield_now().await;
        match act.unwrap_or(Act::Fail) {
            Act::Issue(lasts) => {
                let ends = self.now() + TimeDelta::seconds(lasts);
                Ok(Token::new(format!("t-{number}"), ends))
            }
            Act::Fail => Err(TokenFailure::unavailable("the source is down")),
            Act::Hang => std::future::pending().await,
            Act::Panic => panic!("the source has a bug"),
        }
    }
}

fn cache(script: &[Act]) -> (Arc<Scripted>, TokenCache) {
    let source = Arc::new(Scripted::default());
    source.advance(1_790_000_000);
    for act in script {
        source.push(*act);
    }
    let clock = Arc::clone(&source);
    let cache = TokenCache::with_clock(
        Arc::clone(&source) as Arc<dyn TokenSource>,
        "x/.default".to_owned(),
        TIMEOUT,
        Arc::new(move || clock.now()),
    );
    (source, cache)
}

/// Lets the tasks that can run do so. Time does not pass.
async fn run_tasks() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

async fn secret(cache: &TokenCache) -> String {
    cache.current().await.unwrap().secret
}

#[tokio::test(start_paused = true)]
async fn token_is_requested_once_and_again_after_a_refusal() {
    let (source, cache) = cache(&[Act::Issue(3600), Act::Issue(3600)]);
    let all = futures_util::future::join_all((0..50).map(|_| cache.current())).await;
    assert!(all.iter().all(|one| one.as_ref().unwrap().secret == "t-0"));
    assert_eq!(source.requests(), 1);
    let refused = cache.current().await.unwrap();
    cache.forget(&refused);
    let next = cache.current().await.unwrap();
    assert_eq!(next.secret, "t-1");
    cache.forget(&refused);
    assert_eq!(cache.current().await.unwrap(), next);
    assert_eq!(source.requests(), 2);
    assert!(!format!("{cache:?}").contains("t-1"), "{cache:?}");
}

#[tokio::test(start_paused = true)]
async fn token_is_renewed_in_the_background_before_it_expires() {
    let (source, cache) = cache(&[Act::Issue(3600), Act::Issue(3600)]);
    assert_eq!(secret(&cache).await, "t-0");
    source.advance(3600 - 301);
    assert_eq!(secret(&cache).await, "t-0");
    run_tasks().await;
    assert_eq!(source.requests(), 1, "not yet");
    source.advance(1);
    // The call that starts the renewal does not wait for it.
    assert_eq!(secret(&cache).await, "t-0");
    run_tasks().await;
    for _ in 0..100 {
        assert_eq!(secret(&cache).await, "t-1");
    }
    run_tasks().await;
    assert_eq!(source.requests(), 2);
}

#[tokio::test(start_paused = true)]
async fn valid_token_is_used_while_its_source_hangs_or_fails() {
    for bad in [Act::Hang, Act::Fail, Act::Panic] {
        let (source, cache) = cache(&[Act::Issue(3600), bad, bad, Act::Issue(3600)]);
        assert_eq!(secret(&cache).await, "t-0");
        source.advance(3310);
        let before = Instant::now();
        for _ in 0..100 {
            assert_eq!(secret(&cache).await, "t-0", "{bad:?}");
            run_tasks().await;
        }
        assert_eq!(Instant::now(), before, "no call waits: {bad:?}");
        assert_eq!(
            source.requests(),
            2,
            "not one request for each call: {bad:?}"
        );
        // A source that hangs is given up after the timeout, and left alone for a pause.
        for requests in [3, 4] {
            tokio::time::advance(TIMEOUT).await;
            run_tasks().await;
            source.advance(31);
            assert_eq!(secret(&cache).await, "t-0", "{bad:?}");
            run_tasks().await;
            assert_eq!(source.requests(), requests, "{bad:?}");
        }
        assert_eq!(secret(&cache).await, "t-3", "{bad:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_valid_token_a_call_fails_in_time_and_the_next_one_tries_again() {
    for bad in [Act::Hang, Act::Fail, Act::Panic] {
        let (source, cache) = cache(&[Act::Issue(60), bad, Act::Issue(60)]);
        assert_eq!(secret(&cache).await, "t-0");
        source.advance(60);
        let before = Instant::now();
        let all = futures_util::future::join_all((0..10).map(|_| cache.current())).await;
        for one in all {
            let failure = one.unwrap_err();
            assert_eq!(failure.cause, Cause::CredentialsUnavailable, "{bad:?}");
        }
        assert!(before.elapsed() <= TIMEOUT, "{bad:?}");
        assert_eq!(source.requests(), 2, "the calls share one request: {bad:?}");
        assert_eq!(secret(&cache).await, "t-2", "{bad:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn unusable_token_is_not_kept() {
    let (source, cache) = cache(&[Act::Issue(0), Act::Issue(-5), Act::Issue(60)]);
    for _ in 0..2 {
        let failure = cache.current().await.unwrap_err();
        assert_eq!(failure.cause, Cause::CredentialsUnavailable);
        assert!(failure.message.contains("clock"), "{}", failure.message);
    }
    assert_eq!(secret(&cache).await, "t-2");
    assert_eq!(source.requests(), 3);
}

#[tokio::test(start_paused = true)]
async fn short_token_is_renewed_after_half_its_time() {
    let (source, cache) = cache(&[Act::Issue(200), Act::Issue(200)]);
    for _ in 0..10 {
        assert_eq!(secret(&cache).await, "t-0");
        run_tasks().await;
        source.advance(9);
    }
    assert_eq!(source.requests(), 1);
    source.advance(10);
    assert_eq!(secret(&cache).await, "t-0");
    run_tasks().await;
    assert_eq!(secret(&cache).await, "t-1");
}

#[tokio::test(start_paused = true)]
async fn dropped_call_does_not_end_the_request_of_the_others() {
    let (source, cache) = cache(&[Act::Issue(3600)]);
    let mut first = Box::pin(cache.current());
    assert!(futures_util::poll!(&mut first).is_pending());
    drop(first);
    assert_eq!(secret(&cache).await, "t-0");
    assert_eq!(source.requests(), 1);
}

#[tokio::test(start_paused = true)]
async fn dropped_cache_ends_its_request() {
    let (source, cache) = cache(&[Act::Hang]);
    let mut call = Box::pin(cache.current());
    assert!(futures_util::poll!(&mut call).is_pending());
    run_tasks().await;
    assert_eq!(source.running.load(Ordering::SeqCst), 1);
    drop(call);
    drop(cache);
    run_tasks().await;
    assert_eq!(source.running.load(Ordering::SeqCst), 0);
}

#[test]
fn request_does_not_depend_on_the_runtime_that_started_it() {
    let runtime = || {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_time().start_paused(true).build().unwrap()
    };
    // The runtime ends, or nothing drives it any more.
    for ends in [true, false] {
        let (_, cache) = cache(&[Act::Hang, Act::Issue(3600)]);
        let first = runtime();
        first.block_on(async {
            let mut call = Box::pin(cache.current());
            assert!(futures_util::poll!(&mut call).is_pending());
            run_tasks().await;
        });
        let kept = (!ends).then_some(first);
        runtime().block_on(async {
            if kept.is_some() {
                cache.current().await.unwrap_err();
                tokio::time::advance(TIMEOUT).await;
            }
            assert_eq!(secret(&cache).await, "t-1");
        });
    }
}

/// What happens in one step of a property test.
#[derive(Clone, Debug)]
enum Step {
    Call,
    Forget,
    /// Seconds pass.
    Wait(u16),
    Script(Act),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let act = prop_oneof![
        (1..4000_i64).prop_map(Act::Issue),
        Just(Act::Fail),
        Just(Act::Hang),
        Just(Act::Panic),
    ];
    let step = prop_oneof![
        4 => Just(Step::Call),
        1 => Just(Step::Forget),
        3 => (1..2000_u16).prop_map(Step::Wait),
        3 => act.prop_map(Step::Script),
    ];
    proptest::collection::vec(step, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// A call that follows one which returned a token succeeds at once while that token is valid,
    /// whatever the source does; and no call waits longer than the timeout.
    #[test]
    fn valid_token_never_depends_on_its_source(steps in steps()) {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let (source, cache) = cache(&[]);
            let mut known: Option<Token> = None;
            for step in steps {
                match step {
                    Step::Call => {
                        let before = Instant::now();
                        let result = cache.current().await;
                        let valid = known.as_ref().is_some_and(|it| it.expires > source.now());
                        assert!(before.elapsed() <= TIMEOUT);
                        if valid {
                            assert_eq!(before.elapsed(), Duration::ZERO);
                            assert!(result.is_ok(), "{result:?}");
                        }
                        if let Ok(token) = result {
                            assert!(token.expires > source.now());
                            known = Some(token);
                        }
                    }
                    Step::Forget => if let Some(token) = known.take() {
                        cache.forget(&token);
                    },
                    Step::Wait(seconds) => {
                        source.advance(seconds.into());
                        tokio::time::advance(Duration::from_secs(seconds.into())).await;
                        run_tasks().await;
                    }
                    Step::Script(act) => source.push(act),
                }
            }
            assert!(source.most_running.load(Ordering::SeqCst) <= 1);
        });
    }
}
