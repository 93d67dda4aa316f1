//! Every operation of the service: its id, method and address in the OpenAPI document. A test compares this list with the document.

use reqwest::Method;

/// One operation of the service.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Operation {
    /// Its id in the OpenAPI document.
    pub id: &'static str,
    /// Its method, in capitals.
    pub method: &'static str,
    /// Its address, with the names of variable parts in braces.
    pub path: &'static str,
}

impl Operation {
    const fn new(id: &'static str, method: &'static str, path: &'static str) -> Self {
        Self { id, method, path }
    }

    /// Whether a request that may have arrived can be sent again: it reads, or has an idempotency key.
    pub(crate) fn can_repeat(&self) -> bool {
        self.method == "GET" || self.has_key()
    }

    /// Whether the client sends an idempotency key with it.
    pub(crate) fn has_key(&self) -> bool {
        self.method == "POST"
    }

    pub(crate) fn http_method(&self) -> Method {
        match self.method {
            "POST" => Method::POST,
            "PUT" => Method::PUT,
            "DELETE" => Method::DELETE,
            _ => Method::GET,
        }
    }
}

pub(crate) const LIST_REGIONS: Operation = Operation::new(
    "listRegions",
    "GET",
    "/api/v1/organizations/{organizationId}/regions",
);
pub(crate) const LIST_FLAVORS: Operation = Operation::new(
    "listFlavors",
    "GET",
    "/api/v1/organizations/{organizationId}/regions/{regionId}/flavors",
);
pub(crate) const LIST_IMAGES: Operation = Operation::new(
    "listImages",
    "GET",
    "/api/v1/organizations/{organizationId}/regions/{regionId}/images",
);
pub(crate) const LIST_AUDIT_LOG: Operation =
    Operation::new("listAuditLog", "GET", "/api/v2/auditlog");
pub(crate) const READ_CALLER: Operation = Operation::new("readCaller", "GET", "/api/v2/caller");
pub(crate) const READ_IMAGE: Operation =
    Operation::new("readImage", "GET", "/api/v2/images/{imageId}");
pub(crate) const DELETE_IMAGE: Operation =
    Operation::new("deleteImage", "DELETE", "/api/v2/images/{imageId}");
pub(crate) const SHARE_IMAGE: Operation =
    Operation::new("shareImage", "POST", "/api/v2/images/{imageId}/share");
pub(crate) const LIST_INSTANCES: Operation =
    Operation::new("listInstances", "GET", "/api/v2/instances");
pub(crate) const CREATE_INSTANCE: Operation =
    Operation::new("createInstance", "POST", "/api/v2/instances");
pub(crate) const READ_INSTANCE: Operation =
    Operation::new("readInstance", "GET", "/api/v2/instances/{instanceId}");
pub(crate) const UPDATE_INSTANCE: Operation =
    Operation::new("updateInstance", "PUT", "/api/v2/instances/{instanceId}");
pub(crate) const DELETE_INSTANCE: Operation =
    Operation::new("deleteInstance", "DELETE", "/api/v2/instances/{instanceId}");
pub(crate) const READ_INSTANCE_CONSOLE: Operation = Operation::new(
    "readInstanceConsole",
    "GET",
    "/api/v2/instances/{instanceId}/consoleoutput",
);
pub(crate) const OPEN_INSTANCE_CONSOLE: Operation = Operation::new(
    "openInstanceConsole",
    "GET",
    "/api/v2/instances/{instanceId}/consolesession",
);
pub(crate) const LIST_INSTANCE_EVENTS: Operation = Operation::new(
    "listInstanceEvents",
    "GET",
    "/api/v2/instances/{instanceId}/events",
);
pub(crate) const REBOOT_INSTANCE: Operation = Operation::new(
    "rebootInstance",
    "POST",
    "/api/v2/instances/{instanceId}/reboot",
);
pub(crate) const REPLACE_INSTANCE: Operation = Operation::new(
    "replaceInstance",
    "POST",
    "/api/v2/instances/{instanceId}/replace",
);
pub(crate) const SNAPSHOT_INSTANCE: Operation = Operation::new(
    "snapshotInstance",
    "POST",
    "/api/v2/instances/{instanceId}/snapshot",
);
pub(crate) const READ_INSTANCE_SSH_KEY: Operation = Operation::new(
    "readInstanceSshKey",
    "GET",
    "/api/v2/instances/{instanceId}/sshkey",
);
pub(crate) const START_INSTANCE: Operation = Operation::new(
    "startInstance",
    "POST",
    "/api/v2/instances/{instanceId}/start",
);
pub(crate) const STOP_INSTANCE: Operation = Operation::new(
    "stopInstance",
    "POST",
    "/api/v2/instances/{instanceId}/stop",
);
pub(crate) const LIST_NETWORKS: Operation =
    Operation::new("listNetworks", "GET", "/api/v2/networks");
