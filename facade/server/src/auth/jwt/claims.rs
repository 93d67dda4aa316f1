//! What claims mean: who the actor is, and which roles the token brings.

use fleetwright_identity::Binding;
use serde_json::{Map, Value};

/// Where a claim is: its name, or the names of the objects around it and its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClaimPath(pub(crate) Vec<String>);

impl ClaimPath {
    /// The claim's value. An e-mail address counts only if the provider says that it is verified: who chooses an address can name anybody.
    fn find<'c>(&self, claims: &'c Map<String, Value>) -> Option<&'c Value> {
        let is_verified = claims.get("email_verified") == Some(&Value::Bool(true));
        if self.is("email") && !is_verified {
            return None;
        }
        let (first, rest) = self.0.split_first()?;
        let found = claims.get(first)?;
        rest.iter().try_fold(found, |value, name| value.get(name))
    }

    fn is(&self, name: &str) -> bool {
        self.0.len() == 1 && self.0.iter().all(|part| part == name)
    }
}

/// What a configuration says about claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClaimMapping {
    pub(crate) actor: ClaimPath,
    /// What comes before the actor, so that a token does not name an actor of the file of tokens.
    pub(crate) prefix: String,
    pub(crate) rules: Vec<RoleRule>,
}

/// A role for tokens whose claim has a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RoleRule {
    pub(crate) claim: ClaimPath,
    pub(crate) value: String,
    pub(crate) binding: Binding,
}

impl ClaimMapping {
    /// The name of the actor.
    pub(super) fn actor(&self, claims: &Map<String, Value>) -> Option<String> {
        let name = self.actor.find(claims)?.as_str()?;
        (!name.is_empty()).then(|| format!("{}{name}", self.prefix))
    }

    /// The roles of a token: those of all rules that apply.
    pub(super) fn roles(&self, claims: &Map<String, Value>) -> Vec<Binding> {
        let has = |rule: &&RoleRule| {
            let found = rule.claim.find(claims);
            found.is_some_and(|found| has_value(found, &rule.value))
        };
        let rules = self.rules.iter().filter(has);
        rules.map(|rule| rule.binding.clone()).collect()
    }
}

/// Whether a claim is a text, or has it as one of its values.
fn has_value(claim: &Value, wanted: &str) -> bool {
    let is_wanted = |value: &Value| value.as_str() == Some(wanted);
    let values = claim.as_array();
    is_wanted(claim) || values.is_some_and(|values| values.iter().any(is_wanted))
}
