//! The output of the example: a progress bar in a terminal, plain lines otherwise.

use indicatif::{ProgressBar, ProgressStyle};

/// Prints lines to standard output, and a progress bar to standard error if that is a terminal.
pub(crate) struct Output {
    bar: ProgressBar,
}

impl Output {
    /// Creates the output for a fleet of `size`.
    pub(crate) fn new(size: u32) -> Self {
        let bar = ProgressBar::new(size.into());
        if let Ok(style) = ProgressStyle::with_template("  [{bar:30}] {pos} of {len} running") {
            bar.set_style(style.progress_chars("=> "));
        }
        Self { bar }
    }

    /// Prints the start of a step.
    pub(crate) fn step(&self, name: &str, text: &str) {
        self.line(&format!("{name:>10}: {text}"));
    }

    /// Prints a detail of a step.
    pub(crate) fn detail(&self, text: &str) {
        self.line(&format!("{:>10}  {text}", ""));
    }

    /// Prints the result of a step.
    pub(crate) fn done(&self, text: &str) {
        self.line(&format!("{:>10}  ok: {text}", ""));
    }

    /// Sets the number of running instances.
    pub(crate) fn progress(&self, ready: usize) {
        self.bar.set_position(ready as u64);
    }

    /// Prints the last line.
    pub(crate) fn last(&self, text: &str) {
        self.bar.finish_and_clear();
        println!("{:>10}: {text}", "end");
    }

    fn line(&self, text: &str) {
        self.bar.suspend(|| println!("{text}"));
    }
}
