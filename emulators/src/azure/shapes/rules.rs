//! The rules that every network security group has.
//!
//! Microsoft Learn, "Network security groups": default security rules.

use serde_json::{Value, json};

/// Returns the default rules of the network security group with this id.
pub(crate) fn default_rules(group: &str) -> Vec<Value> {
    let (any, net, balancer) = ("*", "VirtualNetwork", "AzureLoadBalancer");
    [
        ("AllowVnetInBound", 65000, "Inbound", "Allow", net, net),
        (
            "AllowAzureLoadBalancerInBound",
            65001,
            "Inbound",
            "Allow",
            balancer,
            any,
        ),
        ("DenyAllInBound", 65500, "Inbound", "Deny", any, any),
        ("AllowVnetOutBound", 65000, "Outbound", "Allow", net, net),
        (
            "AllowInternetOutBound",
            65001,
            "Outbound",
            "Allow",
            any,
            "Internet",
        ),
        ("DenyAllOutBound", 65500, "Outbound", "Deny", any, any),
    ]
    .into_iter()
    .map(|(name, priority, direction, access, source, destination)| {
        json!({
            "name": name,
            "id": format!("{group}/defaultSecurityRules/{name}"),
            "type": "Microsoft.Network/networkSecurityGroups/defaultSecurityRules",
            "properties": {
                "provisioningState": "Succeeded",
                "protocol": any,
                "sourcePortRange": any,
                "destinationPortRange": any,
                "sourceAddressPrefix": source,
                "destinationAddressPrefix": destination,
                "access": access,
                "priority": priority,
                "direction": direction,
            },
        })
    })
    .collect()
}
