//! Parses a filter by recursive descent over its tokens.
//!
//! Owns the grammar in the documentation of the parent module. Errors are the sentence that the
//! refusal ends with.

use super::{
    Comparison, Expression, Filter, Operator,
    tokens::{Token, tokenize},
};

/// The maximum depth of brackets and negations. Deeper filters are refused, so that no filter can
/// exhaust the stack.
const MAX_DEPTH: usize = 32;

/// Parses a whole filter.
///
/// # Errors
///
/// A sentence that says what is wrong, such as a missing operator.
pub(super) fn filter(text: &str) -> Result<Filter, String> {
    let tokens = tokenize(text)?;
    let mut parser = Parser { tokens: &tokens };
    let filter = parser.filter(0)?;
    match parser.tokens {
        [] => Ok(filter),
        _ => Err("There is something after its end.".to_owned()),
    }
}

/// The rest of the tokens.
struct Parser<'a> {
    /// The tokens that are not parsed yet.
    tokens: &'a [Token],
}

impl<'a> Parser<'a> {
    /// Parses choices that are joined by `AND` or by nothing.
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

    /// Parses terms that are joined by `OR`, which binds tighter than `AND`.
    fn choice(&mut self, depth: usize) -> Result<Filter, String> {
        let mut any = vec![self.term(depth)?];
        while self.skip("OR") {
            any.push(self.term(depth)?);
        }
        Ok(single_or(any, Filter::Any))
    }

    /// Parses a comparison, a filter in brackets, or the negation of a term.
    ///
    /// # Errors
    ///
    /// A missing bracket, or a depth above `MAX_DEPTH`.
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

    /// Parses a field, an operator and a value.
    ///
    /// # Errors
    ///
    /// Any of the three is missing.
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
                expression: Expression::default(),
            }),
            _ => Err("A value is missing.".to_owned()),
        }
    }

    /// Returns whether the filter ends here, at the end of the text or at a closing bracket.
    fn is_at_end(&self) -> bool {
        matches!(self.tokens.first(), None | Some(Token::Close))
    }

    /// Skips a keyword and returns whether it was there. Keywords are upper case.
    fn skip(&mut self, keyword: &str) -> bool {
        let is = matches!(self.tokens.first(), Some(Token::Plain(token)) if token == keyword);
        if is {
            self.next();
        }
        is
    }

    /// Returns the next token.
    fn next(&mut self) -> Option<&'a Token> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(first)
    }
}

/// Returns the only filter, or joins several with `several`.
fn single_or(mut filters: Vec<Filter>, several: fn(Vec<Filter>) -> Filter) -> Filter {
    match (filters.len(), filters.pop()) {
        (1, Some(only)) => only,
        (_, last) => several(filters.into_iter().chain(last).collect()),
    }
}
