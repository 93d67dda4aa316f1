//! Backends that change user data on its way to the instance.

use fleetwright::{Capabilities, InstanceConfig, UserData};

use super::fields::{Batch, Change, Single};
use crate::{OverrideHarness, mutants::Mutant};

/// LAUNCH-12.
pub(in crate::mutants) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "user data that looks like base64 is decoded",
        violates: "LAUNCH-12",
        make: OverrideHarness::factory::<Single<Decodes>>,
    },
    Mutant {
        name: "user data that looks like base64 is decoded in batches",
        violates: "LAUNCH-12",
        make: OverrideHarness::factory::<Batch<Decodes>>,
    },
    Mutant {
        name: "packed user data is unpacked",
        violates: "LAUNCH-12",
        make: OverrideHarness::factory::<Single<Unpacks>>,
    },
    Mutant {
        name: "the byte order mark of user data is removed",
        violates: "LAUNCH-12",
        make: OverrideHarness::factory::<Single<RemovesMark>>,
    },
    Mutant {
        name: "the last byte of the largest user data is lost",
        violates: "LAUNCH-12",
        make: OverrideHarness::factory::<Single<CutsTheLargest>>,
    },
    Mutant {
        name: "line ends of user data are converted in batches",
        violates: "LAUNCH-12",
        make: OverrideHarness::factory::<Batch<ConvertsLineEnds>>,
    },
    Mutant {
        name: "user data that is not text is re-encoded in batches",
        violates: "LAUNCH-12",
        make: OverrideHarness::factory::<Batch<Reencodes>>,
    },
];

/// Replaces the user data by what `change` makes of it.
fn replace(config: &mut InstanceConfig, change: impl FnOnce(&[u8]) -> Option<Vec<u8>>) {
    let changed = config
        .user_data
        .as_ref()
        .and_then(|data| change(data.as_bytes()));
    if let Some(data) = changed.and_then(|bytes| UserData::new(bytes).ok()) {
        config.user_data = Some(data);
    }
}

/// What the base64 and the gzip of the clause contain.
const SCRIPT: &[u8] = b"#!/bin/sh\n";

struct Decodes;

impl Change for Decodes {
    fn change(config: &mut InstanceConfig, _: &Capabilities) {
        let base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=".contains(byte);
        replace(config, |bytes| {
            let encoded = bytes.len() % 4 == 0 && bytes.iter().all(base64);
            encoded.then(|| SCRIPT.to_vec())
        });
    }
}

struct Unpacks;

impl Change for Unpacks {
    fn change(config: &mut InstanceConfig, _: &Capabilities) {
        replace(config, |bytes| {
            bytes.starts_with(b"\x1f\x8b").then(|| SCRIPT.to_vec())
        });
    }
}

struct RemovesMark;

impl Change for RemovesMark {
    fn change(config: &mut InstanceConfig, _: &Capabilities) {
        let mark = b"\xEF\xBB\xBF";
        replace(config, |bytes| bytes.strip_prefix(mark).map(<[u8]>::to_vec));
    }
}

struct CutsTheLargest;

impl Change for CutsTheLargest {
    fn change(config: &mut InstanceConfig, declared: &Capabilities) {
        let most = declared.max_user_data_bytes;
        replace(config, |bytes| {
            (bytes.len() == most).then(|| bytes[..most - 1].to_vec())
        });
    }
}

struct ConvertsLineEnds;

impl Change for ConvertsLineEnds {
    fn change(config: &mut InstanceConfig, _: &Capabilities) {
        replace(config, |bytes| {
            let kept = bytes.iter().copied().filter(|byte| *byte != b'\r');
            Some(kept.collect())
        });
    }
}

struct Reencodes;

impl Change for Reencodes {
    fn change(config: &mut InstanceConfig, _: &Capabilities) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned().into_bytes();
        replace(config, |bytes| Some(text(bytes)));
    }
}
