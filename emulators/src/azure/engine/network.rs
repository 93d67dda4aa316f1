//! Virtual networks with their subnets, and network security groups with their rules.
//!
//! Owns the rules of address ranges and priorities, and the completion of both documents. Nothing
//! filters packets: rules are stored and returned.

use ipnet::Ipv4Net;
use serde_json::{Value, json};

use super::Engine;
use crate::azure::{
    catalog::same,
    error::Refusal,
    shapes::rules::default_rules,
    wire::id::{Id, Kind},
};

/// The priorities that a rule can have. Default rules have higher numbers.
const PRIORITIES: std::ops::RangeInclusive<i64> = 100..=4096;

impl Engine {
    /// Completes the document of a virtual network. Without `subnets` it keeps those that exist.
    ///
    /// # Errors
    ///
    /// 400 for an address space or a subnet that is not valid, 400 `InUseSubnetCannotBeDeleted` for
    /// a missing subnet that an interface uses, and those of the envelope.
    pub(crate) fn network_document(&self, id: &Id, body: &Value) -> Result<Value, Refusal> {
        let existing = self.document(id).map(|document| document.value);
        let mut document = self.document_envelope(id, body, existing.as_ref())?;
        let mut properties = body["properties"].clone();
        if !properties.is_object() {
            properties = json!({});
        }
        let space = properties["addressSpace"]["addressPrefixes"]
            .as_array()
            .cloned();
        let space = space.filter(|prefixes| !prefixes.is_empty());
        let Some(space) = space else {
            return Err(Refusal::missing("properties.addressSpace.addressPrefixes"));
        };
        let space: Vec<Ipv4Net> = space
            .iter()
            .map(|it| prefix(it, &id.name))
            .collect::<Result<_, _>>()?;
        let old = existing.as_ref().map(|it| &it["properties"]["subnets"]);
        if properties.get("subnets").is_none() {
            properties["subnets"] = old.cloned().unwrap_or_else(|| json!([]));
        }
        let subnets = properties["subnets"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let subnets: Vec<Value> = subnets
            .iter()
            .map(|subnet| self.subnet_document(id, subnet))
            .collect::<Result<_, _>>()?;
        check_ranges(&id.name, &space, &subnets)?;
        for subnet in &subnets {
            if let Some(existing) = &existing {
                self.check_range_unused(existing, subnet)?;
            }
        }
        for subnet in old.and_then(Value::as_array).into_iter().flatten() {
            let kept = subnets.iter().any(|it| same_name(it, subnet));
            if !kept {
                self.check_subnet_unused(subnet["id"].as_str().unwrap_or_default())?;
            }
        }
        properties["subnets"] = Value::Array(subnets);
        properties["provisioningState"] = json!("Succeeded");
        properties["resourceGuid"] = json!(Self::derived_guid(&id.key()));
        let defaults = json!({ "virtualNetworkPeerings": [], "enableDdosProtection": false });
        fill(&mut properties, &defaults);
        document["properties"] = properties;
        document["etag"] = json!(etag(&document));
        Ok(document)
    }

    /// Completes the document of a subnet of a virtual network.
    ///
    /// # Errors
    ///
    /// 400 without a name or a valid address prefix, 400 `InvalidResourceReference` for a network
    /// security group that does not exist.
    pub(crate) fn subnet_document(&self, network: &Id, body: &Value) -> Result<Value, Refusal> {
        let Some(name) = body["name"].as_str().filter(|name| !name.is_empty()) else {
            return Err(Refusal::missing("subnet.name"));
        };
        let mut properties = body["properties"].clone();
        // Newer versions of the API have a list with one prefix instead of the prefix.
        let first = properties["addressPrefixes"][0].clone();
        let given = &properties["addressPrefix"];
        let range = if given.is_null() { &first } else { given };
        if range.is_null() {
            return Err(Refusal::missing("subnet.properties.addressPrefix"));
        }
        let range = prefix(range, name)?;
        if properties["addressPrefix"].is_null() {
            properties["addressPrefix"] = json!(range.to_string());
        }
        if let Some(group) = properties["networkSecurityGroup"]["id"].as_str() {
            self.check_security_group_id(group)?;
            properties["networkSecurityGroup"] = json!({ "id": group });
        }
        if let Value::Object(members) = &mut properties {
            members.retain(|_, member| !member.is_null());
        }
        properties["provisioningState"] = json!("Succeeded");
        let defaults = json!({
            "privateEndpointNetworkPolicies": "Disabled", "privateLinkServiceNetworkPolicies": "Enabled",
            "delegations": [],
        });
        fill(&mut properties, &defaults);
        let mut document = json!({
            "name": name,
            "id": format!("{}/subnets/{name}", network.path()),
            "type": "Microsoft.Network/virtualNetworks/subnets",
            "properties": properties,
        });
        document["etag"] = json!(etag(&document));
        Ok(document)
    }

    /// Refuses the deletion of a subnet that an interface uses, with 400
    /// `InUseSubnetCannotBeDeleted`.
    pub(crate) fn check_subnet_unused(&self, subnet: &str) -> Result<(), Refusal> {
        let uses = |nic: &super::Nic| nic.addresses.iter().any(|it| same(&it.subnet, subnet));
        let Some((_, nic)) = self.nics.iter().find(|(_, nic)| uses(nic)) else {
            return Ok(());
        };
        let name = subnet.rsplit('/').next().unwrap_or_default();
        let message = format!(
            "Subnet {name} is in use by {}/ipConfigurations and cannot be deleted. In order to delete the subnet, delete \
             all the resources within the subnet.",
            nic.id.path()
        );
        Err(Refusal::client("InUseSubnetCannotBeDeleted", message))
    }

    /// Refuses another address range of a subnet that an interface uses, with 400
    /// `InUsePrefixCannotBeDeleted`. `network` is the document before the change.
    pub(crate) fn check_range_unused(
        &self,
        network: &Value,
        subnet: &Value,
    ) -> Result<(), Refusal> {
        let before = network["properties"]["subnets"]
            .as_array()
            .into_iter()
            .flatten();
        let Some(before) = before.into_iter().find(|it| same_name(it, subnet)) else {
            return Ok(());
        };
        let range = |subnet: &Value| subnet["properties"]["addressPrefix"].clone();
        let path = before["id"].as_str().unwrap_or_default();
        if range(before) == range(subnet) || self.check_subnet_unused(path).is_ok() {
            return Ok(());
        }
        let message = format!(
            "IpPrefix {} on Subnet {} has active allocations and cannot be deleted.",
            range(before),
            before["name"]
        );
        Err(Refusal::client(
            "InUsePrefixCannotBeDeleted",
            message.replace('"', ""),
        ))
    }

    /// Forgets the free private addresses of the subnets of a virtual network that no interface
    /// uses: their ranges may have changed.
    pub(crate) fn forget_pools(&mut self, network: &Id) {
        if network.kind != Kind::VirtualNetwork {
            return;
        }
        let start = format!("{}/subnets/", network.key());
        let pools = self
            .pools
            .keys()
            .filter(|subnet| subnet.starts_with(&start));
        let unused = pools.filter(|subnet| self.check_subnet_unused(subnet).is_ok());
        for subnet in unused.cloned().collect::<Vec<_>>() {
            self.pools.remove(&subnet);
        }
    }

    /// Completes the document of a network security group.
    ///
    /// # Errors
    ///
    /// 400 for a rule that is not valid, and those of the envelope.
    pub(crate) fn security_group_document(&self, id: &Id, body: &Value) -> Result<Value, Refusal> {
        let existing = self.document(id).map(|document| document.value);
        let mut document = self.document_envelope(id, body, existing.as_ref())?;
        let rules = body["properties"]["securityRules"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let rules: Vec<Value> = rules
            .iter()
            .map(|rule| rule_document(id, rule))
            .collect::<Result<_, _>>()?;
        check_priorities(&rules)?;
        document["properties"] = json!({
            "provisioningState": "Succeeded",
            "resourceGuid": Self::derived_guid(&id.key()),
            "securityRules": rules,
            "defaultSecurityRules": default_rules(&id.path()),
        });
        document["etag"] = json!(etag(&document));
        Ok(document)
    }

    /// Refuses the deletion of a network security group that an interface or a subnet refers to,
    /// with 400 `InUseNetworkSecurityGroupCannotBeDeleted`.
    pub(crate) fn check_security_group_unused(&self, id: &Id) -> Result<(), Refusal> {
        let path = id.path();
        let mut nics = self.nics.iter();
        let nic =
            nics.find(|(_, nic)| nic.group.as_deref().is_some_and(|group| same(group, &path)));
        let user = match nic {
            Some((_, nic)) => Some(nic.id.path()),
            None => self.subnet_with_group(&id.subscription, &path),
        };
        let Some(user) = user else { return Ok(()) };
        let message = format!(
            "Network security group {path} cannot be deleted because it is in use by the following resources: {user}. In \
             order to delete the Network security group, remove the association with the resource(s)."
        );
        Err(Refusal::client(
            "InUseNetworkSecurityGroupCannotBeDeleted",
            message,
        ))
    }

    /// Returns the id of a subnet that has this network security group.
    fn subnet_with_group(&self, subscription: &str, group: &str) -> Option<String> {
        let networks = self.documents_of(Kind::VirtualNetwork, subscription, None);
        networks.iter().find_map(|network| {
            let subnets = network.value["properties"]["subnets"].as_array()?;
            let has = |subnet: &&Value| {
                let own = subnet["properties"]["networkSecurityGroup"]["id"].as_str();
                own.is_some_and(|own| same(own, group))
            };
            subnets.iter().find(has)?["id"].as_str().map(str::to_owned)
        })
    }

    /// Refuses a network security group that does not exist, with 400 `InvalidResourceReference`.
    pub(crate) fn check_security_group_id(&self, path: &str) -> Result<(), Refusal> {
        match Id::read(Kind::SecurityGroup, path) {
            Ok(id) if self.has_document(&id) => Ok(()),
            Ok(_) | Err(_) => Err(Refusal::invalid_reference(path)),
        }
    }
}

/// Completes the document of a rule.
///
/// # Errors
///
/// 400 `InvalidParameter` without one of the required members, 400
/// `SecurityRuleInvalidPriority`.
pub(crate) fn rule_document(group: &Id, body: &Value) -> Result<Value, Refusal> {
    let Some(name) = body["name"].as_str().filter(|name| !name.is_empty()) else {
        return Err(Refusal::missing("securityRule.name"));
    };
    let mut properties = body["properties"].clone();
    let required = [
        ("protocol", &["Tcp", "Udp", "Icmp", "Esp", "Ah", "*"][..]),
        ("access", &["Allow", "Deny"]),
        ("direction", &["Inbound", "Outbound"]),
    ];
    for (member, choices) in required {
        let path = format!("securityRule.properties.{member}");
        let Some(given) = properties[member].as_str() else {
            return Err(Refusal::missing(&path));
        };
        let Some(choice) = choices.iter().find(|choice| same(choice, given)) else {
            let message = format!("The value '{given}' of parameter '{path}' is not allowed.");
            return Err(Refusal::invalid(&path, message));
        };
        properties[member] = json!(choice);
    }
    let priority = properties["priority"].as_i64();
    let Some(priority) = priority else {
        return Err(Refusal::missing("securityRule.properties.priority"));
    };
    if !PRIORITIES.contains(&priority) {
        let message = format!(
            "Security rule has invalid priority '{priority}'. The valid range is {} to {}.",
            PRIORITIES.start(),
            PRIORITIES.end()
        );
        return Err(Refusal::client("SecurityRuleInvalidPriority", message));
    }
    if let Value::Object(members) = &mut properties {
        members.retain(|_, member| !member.is_null());
    }
    properties["provisioningState"] = json!("Succeeded");
    let mut document = json!({
        "name": name,
        "id": format!("{}/securityRules/{name}", group.path()),
        "type": "Microsoft.Network/networkSecurityGroups/securityRules",
        "properties": properties,
    });
    document["etag"] = json!(etag(&document));
    Ok(document)
}

/// Refuses two rules of one direction with the same priority, with 400 `SecurityRuleConflict`.
pub(crate) fn check_priorities(rules: &[Value]) -> Result<(), Refusal> {
    let place = |rule: &Value| {
        let properties = &rule["properties"];
        (
            properties["direction"].to_string(),
            properties["priority"].as_i64(),
        )
    };
    for (number, rule) in rules.iter().enumerate() {
        let earlier = rules.iter().take(number);
        if let Some(other) = earlier
            .into_iter()
            .find(|other| place(other) == place(rule))
        {
            let message = format!(
                "Security rule {} conflicts with rule {}. Rules cannot have the same Priority and Direction.",
                rule["name"], other["name"]
            );
            return Err(Refusal::client(
                "SecurityRuleConflict",
                message.replace('"', ""),
            ));
        }
    }
    Ok(())
}

/// Refuses subnets outside the address space, with 400 `NetcfgSubnetRangeOutsideVnet`, and subnets
/// that overlap, with 400 `NetcfgSubnetRangesOverlap`.
pub(crate) fn check_ranges(
    network: &str,
    space: &[Ipv4Net],
    subnets: &[Value],
) -> Result<(), Refusal> {
    let mut ranges: Vec<Ipv4Net> = Vec::new();
    for subnet in subnets {
        let name = subnet["name"].as_str().unwrap_or_default();
        let range = prefix(&subnet["properties"]["addressPrefix"], name)?;
        if !space.iter().any(|it| it.contains(&range)) {
            let message = format!(
                "Subnet '{name}' is not valid because its IP address range is outside the IP address range of virtual \
                 network '{network}'."
            );
            return Err(Refusal::client("NetcfgSubnetRangeOutsideVnet", message));
        }
        let overlaps = |other: &Ipv4Net| other.contains(&range) || range.contains(other);
        if ranges.iter().any(overlaps) {
            let message = format!(
                "Subnet '{name}' is not valid because its IP address range overlaps with that of an existing subnet in \
                 virtual network '{network}'."
            );
            return Err(Refusal::client("NetcfgSubnetRangesOverlap", message));
        }
        ranges.push(range);
    }
    Ok(())
}

/// Parses an address range: `10.0.0.0/24`.
///
/// # Errors
///
/// 400 `NotSupported` for IPv6, 400 `InvalidAddressPrefixFormat` for anything else.
pub(crate) fn prefix(value: &Value, owner: &str) -> Result<Ipv4Net, Refusal> {
    let text = value.as_str().unwrap_or_default();
    if text.contains(':') {
        return Err(Refusal::unsupported("IPv6"));
    }
    let range = text.parse::<Ipv4Net>().ok().map(|range| range.trunc());
    range.ok_or_else(|| {
        let message = format!(
            "Address prefix {text} of resource {owner} is not formatted correctly. It should follow CIDR notation, for \
             example 10.0.0.0/24."
        );
        Refusal::client("InvalidAddressPrefixFormat", message)
    })
}

/// Refuses an invalid name of a document, with 400 `InvalidResourceName`.
pub(crate) fn check_document_name(id: &Id) -> Result<(), Refusal> {
    let plain = |c: char| c.is_alphanumeric() || "._-()".contains(c);
    let valid_end = id
        .name
        .ends_with(|c: char| c.is_alphanumeric() || "_-()".contains(c));
    if valid_end && id.name.chars().count() <= 90 && id.name.chars().all(plain) {
        return Ok(());
    }
    let message = format!(
        "Resource name {} is invalid. It can have up to 90 letters, digits, periods, underscores, hyphens and brackets, and \
         must not end with a period.",
        id.name
    );
    Err(Refusal::client("InvalidResourceName", message))
}

/// Whether two subnets or rules have the same name.
pub(crate) fn same_name(one: &Value, other: &Value) -> bool {
    let name = |value: &Value| value["name"].as_str().map(str::to_ascii_lowercase);
    name(one) == name(other)
}

/// Adds the members of `defaults` that an object does not have.
pub(crate) fn fill(value: &mut Value, defaults: &Value) {
    if let (Value::Object(members), Value::Object(defaults)) = (value, defaults) {
        for (name, default) in defaults {
            members.entry(name).or_insert_with(|| default.clone());
        }
    }
}

/// Returns the etag of a document, which changes with its content.
pub(crate) fn etag(document: &Value) -> String {
    format!("W/\"{}\"", Engine::derived_guid(&document.to_string()))
}
