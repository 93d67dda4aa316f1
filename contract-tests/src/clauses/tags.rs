//! Tags: stored to the byte by the call that creates the instance, or refused.
//!
//! A tag that a backend cannot store must be refused before anything is created. The clauses accept
//! a refusal as invalid without effect wherever the declared limits do not say whether a tag is
//! possible, and require the exact tag otherwise. [`keys`] launches with unusual keys.

mod keys;

use fleetwright::{
    CloudInstanceState::{Running, Stopped},
    Effect, ErrorKind, InstanceConfig, InstanceId, InstanceInfo, KeyCase, LaunchRecord, Problem,
    ProvisionError, RESERVED_PREFIX, Tags,
};

pub(crate) use keys::tags_08_unusual_keys_round_trip;

use crate::{Context, Failure, Outcome, Pass, WireFault, WireOp, require};

/// TAGS-01: a backend must store tags with capitals, spaces, Unicode and empty values exactly, or
/// refuse them as invalid; never alter them.
///
/// Instances are found again by an exact comparison of tags.
///
/// Launches with ten unusual tags, one at a time, and with two keys that differ only in case. Each
/// tag must be returned by launch and list and found by a filter, or be refused without effect.
pub(crate) async fn tags_01_unusual_values_round_trip(cx: &Context) -> Outcome {
    let unusual = [
        ("ManagedBy", "My Fleet"),
        ("kit-edges", "  two spaces around  "),
        ("kit spaced key", "x"),
        ("kit-empty", ""),
        ("kit-unicode", "naïve ☃ 日本"),
        ("kit-decomposed", "e\u{301}"),
        ("Größe", "ß"),
        ("kit-symbols", "a=b,c;d:e/f\"g'\\{}[]<>&%*?+-._@"),
        ("kit-number", "007"),
        ("kit-word", "null"),
    ];
    for tag in unusual {
        require_exact_or_refused(cx, &[tag]).await?;
    }
    let twins = [("kit-case", "lower"), ("Kit-Case", "upper")];
    match cx.capabilities().tags.key_case {
        KeyCase::Distinct => {
            require_exact_or_refused(cx, &twins).await?;
        }
        KeyCase::Folded => {
            let launched = require_exact_or_refused(cx, &twins).await?;
            require(launched.is_none(), || {
                let twins = crate::shown(&twins[..]);
                format!("{twins} were accepted by a cloud that cannot distinguish them")
            })?;
        }
    }
    Ok(Pass::Held)
}

/// Launches with `tags` and requires that they are returned exactly and that a filter by them finds the
/// instance. Returns `None` if they are refused as invalid without effect.
async fn require_exact_or_refused(
    cx: &Context,
    tags: &[(&str, &str)],
) -> Result<Option<InstanceId>, Failure> {
    let mut config = cx.config();
    for tag in tags {
        insert(&mut config.tags, *tag)?;
    }
    let info = match cx.provisioner().launch_instance(&config).await {
        Ok(info) => info,
        Err(error) if error.kind() == ErrorKind::Invalid && error.effect() == Effect::None => {
            return Ok(None);
        }
        Err(error) => {
            let tags = crate::shown(tags);
            return Err(Failure::violated(format!(
                "the tags {tags} must be stored or refused as invalid without effect, but: {error}"
            )));
        }
    };
    require_same_tags("the launch", &info, &config.tags)?;
    cx.wait_for_consistent_reads().await;
    let mut filter = cx.filter();
    for tag in tags {
        insert(&mut filter.tags, *tag)?;
    }
    let list = cx.list(&filter).await?;
    let Some(listed) = list.iter().find(|one| one.id == info.id) else {
        return Err(Failure::violated(format!(
            "{} was launched with {} and is not found by them",
            info.id,
            crate::shown(tags)
        )));
    };
    require_same_tags("the list", listed, &config.tags)?;
    Ok(Some(info.id))
}

/// TAGS-02: a backend must set tags in the call that creates the instance, so that a lost response
/// leaves no instance without tags.
///
/// If a second call sets the tags and is lost, the instance cannot be found again. Needs: fault:
/// response lost.
///
/// Loses the response of a launch with two tags, and requires one instance that has them. The
/// backend may have sent the launch again by itself.
pub(crate) async fn tags_02_are_part_of_the_launch(cx: &Context) -> Outcome {
    let faults = cx.faults(&[WireFault::ResponseLost])?;
    let mut config = cx.config_with_tags(&[("kit-one", "1"), ("kit-two", "2")])?;
    config.launch_token = Some(cx.new_token());
    faults
        .inject(WireOp::Launch, 1, WireFault::ResponseLost)
        .await;
    // A backend may retry the launch by itself. Only the instance that exists afterwards counts.
    let result = cx.provisioner().launch_instance(&config).await;
    cx.clear_faults(&faults).await?;
    cx.note(format!(
        "the launch whose response was lost: {}",
        crate::shown(&result)
    ));
    for info in cx.require_count(1).await? {
        require(info.tags.contains_all(&config.tags), || {
            format!(
                "the response of its launch was lost, and {} has only the tags {}",
                info.id,
                crate::shown(&info.tags)
            )
        })?;
    }
    Ok(Pass::Held)
}

