//! Every field of a config on the instance, and what reads report about it, compared with the oracle.

use fleetwright::{
    CloudInstanceState::{Running, Stopped},
    InstanceId, InstanceStatus, LaunchRecord, LaunchToken,
};
use futures_util::future::try_join_all;

use crate::{
    Context, Failure, Outcome, Pass,
    clauses::fields::{Launched, require_as_requested, truths, variations, with_all},
    require,
    shown::addresses,
};

/// LAUNCH-11: a backend must launch an instance with every field of its config that it declares, alone and
/// with all others.
///
/// A field that is silently dropped puts an instance into the wrong network, or on the wrong market.
///
/// Launches with each row of the table of fields, and with all of them at once: image, type, user data, disk,
/// zone, network, security groups, a public address or none, market. Compares what the launch returns, the list
/// and, if there is one, the oracle with the config. A read may omit a field, but not show another value.
pub(crate) async fn launch_11_every_field_reaches_the_instance(cx: &Context) -> Outcome {
    let plain = cx.config();
    let rows = variations(cx, &plain)?;
    let mut configs: Vec<_> = rows.iter().map(|row| (row.name, row.of(&plain))).collect();
    configs.push(("every field", with_all(&plain, &rows)));
    let launches = configs.into_iter().map(|(name, config)| async move {
        let infos = vec![cx.launch_config(&config).await?];
        Ok::<_, Failure>(Launched {
            name,
            config,
            infos,
        })
    });
    let launches = try_join_all(launches).await?;
    require_as_requested(cx, &launches).await?;
    Ok(Pass::Held)
}

/// LAUNCH-13: a backend must report the addresses and the launch time that the instance has.
///
/// A manager connects to the reported address, and terminates instances by their age. Needs: oracle.
///
/// Compares a list, a description and a lookup with the oracle, while an instance runs, and after it was
/// stopped and started. Launch time and hardware address are compared if the oracle knows them.
pub(crate) async fn launch_13_addresses_and_launch_time_are_true(cx: &Context) -> Outcome {
    cx.oracle()?;
    let token = cx.new_token();
    let mut config = cx.config();
    config.launch_token = Some(token.clone());
    let id = cx.launch_config(&config).await?.id;
    cx.wait_for_consistent_state(&id, Running).await?;
    require_true_reads(cx, &token, &id, "while it runs").await?;
    cx.stop(&id).await?;
    cx.wait_for_state(&id, Stopped).await?;
    cx.start(&id).await?;
    cx.wait_for_consistent_state(&id, Running).await?;
    require_true_reads(cx, &token, &id, "after it was stopped and started").await?;
    Ok(Pass::Held)
}

/// Requires that list, lookup and description show the addresses and the launch time that the oracle has.
async fn require_true_reads(
    cx: &Context,
    token: &LaunchToken,
    id: &InstanceId,
    when: &str,
) -> Result<(), Failure> {
    let described = cx.describe(id).await?;
    let listed = cx.consistent_info(id).await?;
    let found = cx.provisioner().find_launch(token).await;
    let found = found.map_err(|error| Failure::call_failed("find_launch", &error))?;
    let LaunchRecord::Found(found) = found else {
        return Err(Failure::violated(format!(
            "{when}, the launch of {id} is not found"
        )));
    };
    let truth = truths(cx).await.remove(id);
    let truth = truth.ok_or_else(|| Failure::violated(format!("the cloud has no {id}")))?;
    let truth = truth.info;
    let mut reads = vec![("a description", described)];
    for (read, infos) in [("a list", vec![listed]), ("a lookup", found)] {
        for info in infos {
            let (wanted, shown) = (truth.launch_time, info.launch_time);
            require(wanted.is_none() || shown == wanted, || {
                let (wanted, shown) = (crate::shown(&wanted), crate::shown(&shown));
                format!("{when}, {id} has the launch time {wanted}, but {read} returns {shown}")
            })?;
            reads.push((read, InstanceStatus::from(info)));
        }
    }
    for (read, status) in reads {
        let wanted = (truth.private_ip, truth.public_ip);
        let shown = (status.private_ip, status.public_ip);
        require(shown == wanted, || {
            let (wanted, shown) = (addresses(wanted), addresses(shown));
            format!("{when}, {id} has the addresses {wanted}, but {read} returns {shown}")
        })?;
        let (wanted, shown) = (truth.mac_address, status.mac_address);
        require(wanted.is_none() || shown == wanted, || {
            let (wanted, shown) = (crate::shown(&wanted), crate::shown(&shown));
            format!("{when}, {id} has the hardware address {wanted}, but {read} returns {shown}")
        })?;
    }
    Ok(())
}
