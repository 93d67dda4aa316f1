//! Arguments of the commands for tenants and operators.

use clap::{Args, Subcommand};

use super::Agreement;

/// A project in which something is created.
#[derive(Args, Clone, Debug)]
pub(crate) struct InProject {
    /// Organization, by id or name [default: the profile's, or the only one].
    #[arg(long)]
    pub(crate) organization: Option<String>,
    /// Project, by id or name [default: the profile's, or the only one].
    #[arg(long)]
    pub(crate) project: Option<String>,
}

/// The platform, an organization, or a project of it.
#[derive(Args, Clone, Debug)]
pub(crate) struct ScopeArguments {
    /// Organization, by id or name [default: the whole platform].
    #[arg(long)]
    pub(crate) organization: Option<String>,
    /// Project of the organization, by id or name.
    #[arg(long, requires = "organization")]
    pub(crate) project: Option<String>,
}

/// An organization.
#[derive(Args, Clone, Debug)]
pub(crate) struct InOrganization {
    /// Organization, by id or name [default: the profile's, or the only one].
    #[arg(long)]
    pub(crate) organization: Option<String>,
}

/// Commands for organizations.
#[derive(Debug, Subcommand)]
pub(crate) enum OrganizationsCommand {
    /// Create an organization.
    Create {
        /// Its name.
        name: String,
    },
    /// List organizations.
    List,
    /// Show an organization.
    Show {
        /// Id or name.
        organization: String,
    },
    /// Delete an organization that has no projects.
    Delete {
        /// Id or name.
        organization: String,
        #[command(flatten)]
        agreement: Agreement,
    },
}

/// Commands for projects.
#[derive(Debug, Subcommand)]
pub(crate) enum ProjectsCommand {
    /// Create a project.
    Create {
        /// Its name, unique in its organization.
        name: String,
        #[command(flatten)]
        place: InOrganization,
    },
    /// List the projects of an organization.
    List(InOrganization),
    /// Show a project.
    Show {
        /// Id or name.
        project: String,
        #[command(flatten)]
        place: InOrganization,
    },
    /// Delete a project that is empty.
    Delete {
        /// Id or name.
        project: String,
        #[command(flatten)]
        place: InOrganization,
        #[command(flatten)]
        agreement: Agreement,
    },
}

/// Commands for quotas.
#[derive(Debug, Subcommand)]
pub(crate) enum QuotaCommand {
    /// Show the quota of an organization, or of a project.
    Show(QuotaOf),
    /// Set limits. Kinds that are left out keep theirs.
    Set {
        #[command(flatten)]
        of: QuotaOf,
        /// Kind and limit: servers=20.
        #[arg(required = true, value_name = "KIND=LIMIT", value_parser = limit)]
        limits: Vec<(String, u64)>,
    },
}

/// Whose quota.
#[derive(Args, Clone, Debug)]
pub(crate) struct QuotaOf {
    #[command(flatten)]
    pub(crate) place: InOrganization,
    /// Project, by id or name [default: the whole organization].
    #[arg(long)]
    pub(crate) project: Option<String>,
}

/// Commands for role bindings.
#[derive(Debug, Subcommand)]
pub(crate) enum BindingsCommand {
    /// Give a role to a user.
    Create {
        /// Who: `ada`, or `user:ada`. A user of an identity provider has its prefix: `jwt:ada`.
        actor: String,
        /// The role: `fleetwright bindings roles` lists them.
        role: String,
        #[command(flatten)]
        scope: ScopeArguments,
    },
    /// List the role bindings of a scope.
    List(ScopeArguments),
    /// Show a role binding.
    Show {
        /// Id.
        binding: String,
    },
    /// Take a role from a user.
    Delete {
        /// Id.
        binding: String,
        #[command(flatten)]
        agreement: Agreement,
    },
    /// List the roles of the installation.
    Roles,
}

/// Commands for the audit log.
#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// List entries, oldest first.
    List(ListAudit),
}

#[derive(Args, Debug)]
pub(crate) struct ListAudit {
    #[command(flatten)]
    pub(crate) scope: ScopeArguments,
    /// Only what this user or service did: `ada`, `user:ada`, `jwt:ada`, or `service:` and a name.
    #[arg(long)]
    pub(crate) actor: Option<String>,
    /// Only what was done to records of this kind: `instances` and others.
    #[arg(long)]
    pub(crate) resource: Option<String>,
    /// Only what was done to the record with this id.
    #[arg(long)]
    pub(crate) record: Option<String>,
    /// Only from this date on, in RFC 3339.
    #[arg(long)]
    pub(crate) from: Option<String>,
    /// Only before this date, in RFC 3339.
    #[arg(long)]
    pub(crate) until: Option<String>,
}

/// Commands for operators.
#[derive(Debug, Subcommand)]
pub(crate) enum OperatorCommand {
    /// List the regions with their last scan, orphans, and why one is frozen.
    Regions,
    /// Show an instance with its hidden server and what it is charged.
    Inspect {
        /// Id or name.
        instance: String,
    },
    /// Accept another account for a region. The machines of the recorded account are left as they are.
    AcceptAccount {
        /// The region.
        region: String,
        /// The account that is recorded now.
        #[arg(long)]
        expected: String,
        /// The account to record instead.
        #[arg(long)]
        account: String,
        #[command(flatten)]
        agreement: Agreement,
    },
    /// Remove a leaked launch from the list, after its machine was terminated at the cloud.
    ResolveLeak {
        /// The region.
        region: String,
        /// The launch token, which `regions` shows. It is a name, and no secret.
        token: String,
    },
    /// Print the metrics of the service, in the format of Prometheus.
    Metrics,
    /// Whether the service lives and can serve.
    Health,
}

fn limit(text: &str) -> Result<(String, u64), String> {
    let (kind, limit) =
        super::pair(text).map_err(|_| "expected kind=limit, such as servers=20".to_owned())?;
    let limit = limit
        .parse()
        .map_err(|_| format!("{limit:?} is no limit: expected a number"))?;
    Ok((kind, limit))
}
