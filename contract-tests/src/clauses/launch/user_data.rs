//! User data that tools on the way to an instance often change: by decoding, unpacking, trimming or cutting it.

use std::num::NonZeroU32;

use fleetwright::{InstanceConfig, InstanceInfo, UserData};
use futures_util::future::try_join_all;

use crate::{Context, Failure, Outcome, Pass, clauses::fields::truths, require};

/// How many instances each batch has.
const BATCH: NonZeroU32 = NonZeroU32::new(2).unwrap();

/// LAUNCH-12: a backend must pass user data unchanged that has the declared size, or looks as if it were encoded,
/// packed or text, to the instance of a launch and to every instance of a batch.
///
/// Clouds want user data as base64, and each conversion is a chance to convert once too often. Needs: oracle.
///
/// Launches one instance and a batch of two with each of these, as far as they fit: the declared size in bytes
/// without a pattern, a byte order mark, zeros, line ends of two kinds, invalid UTF-8, base64, gzip, white space
/// around a text, and text with variables. Compares what the oracle says that the instances received.
pub(crate) async fn launch_12_any_user_data_is_unchanged(cx: &Context) -> Outcome {
    cx.oracle()?;
    let most = cx.capabilities().max_user_data_bytes;
    let fitting = payloads(most).into_iter();
    let fitting = fitting.filter(|(_, bytes)| (1..=most).contains(&bytes.len()));
    let launches = fitting.map(|(name, bytes)| launch_both(cx, name, bytes));
    let launches = try_join_all(launches).await?;
    let truths = truths(cx).await;
    for (name, bytes, infos) in launches {
        for (how, id) in infos {
            let given = truths.get(&id).and_then(|truth| truth.user_data.as_deref());
            require(given == Some(&bytes[..]), || {
                let (size, given) = (bytes.len(), given.map_or(0, <[u8]>::len));
                format!(
                    "{id} of {how} was given {size} bytes of user data, {name}, but received {given} other bytes"
                )
            })?;
        }
    }
    Ok(Pass::Held)
}

type Launches = (
    &'static str,
    Vec<u8>,
    Vec<(&'static str, fleetwright::InstanceId)>,
);

/// Launches one instance and a batch with `bytes`.
async fn launch_both(
    cx: &Context,
    name: &'static str,
    bytes: Vec<u8>,
) -> Result<Launches, Failure> {
    let mut config: InstanceConfig = cx.config();
    let data = UserData::new(&bytes).map_err(|error| Failure::KitError(error.to_string()))?;
    config.user_data = Some(data);
    let single = cx.launch_config(&config).await?;
    let batch = cx.provisioner().launch_instances(&config, BATCH).await;
    let batch = batch.map_err(|error| Failure::call_failed("launch_instances", &error))?;
    let of_batch = |info: InstanceInfo| ("a batch", info.id);
    let mut all = vec![("a launch", single.id)];
    all.extend(batch.into_iter().map(of_batch));
    Ok((name, bytes, all))
}

/// Returns user data with what is special about each.
fn payloads(most: usize) -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("of the declared size", without_pattern(most)),
        (
            "with a byte order mark",
            b"\xEF\xBB\xBF#!/bin/sh\n".to_vec(),
        ),
        ("with zeros", b"\0#!/bin/sh\0\necho\0".to_vec()),
        (
            "with line ends of two kinds",
            b"#!/bin/sh\r\necho one\necho two\r\n\r\n".to_vec(),
        ),
        (
            "not valid as UTF-8",
            b"\xC3\x28 \xF0\x9F\x92 \xFF\xFE".to_vec(),
        ),
        (
            "that looks like base64",
            b"IyEvYmluL3NoCmVjaG8gb25jZQo=".to_vec(),
        ),
        ("packed by gzip", GZIP.to_vec()),
        (
            "with white space around it",
            b"\n \t#!/bin/sh\n \t\n".to_vec(),
        ),
        (
            "with variables and entities",
            b"#cloud-config\na: ${HOME} $$ %PATH% {{ id }} &amp; \\n \"'\n".to_vec(),
        ),
    ]
}

/// `#!/bin/sh` and a line end, packed by gzip.
const GZIP: [u8; 30] = *b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff\x53\x56\xd4\x4f\xca\xcc\xd3\x2f\xce\xe0\x02\x00\x1d\x9d\xfb\x04\x0a\x00\x00\x00";

/// Returns bytes that cannot be packed into fewer ones: a linear congruential generator.
fn without_pattern(size: usize) -> Vec<u8> {
    let mut state = 0x2545_F491_u32;
    let next = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    (0..size).map(next).collect()
}
