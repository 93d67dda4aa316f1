//! Requests for spot instances. RunInstances creates them.

use super::{Call, common::tag_trees};
use crate::ec2::{
    engine::{Engine, filter::Filtered, launch::SpotKind, record::Tags, spot::SpotRequest},
    error::Refusal,
    wire::tree::Tree,
};

/// Cancels requests. Their instances run on.
///
/// # Errors
///
/// `MissingParameter` or `InvalidSpotInstanceRequestID.NotFound`.
pub(super) fn cancel(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let ids = call.ids("SpotInstanceRequestId")?;
    let mode = call.mode()?;
    call.finish()?;
    engine.cancel_spot_requests(&ids, mode)?;
    let cancelled = ids.iter().map(|id| {
        Tree::default()
            .text("spotInstanceRequestId", id)
            .text("state", "cancelled")
    });
    call.respond_list("spotInstanceRequestSet", cancelled, None)
}

/// A request with its state.
struct Listed {
    /// The request.
    request: SpotRequest,
    /// Its state.
    state: &'static str,
    /// The code of its status.
    status: &'static str,
}

/// Describes requests by id and filters.
///
/// # Errors
///
/// `InvalidSpotInstanceRequestID.NotFound`
pub(super) fn describe(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let listed = |request: &SpotRequest| {
        let (state, status) = engine.spot_state(request);
        Listed {
            request: request.clone(),
            state,
            status,
        }
    };
    let all: Vec<Listed> = engine.spot_requests.iter().map(listed).collect();
    let missing = |id: &str| {
        engine
            .spot_request(id)
            .err()
            .unwrap_or_else(Refusal::internal)
    };
    let by_id: (_, fn(&Listed) -> &str) = ("SpotInstanceRequestId", |listed| &listed.request.id);
    let (found, next) = call.select(engine, all, by_id, missing)?;
    let tree = |Listed {
                    request,
                    state,
                    status,
                }: &Listed| {
        let status = Tree::default()
            .text("code", status)
            .text("updateTime", engine.stamp(request.created))
            .text("message", "The request follows its instance.");
        let launch = Tree::default()
            .text("imageId", &request.image)
            .text("instanceType", &request.instance_type);
        Tree::default()
            .text("spotInstanceRequestId", &request.id)
            .some("spotPrice", request.price.as_ref())
            .text("type", request.kind_name())
            .text("state", state)
            .tree("status", status)
            .tree("launchSpecification", launch)
            .text("instanceId", &request.instance)
            .text("createTime", engine.stamp(request.created))
            .text("productDescription", "Linux/UNIX")
            .text("instanceInterruptionBehavior", "terminate")
            .text("launchedAvailabilityZone", &request.zone)
            .set("tagSet", tag_trees(&request.tags))
    };
    call.respond_list("spotInstanceRequestSet", found.iter().map(tree), next)
}

impl SpotRequest {
    /// Returns EC2's word for what happens to the request after its instance ends.
    const fn kind_name(&self) -> &'static str {
        match self.kind {
            SpotKind::OneTime => "one-time",
            SpotKind::Persistent => "persistent",
        }
    }
}

impl Filtered for Listed {
    /// The filters that the emulator has for requests.
    const NAMES: &'static [&'static str] = &[
        "instance-id",
        "launched-availability-zone",
        "spot-instance-request-id",
        "state",
        "status-code",
        "type",
    ];

    fn values(&self, name: &str) -> Vec<String> {
        match name {
            "instance-id" => vec![self.request.instance.clone()],
            "launched-availability-zone" => vec![self.request.zone.clone()],
            "spot-instance-request-id" => vec![self.request.id.clone()],
            "state" => vec![self.state.to_owned()],
            "status-code" => vec![self.status.to_owned()],
            "type" => vec![self.request.kind_name().to_owned()],
            _ => Vec::new(),
        }
    }

    fn tags(&self) -> Option<&Tags> {
        Some(&self.request.tags)
    }
}