/// TAGS-03: a backend must accept as many and as long tags as declared.
///
/// A declared limit that does not hold breaks callers late.
///
/// Launches with a token and with as many tags as declared, each of the declared length. At most
/// 256 tags of 4,096 characters are tried.
pub(crate) async fn tags_03_within_the_limits_are_accepted(cx: &Context) -> Outcome {
    let limits = &cx.capabilities().tags;
    // With a token, because a backend's own tags must not count against the declared number.
    let mut config = cx.config_with_token();
    let value = "v".repeat(limits.max_value_chars.min(MOST_CHARS));
    let count = limits.max_tags.min(MOST_TAGS);
    for number in 0..count.saturating_sub(config.tags.len()) {
        let key = long_key(number, limits.max_key_chars.min(MOST_CHARS));
        insert(&mut config.tags, (&key, &value))?;
    }
    let info = cx.launch_config(&config).await?;
    let listed = cx.wait_until_listed(&info.id).await?;
    require(listed.tags.contains_all(&config.tags), || {
        format!(
            "{} was launched with {} tags within the limits, but {} others are reported",
            info.id,
            config.tags.len(),
            listed.tags.len()
        )
    })?;
    Ok(Pass::Held)
}

/// TAGS-04: a backend must refuse more or longer tags than declared as invalid, name the limit, and
/// create nothing.
///
/// Truncated tags match nothing.
///
/// Launches with one tag, one character of a key and one character of a value more than declared.
/// Each refusal must have no effect and contain the declared limit as a number.
pub(crate) async fn tags_04_beyond_the_limits_are_refused(cx: &Context) -> Outcome {
    let limits = cx.capabilities().tags.clone();
    let long = |limit: usize| limit <= MOST_CHARS;
    if limits.max_tags <= MOST_TAGS {
        let mut config = cx.config();
        while config.tags.len() <= limits.max_tags {
            let key = format!("kit-{}", config.tags.len());
            insert(&mut config.tags, (&key, ""))?;
        }
        let error = require_launch_refused(cx, "more tags than declared", &config).await?;
        require_limit_named(&error, limits.max_tags)?;
    }
    if long(limits.max_key_chars) {
        let mut config = cx.config();
        let key = long_key(0, limits.max_key_chars + 1);
        insert(&mut config.tags, (&key, ""))?;
        let error = require_launch_refused(cx, "a longer key than declared", &config).await?;
        require_limit_named(&error, limits.max_key_chars)?;
    }
    if long(limits.max_value_chars) {
        let mut config = cx.config();
        let value = "v".repeat(limits.max_value_chars + 1);
        insert(&mut config.tags, ("kit-long", &value))?;
        let error = require_launch_refused(cx, "a longer value than declared", &config).await?;
        require_limit_named(&error, limits.max_value_chars)?;
    }
    Ok(Pass::Held)
}

/// TAGS-05: a backend must refuse tags under the cloud's reserved prefixes as invalid, and create
/// nothing.
///
/// The cloud refuses them anyway, after half of the work. Needs: reserved prefixes.
///
/// Launches with a key under each declared prefix, as declared and in capitals. The library's own
/// prefix is refused by the core.
pub(crate) async fn tags_05_reserved_prefixes_are_refused(cx: &Context) -> Outcome {
    // No backend receives the library's own prefix: a config with it cannot be created.
    let own = Tags::new().with(format!("{RESERVED_PREFIX}x"), "");
    require(own.is_err(), || {
        format!("a tag with the prefix {RESERVED_PREFIX} can be created")
    })?;
    for prefix in &cx.capabilities().tags.reserved_prefixes {
        for prefix in [prefix.clone(), prefix.to_uppercase()] {
            let mut config = cx.config();
            insert(&mut config.tags, (&format!("{prefix}kit"), "x"))?;
            let what = format!("a tag under the reserved prefix {prefix}");
            require_launch_refused(cx, &what, &config).await?;
        }
    }
    Ok(Pass::Held)
}

