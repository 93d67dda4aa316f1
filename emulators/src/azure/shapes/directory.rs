//! What a client reads before it creates anything: subscriptions, tenants, providers, images of the
//! marketplace, and the endpoints of the cloud.

use serde_json::{Value, json};

use crate::azure::{catalog::MarketplaceImage, knobs::Knobs, wire::id::Kind};

/// The id of the only tenant.
pub(crate) const TENANT: &str = "11111111-1111-1111-1111-111111111111";

/// The subscription that is listed if the knobs name none. Every other one exists too.
pub(crate) const SUBSCRIPTION: &str = "00000000-0000-0000-0000-000000000000";

/// The providers whose types the emulator has.
const PROVIDERS: [&str; 3] = [
    "Microsoft.Compute",
    "Microsoft.Network",
    "Microsoft.Resources",
];

/// Returns the document of a subscription.
pub(crate) fn subscription(id: &str) -> Value {
    json!({
        "id": format!("/subscriptions/{id}"),
        "subscriptionId": id,
        "tenantId": TENANT,
        "displayName": "emulated",
        "state": "Enabled",
        "authorizationSource": "RoleBased",
        "subscriptionPolicies": {
            "locationPlacementId": "Public_2014-09-01",
            "quotaId": "PayAsYouGo_2014-09-01",
            "spendingLimit": "Off",
        },
        "managedByTenants": [],
    })
}

/// Returns the document of the only tenant.
pub(crate) fn tenant() -> Value {
    json!({
        "id": format!("/tenants/{TENANT}"),
        "tenantId": TENANT,
        "tenantCategory": "Home",
        "displayName": "emulated",
        "defaultDomain": "emulated.example.com",
        "domains": ["emulated.example.com"],
        "tenantType": "AAD",
        "countryCode": "US",
    })
}

/// Returns the documents of all resource providers.
pub(crate) fn providers(subscription: &str, knobs: &Knobs) -> Vec<Value> {
    let known = PROVIDERS.iter();
    known
        .filter_map(|name| provider(subscription, name, knobs))
        .collect()
}

/// Returns the document of a resource provider, or `None` for an unknown one. It lists only types
/// that the emulator supports.
pub(crate) fn provider(subscription: &str, name: &str, knobs: &Knobs) -> Option<Value> {
    let name = PROVIDERS
        .iter()
        .find(|known| known.eq_ignore_ascii_case(name))?;
    let places: Vec<_> = knobs.locations.iter().map(|it| &it.name).collect();
    let kinds = Kind::ALL
        .into_iter()
        .filter(|kind| kind.provider() == *name);
    let types = kinds.map(|kind| {
        let kind = kind.name().rsplit('/').next();
        json!({ "resourceType": kind, "locations": places, "apiVersions": ["2024-11-01"] })
    });
    Some(json!({
        "id": format!("/subscriptions/{subscription}/providers/{name}"),
        "namespace": name,
        "registrationState": "Registered",
        "resourceTypes": types.collect::<Vec<_>>(),
    }))
}

/// Returns an entry of a list of publishers, offers, SKUs or versions. `path` is the id's part
/// behind the location.
pub(crate) fn image_entry(subscription: &str, location: &str, path: &str) -> Value {
    let id = format!(
        "/Subscriptions/{subscription}/Providers/Microsoft.Compute/Locations/{location}/Publishers/{path}"
    );
    json!({
        "id": id,
        "name": path.rsplit('/').next(),
        "location": location,
    })
}

/// Returns the document of a version of an image. `entry` is its entry of the list.
pub(crate) fn image_version(mut entry: Value, image: &MarketplaceImage) -> Value {
    entry["properties"] = json!({
        "architecture": image.architecture,
        "hyperVGeneration": "V2",
        "osDiskImage": { "operatingSystem": image.os_type },
        "dataDiskImages": [],
        "automaticOSUpgradeProperties": { "automaticOSUpgradeSupported": false },
        "features": [],
    });
    entry
}

/// Returns the endpoints of the cloud: the emulator is the resource manager, and nothing else.
///
/// The form depends on the version of the API, as azure-cli (2019-05-01, a list) and go-azure-sdk
/// (2022-09-01, one object) read it.
pub(crate) fn endpoints(origin: &str, version: &str) -> Value {
    let login = "https://login.microsoftonline.com/";
    let audiences = [
        "https://management.core.windows.net/",
        "https://management.azure.com/",
    ];
    if version < "2019" {
        return json!({
            "galleryEndpoint": "",
            "graphEndpoint": "https://graph.windows.net/",
            "portalEndpoint": "https://portal.azure.com/",
            "authentication": { "loginEndpoint": login, "audiences": audiences },
        });
    }
    let cloud = json!({
        "name": "AzureCloud",
        "portal": "https://portal.azure.com",
        "authentication": {
            "loginEndpoint": login, "audiences": audiences, "tenant": "common", "identityProvider": "AAD",
        },
        "resourceManager": format!("{origin}/"),
        "graph": "https://graph.windows.net/",
        "graphAudience": "https://graph.windows.net/",
        "microsoftGraphResourceId": "https://graph.microsoft.com/",
        "suffixes": {
            "storage": "core.windows.net", "keyVaultDns": "vault.azure.net",
            "sqlServerHostname": "database.windows.net", "acrLoginServer": "azurecr.io",
        },
    });
    if version < "2022" {
        json!([cloud])
    } else {
        cloud
    }
}
