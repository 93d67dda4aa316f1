//! What the example prints: progress in a terminal, plain lines elsewhere.

use indicatif::{ProgressBar, ProgressStyle};

/// The printer. Lines go to standard output; the bar to standard error, and only in a terminal.
pub(crate) struct Show {
    bar: ProgressBar,
}

impl Show {
    /// A printer for a fleet of `size`.
    pub(crate) fn new(size: u32) -> Self {
        let bar = ProgressBar::new(size.into());
        if let Ok(style) = ProgressStyle::with_template("  [{bar:30}] {pos} of {len} running") {
            bar.set_style(style.progress_chars("=> "));
        }
        Self { bar }
    }

    /// A step of the story begins.
    pub(crate) fn step(&self, name: &str, what: &str) {
        self.line(&format!("{name:>10}: {what}"));
    }

    /// Something that happens in a step.
    pub(crate) fn detail(&self, what: &str) {
        self.line(&format!("{:>10}  {what}", ""));
    }

    /// What a step came to.
    pub(crate) fn done(&self, what: &str) {
        self.line(&format!("{:>10}  ok: {what}", ""));
    }

    /// How many run now.
    pub(crate) fn progress(&self, ready: usize) {
        self.bar.set_position(ready as u64);
    }

    /// The last line.
    pub(crate) fn last(&self, what: &str) {
        self.bar.finish_and_clear();
        println!("{:>10}: {what}", "end");
    }

    fn line(&self, text: &str) {
        self.bar.suspend(|| println!("{text}"));
    }
}
