//! What a plan destroys, in words that a tenant reads before agreeing to it.

use fleetwright_region::server::{ChangeMethod, Field, Plan};

/// What is lost by a plan, in one line; nothing if nothing is.
pub(crate) fn lost(plan: &Plan) -> Option<String> {
    let fields: Vec<_> = plan.destructive().map(|(field, _)| name(field)).collect();
    if fields.is_empty() {
        return None;
    }
    let what = if plan.has(ChangeMethod::Replace) {
        "everything on its root disk and its addresses are lost"
    } else {
        "everything on its root disk is lost"
    };
    Some(format!("{what}, by the change of {}", fields.join(", ")))
}

/// A field as a sentence has it.
pub(crate) fn name(field: Field) -> &'static str {
    match field {
        Field::Flavor => "flavor",
        Field::Image => "image",
        Field::Network => "network",
        Field::SecurityGroups => "security groups",
        Field::PublicIp => "public address",
        Field::SshAuthority => "SSH certificate authority",
        Field::UserData => "user data",
        Field::Tags => "tags",
    }
}
