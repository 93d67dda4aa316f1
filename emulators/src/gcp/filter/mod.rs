//! The filters of lists, as Compute Engine documents them, evaluated on the listed documents.
//!
//! ```text
//! filter     = choice {["AND"] choice}
//! choice     = term {"OR" term}
//! term       = ["NOT" | "-"] ("(" filter ")" | comparison)
//! comparison = path ("=" | "!=" | "<" | "<=" | ">" | ">=" | ":") value | path ("eq" | "ne") expression
//! ```
//!
//! OR binds tighter than AND, and a filter cannot mix the two forms of comparisons.
//!
//! The right-hand side of `eq` and `ne` is a regular expression that must match the whole value. A
//! comparison with a list holds if it holds for any element. Malformed filters are refused with
//! 400 `invalid` on the field `filter`.

mod parse;
mod tokens;

use std::sync::OnceLock;

use regex_lite::Regex;
use serde_json::Value;

use super::error::Refusal;

/// A filter of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Filter {
    /// All of these must pass.
    All(Vec<Filter>),
    /// At least one of these must pass.
    Any(Vec<Filter>),
    /// This must not pass.
    Not(Box<Filter>),
    /// This comparison must hold.
    Compare(Comparison),
}

/// One comparison of a field with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Comparison {
    /// The field, with dots between the levels, for example `labels.env`.
    pub(crate) path: String,
    /// How the field is compared.
    pub(crate) operator: Operator,
    /// The value of the filter, without quotation marks.
    pub(crate) value: String,
    /// The value as a regular expression.
    pub(crate) expression: Expression,
}

/// The compiled form of a regular expression, made once for a filter and used for every record. It follows from the
/// value of the comparison, so it takes no part in comparisons of filters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expression(OnceLock<Option<Regex>>);

impl PartialEq for Expression {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Expression {}

/// How a field is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    /// `=`: the values are equal. Texts differ by case; booleans do not.
    Equal,
    /// `!=`: no value of the field is equal. Holds for a missing field.
    NotEqual,
    /// `<`: numbers by value, texts by their characters.
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `:`: the text contains the value. With the value `*`, the field is present.
    Has,
    /// `eq`: the whole text matches a regular expression.
    Matches,
    /// `ne`: no value of the field matches the regular expression.
    MatchesNot,
}

impl Filter {
    /// Parses a filter over documents with these top-level fields.
    ///
    /// # Errors
    ///
    /// 400 `invalid` for a syntax error, an unknown field, a malformed regular expression, or a
    /// mix of regular expressions and other comparisons.
    pub(crate) fn read(text: &str, fields: &[&str]) -> Result<Self, Refusal> {
        let filter = parse::filter(text).map_err(|problem| invalid_filter(text, &problem))?;
        filter.check(text, fields)?;
        let forms = filter.comparisons();
        let regular = |comparison: &&Comparison| comparison.is_regex();
        if forms.iter().any(regular) && !forms.iter().all(regular) {
            let problem = "Regular expressions can not be mixed with other comparisons.";
            return Err(invalid_filter(text, problem));
        }
        Ok(filter.simplify())
    }

    /// Replaces regular expressions that only list words, like `(a|b)`, by equalities, so that an
    /// index can serve them.
    fn simplify(self) -> Self {
        let each = |filters: Vec<Self>| filters.into_iter().map(Self::simplify).collect();
        match self {
            Self::All(filters) => Self::All(each(filters)),
            Self::Any(filters) => Self::Any(each(filters)),
            Self::Not(filter) => Self::Not(Box::new(filter.simplify())),
            Self::Compare(comparison) if comparison.operator == Operator::Matches => comparison
                .as_alternatives()
                .map_or(Self::Compare(comparison), Self::Any),
            Self::Compare(comparison) => Self::Compare(comparison),
        }
    }