pub(crate) const CREATE_NETWORK: Operation =
    Operation::new("createNetwork", "POST", "/api/v2/networks");
pub(crate) const READ_NETWORK: Operation =
    Operation::new("readNetwork", "GET", "/api/v2/networks/{networkId}");
pub(crate) const DELETE_NETWORK: Operation =
    Operation::new("deleteNetwork", "DELETE", "/api/v2/networks/{networkId}");
pub(crate) const INSPECT_INSTANCE: Operation = Operation::new(
    "inspectInstance",
    "GET",
    "/api/v2/operator/instances/{instanceId}",
);
pub(crate) const LIST_REGION_REPORTS: Operation =
    Operation::new("listRegionReports", "GET", "/api/v2/operator/regions");
pub(crate) const ACCEPT_REGION_ACCOUNT: Operation = Operation::new(
    "acceptRegionAccount",
    "POST",
    "/api/v2/operator/regions/{regionId}/account",
);
pub(crate) const RESOLVE_LEAKED_LAUNCH: Operation = Operation::new(
    "resolveLeakedLaunch",
    "POST",
    "/api/v2/operator/regions/{regionId}/leaks",
);
pub(crate) const LIST_ORGANIZATIONS: Operation =
    Operation::new("listOrganizations", "GET", "/api/v2/organizations");
pub(crate) const CREATE_ORGANIZATION: Operation =
    Operation::new("createOrganization", "POST", "/api/v2/organizations");
pub(crate) const READ_ORGANIZATION: Operation = Operation::new(
    "readOrganization",
    "GET",
    "/api/v2/organizations/{organizationId}",
);
pub(crate) const DELETE_ORGANIZATION: Operation = Operation::new(
    "deleteOrganization",
    "DELETE",
    "/api/v2/organizations/{organizationId}",
);
pub(crate) const LIST_PROJECTS: Operation = Operation::new(
    "listProjects",
    "GET",
    "/api/v2/organizations/{organizationId}/projects",
);
pub(crate) const CREATE_PROJECT: Operation = Operation::new(
    "createProject",
    "POST",
    "/api/v2/organizations/{organizationId}/projects",
);
pub(crate) const READ_PROJECT: Operation = Operation::new(
    "readProject",
    "GET",
    "/api/v2/organizations/{organizationId}/projects/{projectId}",
);
pub(crate) const DELETE_PROJECT: Operation = Operation::new(
    "deleteProject",
    "DELETE",
    "/api/v2/organizations/{organizationId}/projects/{projectId}",
);
pub(crate) const READ_PROJECT_QUOTA: Operation = Operation::new(
    "readProjectQuota",
    "GET",
    "/api/v2/organizations/{organizationId}/projects/{projectId}/quota",
);
pub(crate) const UPDATE_PROJECT_QUOTA: Operation = Operation::new(
    "updateProjectQuota",
    "PUT",
    "/api/v2/organizations/{organizationId}/projects/{projectId}/quota",
);
pub(crate) const READ_ORGANIZATION_QUOTA: Operation = Operation::new(
    "readOrganizationQuota",
    "GET",
    "/api/v2/organizations/{organizationId}/quota",
);
pub(crate) const UPDATE_ORGANIZATION_QUOTA: Operation = Operation::new(
    "updateOrganizationQuota",
    "PUT",
    "/api/v2/organizations/{organizationId}/quota",
);
pub(crate) const LIST_ROLE_BINDINGS: Operation =
    Operation::new("listRoleBindings", "GET", "/api/v2/rolebindings");
pub(crate) const CREATE_ROLE_BINDING: Operation =
    Operation::new("createRoleBinding", "POST", "/api/v2/rolebindings");
pub(crate) const READ_ROLE_BINDING: Operation = Operation::new(
    "readRoleBinding",
    "GET",
    "/api/v2/rolebindings/{roleBindingId}",
);
pub(crate) const DELETE_ROLE_BINDING: Operation = Operation::new(
    "deleteRoleBinding",
    "DELETE",
    "/api/v2/rolebindings/{roleBindingId}",
);
pub(crate) const LIST_ROLES: Operation = Operation::new("listRoles", "GET", "/api/v2/roles");
pub(crate) const LIST_SECURITY_GROUPS: Operation =
    Operation::new("listSecurityGroups", "GET", "/api/v2/securitygroups");
