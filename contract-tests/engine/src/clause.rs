//! What a clause is, and the contract that it belongs to.
//!
//! Owns the registry's types and the macro that fills it. It never runs anything.

use std::{fmt, future::Future, pin::Pin};

use crate::{DetectedBy, Outcome, Status, Verdict};

/// One promise of a contract, with the test that holds a subject to it.
///
/// `C` is the context that an asynchronous test is given, `E` the environment of a test that creates
/// its contexts itself. Usually a registry is written with [`clauses!`](crate::clauses).
pub struct Clause<C, E> {
    /// The clause's number, for instance `LAUNCH-03`. It is never given to another promise.
    pub id: &'static str,
    /// The name of its test. It begins with the id in lower case: `launch_03_…`.
    pub name: &'static str,
    /// What a subject must do. It completes the sentence "a backend must …".
    pub promise: &'static str,
    /// What the harness or the subject must offer for the behaviour itself to be tested; empty in a
    /// contract whose clauses need nothing.
    pub needs: &'static str,
    /// The test.
    pub body: Body<C, E>,
}

impl<C, E> Clause<C, E> {
    /// Returns the part of the id before the number, for instance `LAUNCH`.
    pub fn family(&self) -> &'static str {
        self.id.split('-').next().unwrap_or(self.id)
    }
}

impl<C, E> fmt::Debug for Clause<C, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.id, self.name)
    }
}

/// The future of an asynchronous test, which borrows its context.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// The test of a clause.
pub enum Body<C, E> {
    /// Runs on one fresh context, inside the runtime of the suite.
    Async(for<'a> fn(&'a C) -> BoxFuture<'a, Outcome>),
    /// Creates its own contexts and runtimes from the environment: for tests of many cases, or of
    /// several processes.
    Sync(fn(&E) -> Outcome),
}

impl<C, E> Clone for Body<C, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C, E> Copy for Body<C, E> {}

impl<C, E> fmt::Debug for Body<C, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Async(_) => "Async",
            Self::Sync(_) => "Sync",
        })
    }
}

/// A contract: its clauses, and how to talk about them.
///
/// The crate's front page has an example.
pub struct Contract<C: 'static, E: 'static> {
    /// What the contract is about, as a noun: `backend`, `store`.
    pub subject: &'static str,
    /// The path of the document with the text of the contract, relative to the repository.
    pub document: &'static str,
    /// The version of the contract, `major.minor`. A new clause raises the minor version; a changed
    /// or removed promise raises the major one.
    pub version: &'static str,
    /// Every clause, in the order of the document.
    pub clauses: &'static [Clause<C, E>],
}

impl<C, E> Contract<C, E> {
    /// Returns the clause with this id.
    pub fn clause(&self, id: &str) -> Option<&'static Clause<C, E>> {
        self.clauses.iter().find(|clause| clause.id == id)
    }

    /// Returns the clauses whose ids start with `prefix`, for instance `TOKEN-`.
    pub fn family(&self, prefix: &str) -> impl Iterator<Item = &'static Clause<C, E>> {
        self.clauses
            .iter()
            .filter(move |clause| clause.id.starts_with(prefix))
    }

    /// Returns the full message for the author of the subject: the [headline](Verdict::headline), the
    /// promise, what was observed instead, where the contract explains it, and the calls that were
    /// made.
    ///
    /// For a leak and for a failed cleanup it says that the clause's own promise was kept. For a clause that was not run it says
    /// what the clause needs and what is missing.
    pub fn message(&self, verdict: &Verdict) -> String {
        let Verdict { id, status, .. } = verdict;
        let subject = self.subject;
        let (promise, needs) = self
            .clause(id)
            .map_or(("", ""), |clause| (clause.promise, clause.needs));
        // What was promised beyond the clause, and broken after it.
        let afterwards = match (*status, verdict.detected_by) {
            (Status::Fail, DetectedBy::LeakProbe) => {
                Some("leave nothing behind once all is terminated")
            }
            (Status::Fail, DetectedBy::Cleanup) => {
                Some("list and terminate what a clause has launched")
            }
            _ => None,
        };
        let mut text = format!("{id}: {}\n", verdict.headline());
        let mut line = |label: &str, content: &str| {
            if !content.is_empty() {
                text += &format!("  {:9} {content}\n", format!("{label}:"));
            }
        };
        let reason = verdict.reason.as_deref().unwrap_or_default();
        if let Some(rule) = afterwards {
            line("promised", &format!("a {subject} must {rule}"));
            line("observed", reason);
            line(
                "clause",
                &format!("{id} passed, until its instances were removed"),
            );
        } else if *status == Status::NotRun {
            line("promises", &format!("a {subject} must {promise}"));
            line("needs", needs);
            line("missing", reason);
        } else {
            line("promised", &format!("a {subject} must {promise}"));
            line("observed", reason);
        }
        if afterwards.is_some() {
            line("text", self.document);
        } else {
            line("text", &format!("{}, {id}", self.document));
        }
        for line in &verdict.transcript {
            text += &format!("    {line}\n");
        }
        text
    }
}

impl<C, E> fmt::Debug for Contract<C, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            subject,
            version,
            clauses,
            ..
        } = self;
        write!(
            f,
            "contract {version} of a {subject}, {} clauses",
            clauses.len()
        )
    }
}

/// Defines the static `CLAUSES` from a list of rows.
///
/// A row is: `async` or `sync` (how the body runs), the module and the name of the function with the
/// test, the id, the promise and, if the contract uses them, the needs. The name of the function is
/// the name of the test. The first line names the types and the module that holds the families.
///
/// ```
/// mod clauses {
///     pub(crate) mod add {
///         use fleetwright_clause_engine::{Outcome, Pass};
///
///         pub(crate) async fn add_01_adds(_: &()) -> Outcome {
///             Ok(Pass::Held)
///         }
///     }
/// }
///
/// fleetwright_clause_engine::clauses! { [(), ()] clauses;
///     async add add_01_adds "ADD-01" "return the sum of two numbers" "nothing";
/// }
///
/// # fn main() {
/// assert_eq!(CLAUSES[0].name, "add_01_adds");
/// # }
/// ```
#[macro_export]
macro_rules! clauses {
    ([$context:ty, $environment:ty] $families:ident;
        $($how:ident $family:ident $name:ident $id:literal $promise:literal $($needs:literal)?;)*) => {
        /// Every clause of the contract, in the order of the document.
        pub static CLAUSES: &[$crate::Clause<$context, $environment>] = &[
            $($crate::Clause {
                id: $id,
                name: stringify!($name),
                promise: $promise,
                needs: concat!($($needs)?),
                body: $crate::__body!($how $families $family $name),
            },)*
        ];
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __body {
    (async $families:ident $family:ident $name:ident) => {
        $crate::Body::Async(|cx| Box::pin($families::$family::$name(cx)))
    };
    (sync $families:ident $family:ident $name:ident) => {
        $crate::Body::Sync($families::$family::$name)
    };
}
