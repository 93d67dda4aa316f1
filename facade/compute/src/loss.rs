//! What a plan destroys, as tenants read it before they consent.

use fleetwright_region::server::{ChangeMethod, Field, Plan};

/// Returns what a plan destroys, in one line, or `None`.
pub(crate) fn loss(plan: &Plan) -> Option<String> {
    let fields: Vec<_> = plan
        .destructive()
        .map(|(field, _)| field_name(field))
        .collect();
    if fields.is_empty() {
        return None;
    }
    let what = if plan.has(ChangeMethod::Replace) {
        "the data on its root disk and its addresses are lost"
    } else {
        "the data on its root disk is lost"
    };
    Some(format!("{what} by changing {}", fields.join(", ")))
}

/// The field's name in messages.
pub(crate) fn field_name(field: Field) -> &'static str {
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
