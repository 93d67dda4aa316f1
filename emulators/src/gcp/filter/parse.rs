//! Parses a filter.

use super::{
    Comparison, Filter, Operator,
    words::{Word, words},
};

/// The maximum depth of brackets.
const DEEPEST: usize = 32;

/// Reads a whole filter.
pub(super) fn filter(text: &str) -> Result<Filter, String> {
    let words = words(text)?;
    let mut reader = Reader { words: &words };
    let filter = reader.filter(0)?;
    match reader.words {
        [] => Ok(filter),
        _ => Err("There is something after its end.".to_owned()),
    }
}

struct Reader<'a> {
    words: &'a [Word],
}

impl<'a> Reader<'a> {
    fn filter(&mut self, depth: usize) -> Result<Filter, String> {
        let mut all = vec![self.choice(depth)?];
        loop {
            let and = self.skip("AND");
            if !and && self.is_at_end() {
                return Ok(one_or(all, Filter::All));
            }
            all.push(self.choice(depth)?);
        }
    }

    fn choice(&mut self, depth: usize) -> Result<Filter, String> {
        let mut any = vec![self.term(depth)?];
        while self.skip("OR") {
            any.push(self.term(depth)?);
        }
        Ok(one_or(any, Filter::Any))
    }

    fn term(&mut self, depth: usize) -> Result<Filter, String> {
        if depth > DEEPEST {
            return Err("It is nested too deeply.".to_owned());
        }
        match self.words.first() {
            Some(Word::Minus) => {
                self.next();
                Ok(Filter::Not(Box::new(self.term(depth + 1)?)))
            }
            Some(Word::Plain(word)) if word == "NOT" => {
                self.next();
                Ok(Filter::Not(Box::new(self.term(depth + 1)?)))
            }
            Some(Word::Open) => {
                self.next();
                let inside = self.filter(depth + 1)?;
                match self.next() {
                    Some(Word::Close) => Ok(inside),
                    _ => Err("A bracket is not closed.".to_owned()),
                }
            }
            _ => self.comparison().map(Filter::Compare),
        }
    }

    fn comparison(&mut self) -> Result<Comparison, String> {
        let Some(Word::Plain(path)) = self.next() else {
            return Err("A field's name is missing.".to_owned());
        };
        let operator = match self.next() {
            Some(Word::Sign("=")) => Operator::Equal,
            Some(Word::Sign("!=")) => Operator::NotEqual,
            Some(Word::Sign("<")) => Operator::Less,
            Some(Word::Sign("<=")) => Operator::LessOrEqual,
            Some(Word::Sign(">")) => Operator::Greater,
            Some(Word::Sign(">=")) => Operator::GreaterOrEqual,
            Some(Word::Sign(":")) => Operator::Has,
            Some(Word::Plain(word)) if word == "eq" => Operator::Matches,
            Some(Word::Plain(word)) if word == "ne" => Operator::MatchesNot,
            _ => return Err("An operator is missing.".to_owned()),
        };
        match self.next() {
            Some(Word::Plain(value) | Word::Quoted(value)) => Ok(Comparison {
                path: path.clone(),
                operator,
                value: value.clone(),
            }),
            _ => Err("A value is missing.".to_owned()),
        }
    }

    fn is_at_end(&self) -> bool {
        matches!(self.words.first(), None | Some(Word::Close))
    }

    fn skip(&mut self, keyword: &str) -> bool {
        let is = matches!(self.words.first(), Some(Word::Plain(word)) if word == keyword);
        if is {
            self.next();
        }
        is
    }

    fn next(&mut self) -> Option<&'a Word> {
        let (first, rest) = self.words.split_first()?;
        self.words = rest;
        Some(first)
    }
}

fn one_or(mut filters: Vec<Filter>, several: fn(Vec<Filter>) -> Filter) -> Filter {
    match (filters.len(), filters.pop()) {
        (1, Some(only)) => only,
        (_, last) => several(filters.into_iter().chain(last).collect()),
    }
}
