//! Azure's clouds: their authorities, endpoints and scopes. Pure.
//!
//! Owns every host name of Microsoft's clouds.

/// One of Microsoft's clouds. Each has its own accounts.
///
/// ```
/// use fleetwright_azure::{AzureCloud, AzureCredentials, AzureOptions, ServicePrincipal};
///
/// let cloud = AzureCloud::China;
/// let principal = ServicePrincipal::new("tenant", "client").at(cloud.authority());
/// let credentials = AzureCredentials::client_secret(principal, "secret");
/// let options = AzureOptions::for_cloud(cloud);
/// assert_eq!(options.endpoint, "https://management.chinacloudapi.cn");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AzureCloud {
    /// The public cloud.
    #[default]
    Public,
    /// Azure in China, operated by 21Vianet.
    China,
    /// Azure for the government of the United States.
    UsGovernment,
}

impl AzureCloud {
    /// Every cloud.
    pub const ALL: [Self; 3] = [Self::Public, Self::China, Self::UsGovernment];

    /// Returns the URL of the authority, which issues tokens.
    pub const fn authority(self) -> &'static str {
        match self {
            Self::Public => "https://login.microsoftonline.com",
            Self::China => "https://login.chinacloudapi.cn",
            Self::UsGovernment => "https://login.microsoftonline.us",
        }
    }

    /// Returns the URL of the Resource Manager, which runs the machines.
    pub const fn endpoint(self) -> &'static str {
        match self {
            Self::Public => "https://management.azure.com",
            Self::China => "https://management.chinacloudapi.cn",
            Self::UsGovernment => "https://management.usgovcloudapi.net",
        }
    }

    /// Returns the scope that tokens for the Resource Manager are requested for.
    pub const fn scope(self) -> &'static str {
        match self {
            Self::Public => "https://management.azure.com/.default",
            Self::China => "https://management.chinacloudapi.cn/.default",
            Self::UsGovernment => "https://management.usgovcloudapi.net/.default",
        }
    }

    /// Returns the cloud that an authority belongs to, by its host. `None` for one that is not
    /// Microsoft's.
    pub(crate) fn of_authority(host: &str) -> Option<Self> {
        match host {
            "login.microsoftonline.com" | "login.microsoft.com" | "login.windows.net" => {
                Some(Self::Public)
            }
            "login.chinacloudapi.cn" | "login.partner.microsoftonline.cn" => Some(Self::China),
            "login.microsoftonline.us" => Some(Self::UsGovernment),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cloud_is_found_by_its_authority() {
        for cloud in AzureCloud::ALL {
            let host = cloud.authority().trim_start_matches("https://");
            assert_eq!(AzureCloud::of_authority(host), Some(cloud));
            assert_eq!(cloud.scope(), format!("{}/.default", cloud.endpoint()));
        }
        assert_eq!(AzureCloud::of_authority("login.example.net"), None);
    }
}