    /// Returns all comparisons, at any depth.
    fn comparisons(&self) -> Vec<&Comparison> {
        match self {
            Self::All(filters) | Self::Any(filters) => {
                filters.iter().flat_map(Self::comparisons).collect()
            }
            Self::Not(filter) => filter.comparisons(),
            Self::Compare(comparison) => vec![comparison],
        }
    }

    /// Refuses unknown top-level fields and malformed regular expressions.
    fn check(&self, text: &str, fields: &[&str]) -> Result<(), Refusal> {
        match self {
            Self::All(filters) | Self::Any(filters) => filters
                .iter()
                .try_for_each(|filter| filter.check(text, fields)),
            Self::Not(filter) => filter.check(text, fields),
            Self::Compare(comparison) => {
                let top = comparison.path.split('.').next().unwrap_or_default();
                if !fields.contains(&top) {
                    let problem = format!("Unknown field '{}'.", comparison.path);
                    return Err(invalid_filter(text, &problem));
                }
                if comparison.is_regex() && comparison.regex().is_none() {
                    return Err(invalid_filter(text, "The regular expression is malformed."));
                }
                Ok(())
            }
        }
    }

    /// Returns whether a document passes.
    pub(crate) fn passes(&self, document: &Value) -> bool {
        match self {
            Self::All(filters) => filters.iter().all(|filter| filter.passes(document)),
            Self::Any(filters) => filters.iter().any(|filter| filter.passes(document)),
            Self::Not(filter) => !filter.passes(document),
            Self::Compare(comparison) => comparison.matches_document(document),
        }
    }

    /// Returns comparisons that must all hold, each as a list of alternatives of which one must
    /// hold.
    ///
    /// The list is not complete: negations and nested conjunctions are left out. It selects the
    /// index keys to look under; the filter itself is still evaluated.
    pub(crate) fn conjuncts(&self) -> Vec<Vec<&Comparison>> {
        match self {
            Self::All(filters) => filters.iter().flat_map(Self::conjuncts).collect(),
            Self::Compare(comparison) => vec![vec![comparison]],
            Self::Any(filters) => {
                let mut all = Vec::new();
                for filter in filters {
                    match &mut *filter.conjuncts() {
                        [alternatives] => all.append(alternatives),
                        _ => return Vec::new(),
                    }
                }
                vec![all]
            }
            Self::Not(_) => Vec::new(),
        }
    }
}

impl Comparison {
    /// Returns the equalities with each word of an expression like `(a|b)`, or `None` for any
    /// other expression.
    fn as_alternatives(&self) -> Option<Vec<Filter>> {
        let inner = self
            .value
            .strip_prefix('(')
            .and_then(|rest| rest.strip_suffix(')'));
        let words: Vec<_> = inner.unwrap_or(&self.value).split('|').collect();
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let is_word = |word: &&str| !word.is_empty() && word.chars().all(plain);
        words.iter().all(is_word).then(|| {
            let equal = |word: &str| {
                Filter::Compare(Self {
                    path: self.path.clone(),
                    operator: Operator::Equal,
                    value: word.to_owned(),
                    expression: Expression::default(),
                })
            };
            words.into_iter().map(equal).collect()
        })
    }

    /// Returns whether the value is a regular expression.
    fn is_regex(&self) -> bool {
        matches!(self.operator, Operator::Matches | Operator::MatchesNot)
    }

    /// Returns the value as a regular expression, compiled at the first call. `None` if it is malformed.
    fn regex(&self) -> Option<&Regex> {
        let compiled = self.expression.0.get_or_init(|| compile(&self.value));
        compiled.as_ref()
    }

