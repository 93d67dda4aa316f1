//! The command line of `contract-run`.

use std::{
    num::{NonZeroU64, NonZeroUsize},
    path::PathBuf,
    thread::available_parallelism,
    time::Duration,
};

/// What `--help` prints.
pub(crate) const HELP: &str = "\
Holds a backend behind a pipe to fleetwright's contract.

    contract-run --exec COMMAND [--filter TEXT]... [--skip TEXT]... [--jobs N] [--limit SECONDS] [--waivers FILE] [--report FILE]
    contract-run [options] -- PROGRAM [ARGUMENT]...

    --exec COMMAND   the program that speaks the protocol, with its arguments; quotes group words
    --filter TEXT    run only the clauses whose id starts with TEXT, for instance TOKEN-; may be repeated
    --skip TEXT      do not run the clauses whose id starts with TEXT; may be repeated
    --jobs N         run so many clauses at once (default: the number of processors)
    --limit SECONDS  how long the backend may take to start, and to answer where the contract sets no time (default: 30)
    --waivers FILE   known differences of the peer that the backend declares, as TOML
    --report FILE    write the results as JSON
    --help           show this text

Exit code: 0 if the backend keeps every clause that was selected; 1 if it breaks one; 2 if the arguments are wrong or the
backend cannot be started; 3 if it breaks none, but some were waived or could not be run.
The protocol is described in docs/exec-protocol.md, the contract in docs/contract.md.
";

/// The arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) command: Vec<String>,
    pub(crate) filters: Vec<String>,
    pub(crate) skipped: Vec<String>,
    pub(crate) jobs: NonZeroUsize,
    pub(crate) limit: Duration,
    pub(crate) waivers: Option<PathBuf>,
    pub(crate) report: Option<PathBuf>,
}

impl Options {
    /// Parses the arguments, without the program's name. Returns `None` if help is requested.
    ///
    /// # Errors
    /// One line that says which argument is wrong.
    pub(crate) fn parse(
        arguments: impl IntoIterator<Item = String>,
    ) -> Result<Option<Self>, String> {
        let mut options = Self {
            command: Vec::new(),
            filters: Vec::new(),
            skipped: Vec::new(),
            jobs: available_parallelism().unwrap_or(NonZeroUsize::MIN),
            limit: Duration::from_secs(30),
            waivers: None,
            report: None,
        };
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let mut value = || {
                let value = arguments.next();
                value.ok_or_else(|| format!("{argument} needs a value"))
            };
            match argument.as_str() {
                "--exec" => options.command = split_words(&value()?)?,
                "--filter" => options.filters.push(value()?),
                "--skip" => options.skipped.push(value()?),
                "--jobs" => {
                    let jobs = value()?.parse();
                    options.jobs =
                        jobs.map_err(|_| "--jobs takes a whole number above 0".to_owned())?;
                }
                "--limit" => {
                    let seconds: Result<NonZeroU64, _> = value()?.parse();
                    let seconds =
                        seconds.map_err(|_| "--limit takes a whole number above 0".to_owned())?;
                    options.limit = Duration::from_secs(seconds.get());
                }
                "--waivers" => options.waivers = Some(value()?.into()),
                "--report" => options.report = Some(value()?.into()),
                "--help" | "-h" => return Ok(None),
                "--" => options.command = arguments.by_ref().collect(),
                _ => return Err(format!("there is no argument {argument}; see --help")),
            }
        }
        if options.command.is_empty() {
            return Err("no backend: give --exec COMMAND or -- PROGRAM; see --help".to_owned());
        }
        Ok(Some(options))
    }

    /// Returns whether a clause is to be run.
    pub(crate) fn selects(&self, clause: &str) -> bool {
        let starts = |filter: &String| clause.starts_with(filter.as_str());
        let selected = self.filters.is_empty() || self.filters.iter().any(starts);
        selected && !self.skipped.iter().any(starts)
    }
}

/// Splits a command into words. Quotes of both kinds group words; there are no escapes and no variables.
fn split_words(text: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in text.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            None if c == '"' || c == '\'' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c.is_whitespace() => words.extend(word.take()),
            Some(_) | None => word.get_or_insert_default().push(c),
        }
    }
    if quote.is_some() {
        return Err("--exec: a quote is not closed".to_owned());
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> Result<Option<Options>, String> {
        Options::parse(arguments.iter().map(|text| (*text).to_owned()))
    }

    #[test]
    fn command_is_split_or_given_as_words() {
        let options = parsed(&["--exec", "python3 'my backend.py' --x \"\""]).unwrap();
        assert_eq!(
            options.unwrap().command,
            ["python3", "my backend.py", "--x", ""]
        );
        let options = parsed(&["--jobs", "3", "--filter", "TOKEN-", "--", "./b", "--help"]);
        let options = options.unwrap().unwrap();
        assert_eq!(options.command, ["./b", "--help"]);
        assert_eq!(
            (options.jobs.get(), options.filters),
            (3, vec!["TOKEN-".to_owned()])
        );
        assert_eq!(parsed(&["--help"]), Ok(None));
    }

    #[test]
    fn clauses_are_selected_and_skipped_by_their_beginning() {
        let options = parsed(&[
            "--filter", "LIST-", "--filter", "TAGS-01", "--skip", "LIST-03", "--", "b",
        ]);
        let options = options.unwrap().unwrap();
        let ids = ["LIST-01", "LIST-03", "TAGS-01", "TAGS-02"];
        assert_eq!(
            ids.map(|id| options.selects(id)),
            [true, false, true, false]
        );
        let all = parsed(&["--skip", "TAGS-", "--", "b"]).unwrap().unwrap();
        assert_eq!(ids.map(|id| all.selects(id)), [true, true, false, false]);
    }

    #[test]
    fn wrong_arguments_are_named() {
        for (arguments, message) in [
            (&["--jobs", "0"][..], "--jobs takes a whole number above 0"),
            (&["--jobs"], "--jobs needs a value"),
            (&["--exce", "x"], "there is no argument --exce; see --help"),
            (&["--exec", "a 'b"], "--exec: a quote is not closed"),
            (
                &["--exec", " "],
                "no backend: give --exec COMMAND or -- PROGRAM; see --help",
            ),
        ] {
            assert_eq!(parsed(arguments).unwrap_err(), message);
        }
    }
}
