//! The parameters of a request: flat names such as `Filter.1.Value.2`, parsed as lists and groups.
//!
//! Parameters that an action does not read are refused, unless they are at the default that EC2 has without them: the
//! emulator honours or refuses a parameter, and never ignores one.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    str::FromStr,
};

use uuid::Uuid;

use super::{
    action::Action,
    known::{self, Parameter},
};
use crate::ec2::error::Refusal;

/// The maximum number of parameters of one request.
const MAX_PARAMETERS: usize = 20_000;

/// Parameters of the protocol, which no action reads.
const PROTOCOL: [&str; 15] = [
    "Action",
    "Version",
    "AWSAccessKeyId",
    "Signature",
    "SignatureMethod",
    "SignatureVersion",
    "Timestamp",
    "SecurityToken",
    "X-Amz-Algorithm",
    "X-Amz-Credential",
    "X-Amz-Date",
    "X-Amz-Expires",
    "X-Amz-Security-Token",
    "X-Amz-SignedHeaders",
    "X-Amz-Signature",
];

/// The parameters of a request, with a mark on those that were read.
#[derive(Debug, Default)]
pub struct Params {
    /// All parameters by name.
    values: BTreeMap<String, String>,
    /// The names of those that were read, and of those of the protocol.
    read: RefCell<BTreeSet<String>>,
}

impl Params {
    /// Parses the query and the form. If both have a parameter, the form wins.
    ///
    /// # Errors
    ///
    /// `InvalidCharacter` for a character that XML cannot contain, `MalformedQueryString` for too
    /// many parameters.
    pub(crate) fn parse(query: &str, form: &[u8]) -> Result<Self, Refusal> {
        let mut values = BTreeMap::new();
        for source in [query.as_bytes(), form] {
            for (name, value) in form_urlencoded::parse(source) {
                if !name.chars().chain(value.chars()).all(is_xml) {
                    let message = "The request contains a character that is not valid.";
                    return Err(Refusal::client("InvalidCharacter", message));
                }
                values.insert(name.into_owned(), value.into_owned());
            }
        }
        if values.len() > MAX_PARAMETERS {
            let message = format!("A request has at most {MAX_PARAMETERS} parameters.");
            return Err(Refusal::client("MalformedQueryString", message));
        }
        let read = RefCell::new(PROTOCOL.map(str::to_owned).into());
        Ok(Self { values, read })
    }

    /// Returns a value without marking it as read.
    pub(crate) fn peek(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// Returns the number of values under a numbered name.
    pub(crate) fn count(&self, name: &str) -> u32 {
        u32::try_from(self.root().numbers(name).len()).unwrap_or(u32::MAX)
    }

    /// Returns all parameters for an action to read.
    pub(crate) fn root(&self) -> Scope<'_> {
        Scope {
            params: self,
            prefix: String::new(),
        }
    }

    /// Refuses parameters that were not read, except those that EC2 has and that are at their default.
    ///
    /// # Errors
    ///
    /// `UnsupportedOperation` for a parameter that EC2 has and the emulator has not, `UnknownParameter` for one that EC2 does
    /// not have, each with the first name.
    pub(crate) fn finish(&self, action: Action) -> Result<(), Refusal> {
        let read = self.read.borrow();
        let unread = self.values.iter().filter(|(name, _)| !read.contains(*name));
        for (name, value) in unread {
            match known::parameter(action, name, value) {
                Parameter::Default => {}
                Parameter::NotEmulated => {
                    return Err(Refusal::unsupported(format!(
                        "The parameter {name} of {} with the value '{value}' is not emulated. The emulator accepts it \
                         only at its default.",
                        action.name()
                    )));
                }
                Parameter::Unknown => {
                    let message = format!("The parameter {name} is not recognized");
                    return Err(Refusal::client("UnknownParameter", message));
                }
            }
        }
        Ok(())
    }

    /// Returns a digest of the parameters, to compare two requests with the same client token.
    pub(crate) fn digest(&self, except: &[&str]) -> Uuid {
        let mut text = String::new();
        for (name, value) in &self.values {
            if !PROTOCOL.contains(&name.as_str()) && !except.contains(&name.as_str()) {
                text.push_str(&format!("{}:{name}{}:{value}", name.len(), value.len()));
            }
        }
        Uuid::new_v5(&Uuid::NAMESPACE_OID, text.as_bytes())
    }

