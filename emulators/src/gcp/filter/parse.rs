//! Parses a filter.

use super::{
    Comparison, Filter, Operator,
    tokens::{Token, tokenize},
};

/// The maximum depth of brackets.
const MAX_DEPTH: usize = 32;

/// Reads a whole filter.
pub(super) fn filter(text: &str) -> Result<Filter, String> {
    let tokens = tokenize(text)?;
    let mut reader = Parser { tokens: &tokens };
    let filter = reader.filter(0)?;
    match reader.tokens {
        [] => Ok(filter),
        _ => Err("There is something after its end.".to_owned()),
    }
}

struct Parser<'a> {
    tokens: &'a [Token],
}

impl<'a> Parser<'a> {
    fn filter(&mut self, depth: usize) -> Result<Filter, String> {
        let mut all = vec![self.choice(depth)?];
        loop {
            let and = self.skip("AND");
            if !and && self.is_at_end() {
                return Ok(single_or(all, Filter::All));
            }
            all.push(self.choice(depth)?);
        }
    }

    fn choice(&mut self, depth: usize) -> Result<Filter, String> {
        let mut any = vec![self.term(depth)?];
        while self.skip("OR") {
            any.push(self.term(depth)?);
        }
        Ok(single_or(any, Filter::Any))
    }

    fn term(&mut self, depth: usize) -> Result<Filter, String> {
        if depth > MAX_DEPTH {
            return Err("It is nested too deeply.".to_owned());
        }
        match self.tokens.first() {
            Some(Token::Minus) => {
                self.next();
                Ok(Filter::Not(Box::new(self.term(depth + 1)?)))
            }
            Some(Token::Plain(token)) if token == "NOT" => {
                self.next();
                Ok(Filter::Not(Box::new(self.term(depth + 1)?)))
            }
            Some(Token::Open) => {
                self.next();
                let inside = self.filter(depth + 1)?;
                match self.next() {
                    Some(Token::Close) => Ok(inside),
                    _ => Err("A bracket is not closed.".to_owned()),
                }
            }
            _ => self.comparison().map(Filter::Compare),
        }
    }

    fn comparison(&mut self) -> Result<Comparison, String> {
        let Some(Token::Plain(path)) = self.next() else {
            return Err("A field's name is missing.".to_owned());
        };
        let operator = match self.next() {
            Some(Token::Operator("=")) => Operator::Equal,
            Some(Token::Operator("!=")) => Operator::NotEqual,
            Some(Token::Operator("<")) => Operator::Less,
            Some(Token::Operator("<=")) => Operator::LessOrEqual,
            Some(Token::Operator(">")) => Operator::Greater,
            Some(Token::Operator(">=")) => Operator::GreaterOrEqual,
            Some(Token::Operator(":")) => Operator::Has,
            Some(Token::Plain(token)) if token == "eq" => Operator::Matches,
            Some(Token::Plain(token)) if token == "ne" => Operator::MatchesNot,
            _ => return Err("An operator is missing.".to_owned()),
        };
        match self.next() {
            Some(Token::Plain(value) | Token::Quoted(value)) => Ok(Comparison {
                path: path.clone(),
                operator,
                value: value.clone(),
            }),
            _ => Err("A value is missing.".to_owned()),
        }
    }

    fn is_at_end(&self) -> bool {
        matches!(self.tokens.first(), None | Some(Token::Close))
    }

    fn skip(&mut self, keyword: &str) -> bool {
        let is = matches!(self.tokens.first(), Some(Token::Plain(token)) if token == keyword);
        if is {
            self.next();
        }
        is
    }

    fn next(&mut self) -> Option<&'a Token> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(first)
    }
}

fn single_or(mut filters: Vec<Filter>, several: fn(Vec<Filter>) -> Filter) -> Filter {
    match (filters.len(), filters.pop()) {
        (1, Some(only)) => only,
        (_, last) => several(filters.into_iter().chain(last).collect()),
    }
}