    /// Returns whether the comparison holds for a document.
    fn matches_document(&self, document: &Value) -> bool {
        let found = lookup(document, &self.path);
        let any = |test: &dyn Fn(&Value) -> bool| found.iter().any(|value| test(value));
        match self.operator {
            Operator::Equal => any(&|value| equal(value, &self.value)),
            Operator::NotEqual => !any(&|value| equal(value, &self.value)),
            Operator::Less => any(&|value| compare(value, &self.value).is_some_and(|o| o.is_lt())),
            Operator::LessOrEqual => {
                any(&|value| compare(value, &self.value).is_some_and(|o| o.is_le()))
            }
            Operator::Greater => {
                any(&|value| compare(value, &self.value).is_some_and(|o| o.is_gt()))
            }
            Operator::GreaterOrEqual => {
                any(&|value| compare(value, &self.value).is_some_and(|o| o.is_ge()))
            }
            Operator::Has if self.value == "*" => !found.is_empty(),
            Operator::Has => any(&|value| match value.as_str() {
                Some(text) => text.contains(&*self.value),
                None => equal(value, &self.value),
            }),
            Operator::Matches | Operator::MatchesNot => {
                let matches = self
                    .regex()
                    .is_some_and(|regex| any(&|value| regex.is_match(&text_of(value))));
                matches == (self.operator == Operator::Matches)
            }
        }
    }
}