    /// Returns all parameters except secrets, for the call record.
    pub(crate) fn recorded_parameters(&self) -> BTreeMap<String, String> {
        let is_recorded = |name: &String| !PROTOCOL.contains(&name.as_str());
        let recorded = self.values.iter().filter(|(name, _)| is_recorded(name));
        recorded
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }
}

/// Whether XML can contain a character. The replacement character of form decoding is excluded.
fn is_xml(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffc}' | '\u{10000}'..)
}

/// The parameters under a prefix.
#[derive(Debug)]
pub(crate) struct Scope<'a> {
    /// The parameters of the request.
    params: &'a Params,
    /// The prefix without its last dot; empty for all parameters.
    prefix: String,
}

impl<'a> Scope<'a> {
    /// Returns the name of a parameter with the prefix.
    fn full_name(&self, name: &str) -> String {
        if self.prefix.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.prefix)
        }
    }

    /// Returns a value, if present, and marks it as read.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        let full_name = self.full_name(name);
        let value = self.params.values.get(&full_name).cloned();
        if value.is_some() {
            self.params.read.borrow_mut().insert(full_name);
        }
        value
    }

    /// Returns a value that must be present and not empty.
    ///
    /// # Errors
    ///
    /// `MissingParameter`
    pub(crate) fn required(&self, name: &str) -> Result<String, Refusal> {
        let value = self.text(name).filter(|value| !value.is_empty());
        value.ok_or_else(|| Refusal::missing(&self.full_name(name)))
    }

    /// Returns a boolean, if present.
    ///
    /// # Errors
    ///
    /// `InvalidParameterValue` for anything but true, false, 1 or 0, in any case.
    pub(crate) fn flag(&self, name: &str) -> Result<Option<bool>, Refusal> {
        let Some(value) = self.text(name) else {
            return Ok(None);
        };
        match value.to_ascii_lowercase().as_str() {
            "true" | "1" => Ok(Some(true)),
            "false" | "0" => Ok(Some(false)),
            _ => Err(self.invalid(name, &value, "Expected 'true' or 'false'.")),
        }
    }

    /// Returns a number, if present.
    ///
    /// # Errors
    ///
    /// `InvalidParameterValue` for a text that is not a number of this type.
    pub(crate) fn number<T: FromStr>(&self, name: &str) -> Result<Option<T>, Refusal> {
        let Some(value) = self.text(name) else {
            return Ok(None);
        };
        let number = value
            .parse()
            .map_err(|_| self.invalid(name, &value, "Expected an integer."))?;
        Ok(Some(number))
    }

    /// Returns the value that belongs to one of several names, if present.
    ///
    /// # Errors
    ///
    /// `InvalidParameterValue` for any other word.
    pub(crate) fn choice<T: Copy>(
        &self,
        name: &str,
        choices: &[(&str, T)],
    ) -> Result<Option<T>, Refusal> {
        let Some(value) = self.text(name) else {
            return Ok(None);
        };
        let choice = choices.iter().find(|(word, _)| *word == value);
        let names: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        let problem = format!("Expected one of: {}.", names.join(", "));
        choice
            .map(|(_, choice)| Some(*choice))
            .ok_or_else(|| self.invalid(name, &value, &problem))
    }

    /// Returns the values `name.1`, `name.2` and so on.
    pub(crate) fn list(&self, name: &str) -> Vec<String> {
        let numbered = |number: u32| self.text(&format!("{name}.{number}"));
        self.numbers(name)
            .into_iter()
            .filter_map(numbered)
            .collect()
    }

    /// Returns the groups `name.1.…`, `name.2.…` and so on.
    pub(crate) fn groups(&self, name: &str) -> Vec<Self> {
        let numbered = |number: u32| self.scope(&format!("{name}.{number}"));
        self.numbers(name).into_iter().map(numbered).collect()
    }

    /// Returns the group `name.…`.
    pub(crate) fn scope(&self, name: &str) -> Self {
        Self {
            params: self.params,
            prefix: self.full_name(name),
        }
    }

    /// Whether there is any parameter under this prefix.
    pub(crate) fn is_present(&self) -> bool {
        let prefix = format!("{}.", self.prefix);
        let next = self.params.values.range(prefix.clone()..).next();
        next.is_some_and(|(name, _)| name.starts_with(&prefix))
    }

    /// Creates the refusal of a value: `InvalidParameterValue` with the parameter's full name.
    pub(crate) fn invalid(&self, name: &str, value: &str, problem: &str) -> Refusal {
        let full_name = self.full_name(name);
        Refusal::invalid(format!(
            "Value ({value}) for parameter {full_name} is invalid. {problem}"
        ))
    }

    /// Returns the numbers after `name`, in order.
    fn numbers(&self, name: &str) -> BTreeSet<u32> {
        let prefix = format!("{}.", self.full_name(name));
        let names = self
            .params
            .values
            .range(prefix.clone()..)
            .map(|(name, _)| name);
        names
            .map_while(|name| name.strip_prefix(prefix.as_str()))
            .filter_map(|rest| {
                let digits = rest.split('.').next().unwrap_or_default();
                // `01` and `+1` are not numbers here: parsed as 1 they would stay unread.
                let number: u32 = digits.parse().ok()?;
                (number.to_string() == digits).then_some(number)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(text: &str) -> Params {
        Params::parse("", text.as_bytes()).unwrap()
    }

    #[test]
    fn lists_and_groups_are_read_in_the_order_of_their_numbers() {
        let given = params("Id.2=b&Id.10=c&Id.1=a&F.1.Name=x&F.1.Value.1=1&F.2.Name=y&Set.On=true");
        let root = given.root();
        assert_eq!(root.list("Id"), ["a", "b", "c"]);
        let groups = root.groups("F");
        assert_eq!(groups.len(), 2);
        assert_eq!(groups[0].text("Name").as_deref(), Some("x"));
        assert_eq!(groups[0].list("Value"), ["1"]);
        assert_eq!(
            given.finish(Action::DescribeTags).unwrap_err().code,
            "UnknownParameter"
        );
        assert_eq!(groups[1].text("Name").as_deref(), Some("y"));
        assert!(root.scope("Set").is_present() && !root.scope("Se").is_present());
        assert_eq!(root.scope("Set").flag("On"), Ok(Some(true)));
        assert_eq!(given.finish(Action::DescribeTags), Ok(()));
    }

    #[test]
    fn values_are_parsed_or_refused() {
        let given = params("A=1&B=x&C=false&Z=&Id.01=a");
        let root = given.root();
        assert_eq!(root.number::<u32>("A"), Ok(Some(1)));
        assert_eq!(
            root.number::<u32>("B").unwrap_err().code,
            "InvalidParameterValue"
        );
        assert_eq!(root.flag("C"), Ok(Some(false)));
        assert_eq!(root.flag("A"), Ok(Some(true)));
        assert_eq!(root.flag("B").unwrap_err().code, "InvalidParameterValue");
        assert_eq!(root.required("Z").unwrap_err().code, "MissingParameter");
        assert_eq!(root.choice("B", &[("x", 7)]), Ok(Some(7)));
        assert_eq!(
            root.choice("A", &[("x", 7)]).unwrap_err().code,
            "InvalidParameterValue"
        );
        assert!(root.list("Id").is_empty());
        assert_eq!(
            given.finish(Action::DescribeTags).unwrap_err().message,
            "The parameter Id.01 is not recognized"
        );
    }

    #[test]
    fn characters_outside_xml_are_refused() {
        for invalid in ["A=%00", "A=%FF", "%01=a", "A=%EF%BF%BF"] {
            assert_eq!(
                Params::parse("", invalid.as_bytes()).unwrap_err().code,
                "InvalidCharacter",
                "{invalid}"
            );
        }
        assert_eq!(params("A=%F0%9F%98%80%0A").peek("A"), Some("😀\n"));
        assert_eq!(Params::parse("A=1", b"A=2").unwrap().peek("A"), Some("2"));
    }

    #[test]
    fn digest_covers_the_action_parameters() {
        let digest = |text: &str| params(text).digest(&["ClientToken"]);
        assert_eq!(
            digest("A=1&B=2&ClientToken=x"),
            digest("B=2&A=1&X-Amz-Date=now&X-Amz-Security-Token=s&ClientToken=y")
        );
        assert_ne!(digest("A=1&B=2"), digest("A=1&B=3"));
        assert_ne!(digest("A=1B"), digest("A=1&B="));
    }
}
