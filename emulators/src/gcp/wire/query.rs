//! The query of a request: every parameter is known to its method or refused.

use std::{collections::BTreeMap, str::FromStr};

use uuid::Uuid;

use super::{method::Method, path};
use crate::gcp::error::Refusal;

/// Parameters of every method that do not change the meaning of the response. They are accepted
/// and ignored.
const IGNORED: [&str; 11] = [
    "$.xgafv",
    "$apiVersion",
    "$prettyPrint",
    "access_token",
    "key",
    "oauth_token",
    "prettyPrint",
    "quotaUser",
    "uploadType",
    "upload_protocol",
    "userIp",
];

/// The parameters of a request. An empty parameter counts as missing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(BTreeMap<String, String>);

impl Query {
    /// Parses the query of a method.
    ///
    /// # Errors
    ///
    /// 400 `badRequest` for an unknown parameter, 400 `notSupported` for another format than JSON
    /// and for partial responses.
    pub(crate) fn read(method: Method, text: &str) -> Result<Self, Refusal> {
        let mut parameters = BTreeMap::new();
        for (name, value) in form_urlencoded::parse(text.as_bytes()) {
            match &*name {
                "alt" | "$alt" if matches!(&*value, "" | "json") => {}
                "fields" if matches!(&*value, "" | "*") => {}
                "alt" | "$alt" | "fields" | "callback" => {
                    return Err(Refusal::not_emulated(&format!("The parameter '{name}'")));
                }
                name if IGNORED.contains(&name) => {}
                name if path::parameters(method).contains(&name) => {
                    parameters.insert(name.to_owned(), value.into_owned());
                }
                // libcloud leaves it in the queries that follow a list, and Compute Engine takes
                // it.
                "maxResults" => {}
                name => {
                    return Err(Refusal::payload(format!(
                        "Invalid JSON payload received. Unknown name \"{name}\": Cannot bind query parameter. Field \
                         '{name}' could not be found in request message."
                    )));
                }
            }
        }
        parameters.retain(|_, value| !value.is_empty());
        Ok(Self(parameters))
    }

    /// Returns a parameter.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Returns a flag; false if it is missing.
    ///
    /// # Errors
    ///
    /// 400 `badRequest` for anything but true or false, in any case.
    pub(crate) fn flag(&self, name: &str) -> Result<bool, Refusal> {
        Ok(self.optional_flag(name)?.unwrap_or(false))
    }

    /// Returns a flag whose absence has a meaning of its own.
    ///
    /// # Errors
    ///
    /// 400 `badRequest` for anything but true or false, in any case.
    pub(crate) fn optional_flag(&self, name: &str) -> Result<Option<bool>, Refusal> {
        let read = |text: &str| {
            // gcloud writes True.
            let word = text.to_ascii_lowercase();
            word.parse()
                .map_err(|_| invalid_parameter(name, "TYPE_BOOL", text))
        };
        self.text(name).map(read).transpose()
    }

    /// Returns a number.
    ///
    /// # Errors
    ///
    /// 400 `badRequest` for a text that is not a number of this type.
    pub(crate) fn number<T: FromStr>(&self, name: &str) -> Result<Option<T>, Refusal> {
        let read = |text: &str| {
            text.parse()
                .map_err(|_| invalid_parameter(name, "TYPE_INT64", text))
        };
        self.text(name).map(read).transpose()
    }

    /// Returns the request id, which identifies a repeated request.
    ///
    /// # Errors
    ///
    /// 400 `invalid` unless it is a UUID with dashes that is not zero.
    pub(crate) fn request_id(&self) -> Result<Option<Uuid>, Refusal> {
        let Some(text) = self.text("requestId") else {
            return Ok(None);
        };
        match Uuid::try_parse(text) {
            Ok(id) if !id.is_nil() && text.len() == 36 => Ok(Some(id)),
            Ok(_) | Err(_) => {
                let problem = "Must be a valid UUID that is not zero.";
                Err(Refusal::invalid("requestId", text, problem))
            }
        }
    }

    /// Returns all parameters, for the call record.
    pub(crate) fn recorded_parameters(&self) -> BTreeMap<String, String> {
        self.0.clone()
    }
}

/// Returns the refusal of a parameter of a wrong type: 400 `badRequest`.
fn invalid_parameter(name: &str, kind: &str, value: &str) -> Refusal {
    Refusal::payload(format!("Invalid value at '{name}' ({kind}), \"{value}\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Query, Refusal> {
        Query::read(Method::InstancesStop, text)
    }

    #[test]
    fn client_additions_are_accepted_and_others_refused() {
        let query = read("alt=json&$alt=json&prettyPrint=false&requestId=&discardLocalSsd=true");
        let query = query.unwrap();
        assert_eq!(query.request_id(), Ok(None));
        assert_eq!(query.flag("discardLocalSsd"), Ok(true));
        assert_eq!(query.flag("noGracefulShutdown"), Ok(false));
        for text in [
            "alt=proto",
            "fields=id",
            "callback=x",
            "filter=a%3Db",
            "nonsense=1",
        ] {
            assert_eq!(read(text).unwrap_err().status, 400, "{text}");
        }
        let odd = read("discardLocalSsd=yes").unwrap();
        assert_eq!(odd.flag("discardLocalSsd").unwrap_err().status, 400);
    }

    #[test]
    fn request_id_is_a_uuid() {
        let id = "11111111-1111-4111-8111-111111111111";
        assert!(
            read(&format!("requestId={id}"))
                .unwrap()
                .request_id()
                .unwrap()
                .is_some()
        );
        for text in [
            "1",
            "00000000-0000-0000-0000-000000000000",
            &id.replace('-', ""),
        ] {
            let query = read(&format!("requestId={text}")).unwrap();
            assert_eq!(query.request_id().unwrap_err().reason, "invalid", "{text}");
        }
    }
}
