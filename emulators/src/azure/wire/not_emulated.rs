//! The refusal of an operation that the emulator does not have.
//!
//! Azure has it, or nobody does: a client must not take the answer for that of a missing resource.
//! So it has a status and a code of its own, 501 `NotEmulated`, and says what is emulated.

use super::route::{ROUTES, operations_of};
use crate::azure::error::Refusal;

/// Returns 501 `NotEmulated` for an operation of the resource manager, and 404
/// `MissingSubscription` for a path that no operation of Azure has.
pub(super) fn not_emulated(method: &str, segments: &[String]) -> Refusal {
    let known = ["subscriptions", "providers", "tenants", "metadata"];
    let first = segments.first().map_or("", String::as_str);
    if !known.iter().any(|known| known.eq_ignore_ascii_case(first)) {
        let message =
            "The request did not have a subscription or a valid tenant level resource provider.";
        return Refusal::new(404, "MissingSubscription", message);
    }
    let path = action(segments);
    let kind = resource_type(segments);
    let operations = operations_of(&kind);
    let emulated = if operations.is_empty() {
        format!("Types that are: {}", types().join(", "))
    } else {
        format!("Operations on {kind} that are: {}", operations.join(", "))
    };
    let message = format!("The operation '{method} {path}' is not emulated. {emulated}.");
    Refusal::new(501, "NotEmulated", message)
}

/// Returns the path without the names in it: what the operation is about.
fn action(segments: &[String]) -> String {
    let mut parts = Vec::new();
    let mut name = false;
    let mut provider = false;
    for segment in segments {
        if name {
            parts.push("{}");
            name = false;
        } else {
            parts.push(segment);
            // Behind a provider's name comes a type, which is followed by a name again.
            name = !provider && !segment.eq_ignore_ascii_case("providers");
        }
        provider = segment.eq_ignore_ascii_case("providers");
    }
    parts.join("/")
}

/// Returns the provider and the first type behind it, or the first type below the subscription.
fn resource_type(segments: &[String]) -> String {
    let is_providers = |segment: &String| segment.eq_ignore_ascii_case("providers");
    match segments.iter().position(is_providers) {
        Some(place) => {
            let after = segments.iter().skip(place + 1).take(2);
            after.map(String::as_str).collect::<Vec<_>>().join("/")
        }
        None => segments.get(2).cloned().unwrap_or_default(),
    }
}

/// Returns the types of resources that have operations.
fn types() -> Vec<&'static str> {
    let named = ROUTES.iter().filter_map(|(_, _, method, _, rest)| {
        let kind = rest.strip_suffix("/{}")?;
        (*method == "PUT" && !kind.contains("{}")).then_some(kind)
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(method: &str, path: &str) -> Refusal {
        let segments: Vec<_> = path.split('/').map(str::to_owned).collect();
        not_emulated(method, &segments)
    }

    #[test]
    fn names_the_operation_and_what_there_is() {
        let group = "subscriptions/s/resourceGroups/g/providers";
        let run = refusal(
            "POST",
            &format!("{group}/Microsoft.Compute/virtualMachines/vm/runCommand"),
        );
        assert_eq!((run.status, &*run.code), (501, "NotEmulated"));
        let expected = "'POST subscriptions/{}/resourceGroups/{}/providers/Microsoft.Compute/virtualMachines/{}/runCommand'";
        assert!(run.message.contains(expected), "{}", run.message);
        assert!(
            run.message.contains("VirtualMachines_Redeploy"),
            "{}",
            run.message
        );
        let dogs = refusal("GET", &format!("{group}/Contoso.Dogs/dogs/rex"));
        assert!(
            dogs.message.contains("Microsoft.Compute/disks"),
            "{}",
            dogs.message
        );
        let locks = refusal("GET", "subscriptions/s/locks");
        assert_eq!(locks.status, 501);
        assert_eq!(refusal("GET", "dogs").status, 404);
        assert_eq!(refusal("GET", "").status, 404);
    }
}