/// Returns all values under a path. Lists are searched element by element.
///
/// The name of a map entry may contain dots itself, as label keys of other clients do, so each
/// level first tries the whole remaining path.
fn lookup<'a>(document: &'a Value, path: &str) -> Vec<&'a Value> {
    match document {
        Value::Array(values) => values
            .iter()
            .flat_map(|value| lookup(value, path))
            .collect(),
        Value::Object(fields) => {
            if let Some(value) = fields.get(path) {
                return match value.as_array() {
                    Some(values) => values.iter().collect(),
                    None => vec![value],
                };
            }
            let Some((first, rest)) = path.split_once('.') else {
                return Vec::new();
            };
            fields
                .get(first)
                .map(|value| lookup(value, rest))
                .unwrap_or_default()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

/// Returns a value as text, without the quotation marks of JSON.
fn text_of(value: &Value) -> String {
    match value.as_str() {
        Some(text) => text.to_owned(),
        None => value.to_string(),
    }
}

/// Compares a value with the text of a filter. Only texts are compared by case.
fn equal(value: &Value, text: &str) -> bool {
    match value.as_str() {
        Some(value) => value == text,
        None => value.to_string().eq_ignore_ascii_case(text),
    }
}

/// Compares numbers by value, and texts by their characters.
fn compare(value: &Value, text: &str) -> Option<std::cmp::Ordering> {
    let own_text = text_of(value);
    match (own_text.parse::<f64>(), text.parse::<f64>()) {
        (Ok(one), Ok(other)) => one.partial_cmp(&other),
        _ => Some(own_text.as_str().cmp(text)),
    }
}

/// Compiles an expression that must match all of a text. Returns `None` if it is malformed or
/// larger than 1 MiB.
fn compile(pattern: &str) -> Option<Regex> {
    #[cfg(test)]
    tests::COMPILED.with(|compiled| compiled.set(compiled.get() + 1));
    let mut builder = regex_lite::RegexBuilder::new(&format!("^(?:{pattern})$"));
    builder.size_limit(1 << 20).build().ok()
}

/// Returns the refusal of a filter: 400 `invalid`.
fn invalid_filter(filter: &str, problem: &str) -> Refusal {
    let problem = format!("Invalid list filter expression. {problem}");
    Refusal::invalid("filter", filter, &problem)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    thread_local! {
        /// How many expressions this thread has compiled.
        pub(super) static COMPILED: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
    }

    #[test]
    fn expression_is_compiled_once_for_all_records() {
        let before = COMPILED.with(std::cell::Cell::get);
        let filter = Filter::read("name eq 'web-[0-9]+'", &FIELDS).unwrap();
        let passing =
            (0..100).filter(|number| filter.passes(&json!({ "name": format!("web-{number}") })));
        assert_eq!(passing.count(), 100);
        assert_eq!(COMPILED.with(std::cell::Cell::get) - before, 1);
    }

    const FIELDS: [&str; 6] = ["name", "id", "status", "labels", "disks", "size"];

    fn passes(filter: &str) -> bool {
        let document = json!({
            "name": "web-1",
            "id": "123",
            "status": "RUNNING",
            "labels": { "env": "prod", "a.b": "c" },
            "disks": [{ "boot": true, "gib": "10" }, { "boot": false, "gib": "20" }],
            "size": 7,
        });
        Filter::read(filter, &FIELDS).unwrap().passes(&document)
    }

    #[test]
    fn documented_filters_select_what_they_say() {
        for (filter, expected) in [
            ("name=web-1", true),
            ("name = \"web-1\"", true),
            ("name='web-1'", true),
            ("name != web-1", false),
            ("id=123", true),
            ("(name=web-1) (status=RUNNING)", true),
            ("(name=web-1) (status=TERMINATED)", false),
            ("name=x OR status=RUNNING", true),
            ("name=x AND status=RUNNING OR id=123", false),
            ("(name=x AND status=RUNNING) OR id=123", true),
            ("id=1 OR id=123 name=web-1", true),
            ("NOT name=x", true),
            ("-name=web-1", false),
            ("labels.env=prod", true),
            ("labels.env:*", true),
            ("labels.owner:*", false),
            ("NOT labels.owner:*", true),
            ("labels.a.b=c", true),
            ("name:eb", true),
            ("name:x", false),
            ("name eq web-[0-9]+", true),
            ("name eq web", false),
            ("name eq \"(web-1|web-2)\"", true),
            ("name eq \"(web|eb-1)\"", false),
            ("name eq \"web-1|x\"", true),
            ("name ne \"(web-1|web-2)\"", false),
            ("name ne web.*", false),
            ("name eq \".*\\bweb\\-1\\b.*\"", true),
            ("(name eq \"web.\\d\")(status eq RUNNING)", true),
            ("(name eq .*) (status eq RUN.*)", true),
            ("size>=7 size<8", true),
            ("size>7", false),
            ("disks.boot=true", true),
            ("disks.gib=20", true),
            ("disks.gib=30", false),
            ("labels.env!=prod", false),
            ("labels.owner!=x", true),
        ] {
            assert_eq!(passes(filter), expected, "{filter}");
        }
    }

    #[test]
    fn invalid_filter_is_refused() {
        for text in [
            "name",
            "name=",
            "=x",
            "name=x AND",
            "(name=x",
            "name=x)",
            "name eq [",
            "name=\"x",
            "nonsense=x",
            "OR",
            "name==x",
            "NOT",
            "name x y",
            "(name eq web.*) (id=123)",
        ] {
            let refusal = Filter::read(text, &FIELDS).unwrap_err();
            assert_eq!(
                (refusal.status, &*refusal.reason),
                (400, "invalid"),
                "{text}"
            );
        }
    }

    #[test]
    fn filters_yield_index_keys() {
        let shape = |text: &str| -> Vec<usize> {
            let filter = Filter::read(text, &FIELDS).unwrap();
            filter.conjuncts().iter().map(Vec::len).collect()
        };
        assert_eq!(shape("name=a id=1"), [1, 1]);
        assert_eq!(shape("(name=a OR name=b) id=1"), [2, 1]);
        assert_eq!(shape("name=a OR name=b id=1"), [2, 1]);
        assert_eq!(shape("name=a OR (id=1 size=2)"), [0; 0]);
        assert_eq!(shape("NOT name=a"), [0; 0]);
        assert_eq!(shape("name eq \"(a|b|c-1)\""), [3]);
        assert_eq!(shape("name eq \"(a|b.*)\""), [1]);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[a-z ()=!<>:*\"'.-]{0,40}|\\PC{0,20}") {
            let _ = Filter::read(&text, &FIELDS);
        }
    }
}