pub(crate) const CREATE_SECURITY_GROUP: Operation =
    Operation::new("createSecurityGroup", "POST", "/api/v2/securitygroups");
pub(crate) const READ_SECURITY_GROUP: Operation = Operation::new(
    "readSecurityGroup",
    "GET",
    "/api/v2/securitygroups/{securityGroupId}",
);
pub(crate) const UPDATE_SECURITY_GROUP: Operation = Operation::new(
    "updateSecurityGroup",
    "PUT",
    "/api/v2/securitygroups/{securityGroupId}",
);
pub(crate) const DELETE_SECURITY_GROUP: Operation = Operation::new(
    "deleteSecurityGroup",
    "DELETE",
    "/api/v2/securitygroups/{securityGroupId}",
);
pub(crate) const LIST_SSH_AUTHORITIES: Operation = Operation::new(
    "listSshAuthorities",
    "GET",
    "/api/v2/sshcertificateauthorities",
);
pub(crate) const CREATE_SSH_AUTHORITY: Operation = Operation::new(
    "createSshAuthority",
    "POST",
    "/api/v2/sshcertificateauthorities",
);
pub(crate) const READ_SSH_AUTHORITY: Operation = Operation::new(
    "readSshAuthority",
    "GET",
    "/api/v2/sshcertificateauthorities/{sshCertificateAuthorityId}",
);
pub(crate) const DELETE_SSH_AUTHORITY: Operation = Operation::new(
    "deleteSshAuthority",
    "DELETE",
    "/api/v2/sshcertificateauthorities/{sshCertificateAuthorityId}",
);
pub(crate) const WATCH_INSTANCES: Operation =
    Operation::new("watchInstances", "GET", "/api/v2/watch/instances");
pub(crate) const READ_VERSION: Operation = Operation::new("readVersion", "GET", "/api/version");
pub(crate) const READ_HEALTH: Operation = Operation::new("readHealth", "GET", "/healthz");
pub(crate) const READ_METRICS: Operation = Operation::new("readMetrics", "GET", "/metrics");
pub(crate) const READ_READINESS: Operation = Operation::new("readReadiness", "GET", "/readyz");

/// Every operation that [`Client`](crate::Client) has, in the order of their addresses.
pub const OPERATIONS: &[Operation] = &[
    LIST_REGIONS,
    LIST_FLAVORS,
    LIST_IMAGES,
    LIST_AUDIT_LOG,
    READ_CALLER,
    READ_IMAGE,
    DELETE_IMAGE,
    SHARE_IMAGE,
    LIST_INSTANCES,
    CREATE_INSTANCE,
    READ_INSTANCE,
    UPDATE_INSTANCE,
    DELETE_INSTANCE,
    READ_INSTANCE_CONSOLE,
    OPEN_INSTANCE_CONSOLE,
    LIST_INSTANCE_EVENTS,
    REBOOT_INSTANCE,
    REPLACE_INSTANCE,
    SNAPSHOT_INSTANCE,
    READ_INSTANCE_SSH_KEY,
    START_INSTANCE,
    STOP_INSTANCE,
    LIST_NETWORKS,
    CREATE_NETWORK,
    READ_NETWORK,
    DELETE_NETWORK,
    INSPECT_INSTANCE,
    LIST_REGION_REPORTS,
    ACCEPT_REGION_ACCOUNT,
    RESOLVE_LEAKED_LAUNCH,
    LIST_ORGANIZATIONS,
    CREATE_ORGANIZATION,
    READ_ORGANIZATION,
    DELETE_ORGANIZATION,
    LIST_PROJECTS,
    CREATE_PROJECT,
    READ_PROJECT,
    DELETE_PROJECT,
    READ_PROJECT_QUOTA,
    UPDATE_PROJECT_QUOTA,
    READ_ORGANIZATION_QUOTA,
    UPDATE_ORGANIZATION_QUOTA,
    LIST_ROLE_BINDINGS,
    CREATE_ROLE_BINDING,
    READ_ROLE_BINDING,
    DELETE_ROLE_BINDING,
    LIST_ROLES,
    LIST_SECURITY_GROUPS,
    CREATE_SECURITY_GROUP,
    READ_SECURITY_GROUP,
    UPDATE_SECURITY_GROUP,
    DELETE_SECURITY_GROUP,
    LIST_SSH_AUTHORITIES,
    CREATE_SSH_AUTHORITY,
    READ_SSH_AUTHORITY,
    DELETE_SSH_AUTHORITY,
    WATCH_INSTANCES,
    READ_VERSION,
    READ_HEALTH,
    READ_METRICS,
    READ_READINESS,
];