/// TAGS-06: a backend must not report tags that the backend sets for itself.
///
/// Callers would copy them, and their calls would fail.
///
/// Launches with a token, for which most backends set tags, and compares the tags in the results of
/// launch, list and lookup with those of the config.
pub(crate) async fn tags_06_own_tags_are_hidden(cx: &Context) -> Outcome {
    let config = cx.config_with_token();
    let info = cx.launch_config(&config).await?;
    require_same_tags("the launch", &info, &config.tags)?;
    cx.wait_for_consistent_reads().await;
    require_same_tags(
        "the list",
        &cx.wait_until_listed(&info.id).await?,
        &config.tags,
    )?;
    let Some(token) = &config.launch_token else {
        return Err(Failure::KitError("the config has no token".into()));
    };
    let record = cx.provisioner().find_launch(token).await;
    let record = record.map_err(|error| Failure::call_failed("find_launch", &error))?;
    let LaunchRecord::Found(found) = record else {
        return Err(Failure::violated(format!(
            "the token of {} must be found, but: {}",
            info.id,
            crate::shown(&record)
        )));
    };
    for info in &found {
        require_same_tags("find_launch", info, &config.tags)?;
    }
    Ok(Pass::Held)
}

/// TAGS-07: a backend must report the same tags after stop, start and terminate.
///
/// A stopped instance without tags is lost.
///
/// Compares the listed tags after stop, start and terminate with those of the launch. A terminated
/// instance is compared only if it is still listed.
pub(crate) async fn tags_07_survive_a_lifecycle(cx: &Context) -> Outcome {
    let config = cx.config_with_tags(&[("kit-managed-by", "the-kit"), ("kit-colour", "blue")])?;
    let id = cx.launch_config(&config).await?.id;
    cx.wait_for_state(&id, Running).await?;
    cx.stop(&id).await?;
    cx.wait_for_state(&id, Stopped).await?;
    require_tags_kept(cx, &id, "it was stopped", &config.tags).await?;
    cx.start(&id).await?;
    cx.wait_for_state(&id, Running).await?;
    require_tags_kept(cx, &id, "it was started again", &config.tags).await?;
    cx.terminate(&id).await?;
    cx.wait_until_terminated(&id).await?;
    cx.wait_for_consistent_reads().await;
    // Other clauses check whether a terminated instance is listed.
    let list = cx.list(&cx.filter().in_any_state()).await?;
    for info in list.iter().filter(|info| info.id == id) {
        require_same_tags("the list after it was terminated", info, &config.tags)?;
    }
    Ok(Pass::Held)
}

/// Requires that the list entry of an instance has exactly `tags`.
async fn require_tags_kept(
    cx: &Context,
    id: &InstanceId,
    when: &str,
    tags: &Tags,
) -> Result<(), Failure> {
    cx.wait_for_consistent_reads().await;
    let info = cx.wait_until_listed(id).await?;
    require_same_tags(&format!("the list after {when}"), &info, tags)
}

/// Requires that a result has exactly the tags of the launch.
fn require_same_tags(what: &str, info: &InstanceInfo, given: &Tags) -> Result<(), Failure> {
    require(info.tags == *given, || {
        let (id, given, shown) = (&info.id, crate::shown(given), crate::shown(&info.tags));
        format!("{id} was launched with the tags {given}, but {what} returns {shown}")
    })
}

/// Requires that a launch is refused as invalid, without effect.
async fn require_launch_refused(
    cx: &Context,
    what: &str,
    config: &InstanceConfig,
) -> Result<ProvisionError, Failure> {
    let result = cx.provisioner().launch_instance(config).await;
    let what = format!("a launch with {what}");
    cx.require_refused_without_effect(&what, result, ErrorKind::Invalid)
        .await
}

/// Requires that a refusal names the limit that was exceeded.
fn require_limit_named(error: &ProvisionError, declared: usize) -> Result<(), Failure> {
    let named = match error.invalid_value().map(|value| value.problem()) {
        Some(Problem::TooMany { limit, .. } | Problem::TooLong { limit, .. }) => Some(*limit),
        _ => None,
    };
    require(named == Some(declared), || {
        let named = crate::shown(&named);
        format!("the refusal must name the limit {declared}, but names {named}: {error}")
    })
}

fn insert(tags: &mut Tags, (key, value): (&str, &str)) -> Result<(), Failure> {
    let set = tags.insert(key, value);
    set.map(drop)
        .map_err(|error| Failure::KitError(error.to_string()))
}

/// The most tags that are tried if a backend declares more.
const MOST_TAGS: usize = 256;
/// The longest key or value that is tried if a backend declares more characters.
const MOST_CHARS: usize = 4096;

/// Returns a key of exactly `length` characters, another one for each number.
fn long_key(number: usize, length: usize) -> String {
    format!("{:k<length$}", format!("kit-{number}-"))
}
