//! Many tokens, and tokens that look like others: each one is a launch of its own.

use std::num::NonZeroU32;

use fleetwright::{Effect, ErrorKind, InstanceConfig, InstanceId, LaunchToken};
use futures_util::future::try_join_all;

use super::{require_found, require_replay};
use crate::{
    Context, Failure, Outcome, Pass, clauses::batch::require_batch_found, context::names, require,
};

/// How many tokens are used, if the clause may have so many instances: more than twice a table of 64.
const MANY: usize = 130;

/// How many are used otherwise.
const FEW: usize = 24;

/// How many launches are made at the same time.
const CONCURRENT: usize = 8;

/// TOKEN-22: a backend must recognize every token whose instance is not terminated, however many there are.
///
/// A table of the latest tokens forgets the launch that is retried last.
///
/// Launches 130 instances with a token each, or 24 in real time, then replays all of them through another handle,
/// from the first to the last.
pub(crate) async fn token_22_many_tokens_are_recognized(cx: &Context) -> Outcome {
    let count = if cx.can_launch(MANY) { MANY } else { FEW };
    let configs: Vec<_> = (0..count).map(|_| cx.config_with_token()).collect();
    let mut launched = Vec::new();
    for some in configs.chunks(CONCURRENT) {
        let launches = some.iter().map(|config| cx.launch_config(config));
        launched.extend(try_join_all(launches).await?);
    }
    cx.wait_for_consistent_reads().await;
    let other = cx.open_handle().await;
    for (number, (config, info)) in configs.iter().zip(&launched).enumerate() {
        let how = format!("of token {} of {count}", number + 1);
        require_replay(&*other, config, &info.id, &how).await?;
    }
    cx.require_count(count).await?;
    Ok(Pass::Held)
}

/// The ends of tokens that look like items or attempts of another one.
const ENDS: [&str; 10] = [
    "-0", "-1", "-2", "/1", "#1", ":1", ".1", "_1", "1", "-item-1",
];

/// TOKEN-23: a backend must treat tokens as different that are a part of another one, or look like its items or
/// attempts, for launches, batches and lookups.
///
/// Names that are derived from a token by adding a number collide with the tokens of callers who do the same.
///
/// Launches with tokens that add a number to a root, with one that lacks its last character and with its second
/// attempt, then a batch with the root itself. All instances must be different, and each token must find its own.
/// The token that the core derives for an item of the batch may be a conflict, but must not return an instance
/// of another launch.
pub(crate) async fn token_23_similar_tokens_are_different(cx: &Context) -> Outcome {
    let root = format!("t{}", cx.new_token());
    let mut texts: Vec<_> = ENDS.iter().map(|end| format!("{root}{end}")).collect();
    texts.push(root[..root.len() - 1].to_owned());
    let token =
        |text: &str| LaunchToken::new(text).map_err(|error| Failure::KitError(error.to_string()));
    let root = token(&root)?;
    let two = NonZeroU32::MIN.saturating_add(1);
    let mut tokens = texts
        .iter()
        .map(|text| token(text))
        .collect::<Result<Vec<_>, _>>()?;
    tokens.push(root.attempt(two));
    let mut launched: Vec<(LaunchToken, InstanceId)> = Vec::new();
    for token in tokens {
        let info = cx.launch_config(&with_token(cx, &token)).await?;
        require_new(&launched, &token, &info.id)?;
        launched.push((token, info.id));
    }
    let batch = cx
        .provisioner()
        .launch_instances(&with_token(cx, &root), two)
        .await;
    let batch = batch.map_err(|error| Failure::call_failed("launch_instances", &error))?;
    for info in &batch {
        require_new(&launched, &root, &info.id)?;
    }
    let item = root.item(1);
    let mut count = launched.len() + batch.len();
    match cx
        .provisioner()
        .launch_instance(&with_token(cx, &item))
        .await
    {
        Ok(info) => {
            require_new(&launched, &item, &info.id)?;
            require(batch.iter().all(|one| one.id != info.id), || {
                format!(
                    "the token {item} returned {}, of the batch {}",
                    info.id,
                    names(&batch)
                )
            })?;
            count += 1;
        }
        Err(error) => {
            let conflict =
                error.kind() == ErrorKind::TokenConflict && error.effect() == Effect::None;
            require(conflict, || {
                format!("the token of an item must launch or be a conflict, but: {error}")
            })?;
        }
    }
    cx.require_count(count).await?;
    let other = cx.open_handle().await;
    for handle in [cx.provisioner(), &*other] {
        for (token, id) in &launched {
            require_found(handle, token, id, "among similar tokens").await?;
        }
        require_batch_found(handle, &root, &batch).await?;
    }
    Ok(Pass::Held)
}

fn with_token(cx: &Context, token: &LaunchToken) -> InstanceConfig {
    let mut config = cx.config();
    config.launch_token = Some(token.clone());
    config
}

/// Requires that no other token has launched `id`.
fn require_new(
    launched: &[(LaunchToken, InstanceId)],
    token: &LaunchToken,
    id: &InstanceId,
) -> Result<(), Failure> {
    let twin = launched.iter().find(|(_, other)| other == id);
    require(twin.is_none(), || {
        let twin = twin.map(|(twin, _)| twin.as_str()).unwrap_or_default();
        format!("the tokens {twin} and {token} both returned {id}")
    })
}
