//! How values that a backend returned are shown in messages and transcripts: in a few plain words.
//!
//! Owns the choice of what is worth showing. It shows no user data, which is long and may be secret, and tags only
//! where a message is about them.

mod fields;

use std::{any::Any, collections::BTreeSet, fmt, net::IpAddr};

use chrono::{DateTime, Utc};
use fleetwright::{
    AccountId, CloudInstanceState, ConsoleOutput, ConsoleSession, ImageId, InstanceConfig,
    InstanceFilter, InstanceId, InstanceInfo, InstanceStatus, InstanceType, LaunchFailure,
    LaunchRecord, LaunchToken, ListItem, MacAddress, NetworkId, ProvisionError, Scope,
    SecurityGroupId, Tags, Zone,
};

pub(crate) use fields::{addresses, gigabytes, quoted};

/// A value that a message can show.
pub(crate) trait Shown {
    /// Returns the value in words that complete "it returned …".
    fn shown(&self) -> String;
}

impl Shown for () {
    fn shown(&self) -> String {
        "ok".to_owned()
    }
}

/// Types that are shown as they are displayed.
macro_rules! shown_as_displayed {
    ($($shown:ty),+ $(,)?) => {$(
        impl Shown for $shown {
            fn shown(&self) -> String {
                self.to_string()
            }
        }
    )+};
}

shown_as_displayed!(
    AccountId,
    CloudInstanceState,
    DateTime<Utc>,
    ImageId,
    InstanceId,
    InstanceType,
    IpAddr,
    MacAddress,
    NetworkId,
    Scope,
    SecurityGroupId,
    Zone,
    bool,
    u32,
    u64,
    usize,
);

impl Shown for InstanceInfo {
    fn shown(&self) -> String {
        format!("{} {}", self.id, self.state)
    }
}

impl Shown for InstanceStatus {
    fn shown(&self) -> String {
        format!("{} {}", self.id, self.state)
    }
}

impl Shown for Tags {
    fn shown(&self) -> String {
        let pairs: Vec<_> = self.iter().collect();
        pairs.shown()
    }
}

/// A tag.
impl Shown for (&str, &str) {
    fn shown(&self) -> String {
        let plain = |text: &str| {
            let is_plain = !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic());
            if is_plain {
                text.to_owned()
            } else {
                format!("{text:?}")
            }
        };
        format!("{}={}", plain(self.0), plain(self.1))
    }
}

impl Shown for LaunchFailure {
    fn shown(&self) -> String {
        let code = self.native_code.as_deref().unwrap_or("none");
        format!("{} (code {code})", self.kind)
    }
}

impl Shown for LaunchRecord {
    fn shown(&self) -> String {
        match self {
            Self::Found(instances) => format!("found {}", instances.shown()),
            Self::Terminated(instances) => format!("terminated {}", instances.shown()),
            Self::NotFound => "not found".to_owned(),
        }
    }
}

impl Shown for ListItem {
    fn shown(&self) -> String {
        match self {
            Self::Instance(info) => info.shown(),
            Self::Gap { scope, error } => format!("a gap in {scope}: {error}"),
        }
    }
}

impl Shown for ConsoleOutput {
    fn shown(&self) -> String {
        format!("{} bytes", self.text.len())
    }
}

impl Shown for ConsoleSession {
    fn shown(&self) -> String {
        "a session".to_owned()
    }
}

impl Shown for ProvisionError {
    fn shown(&self) -> String {
        format!("error: {self}")
    }
}

impl<T: Shown + ?Sized> Shown for &T {
    fn shown(&self) -> String {
        (**self).shown()
    }
}

impl<T: Shown> Shown for Option<T> {
    fn shown(&self) -> String {
        self.as_ref()
            .map_or_else(|| "none".to_owned(), Shown::shown)
    }
}

impl<T: Shown> Shown for [T] {
    /// The first few, since a list may have a thousand.
    fn shown(&self) -> String {
        const MOST: usize = 8;
        let mut shown: Vec<_> = self.iter().take(MOST).map(Shown::shown).collect();
        if self.len() > MOST {
            shown.push(format!("{} more", self.len() - MOST));
        }
        if shown.is_empty() {
            return "nothing".to_owned();
        }
        shown.join(", ")
    }
}

impl<T: Shown> Shown for Vec<T> {
    fn shown(&self) -> String {
        self.as_slice().shown()
    }
}

impl<T: Shown> Shown for BTreeSet<T> {
    fn shown(&self) -> String {
        self.iter().collect::<Vec<_>>().shown()
    }
}

impl<T: Shown, E: Shown> Shown for Result<T, E> {
    fn shown(&self) -> String {
        match self {
            Ok(value) => value.shown(),
            Err(error) => error.shown(),
        }
    }
}

/// Shows a value.
pub(crate) fn shown<T: Shown + ?Sized>(value: &T) -> String {
    value.shown()
}

/// Shows what a filter selects, after "a list of".
pub(crate) fn shown_filter(filter: &InstanceFilter) -> String {
    let states = shown_states(filter);
    let tags = if filter.tags.is_empty() {
        "any tags".to_owned()
    } else {
        filter.tags.shown()
    };
    format!("{tags} in {states}")
}

/// Shows the states that a filter selects.
pub(crate) fn shown_states(filter: &InstanceFilter) -> String {
    if filter.states.is_empty() {
        "any state but terminated".to_owned()
    } else {
        filter.states.shown()
    }
}

/// Shows every field of a status that two reads can differ in.
pub(crate) fn details(result: &Result<InstanceStatus, ProvisionError>) -> String {
    let Ok(status) = result else {
        return result.shown();
    };
    let mut text = status.shown();
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            text += &format!(", {name} {value}");
        }
    };
    add("native state", status.native_state.clone());
    add("reason", status.state_reason.clone());
    let failure = status.launch_failure.as_ref();
    add("launch failure", failure.map(Shown::shown));
    add(
        "private address",
        status.private_ip.map(|ip| ip.to_string()),
    );
    add("public address", status.public_ip.map(|ip| ip.to_string()));
    let mac = status.mac_address.as_ref();
    add("hardware address", mac.map(ToString::to_string));
    text
}

/// Shows a result of any type.
pub(crate) fn shown_result<T: fmt::Debug + 'static>(result: &Result<T, ProvisionError>) -> String {
    match result {
        Ok(value) => shown_any(value),
        Err(error) => error.shown(),
    }
}

/// Shows a value of any type: as [`Shown`] if a call of a backend returns this type, else as its debug
/// output.
pub(crate) fn shown_any<T: fmt::Debug + 'static>(value: &T) -> String {
    fn of<T: Shown + 'static>(value: &dyn Any) -> Option<String> {
        value.downcast_ref::<T>().map(Shown::shown)
    }
    let known = of::<()>(value)
        .or_else(|| of::<InstanceInfo>(value))
        .or_else(|| of::<InstanceStatus>(value))
        .or_else(|| of::<Vec<InstanceInfo>>(value))
        .or_else(|| of::<LaunchRecord>(value))
        .or_else(|| of::<ImageId>(value))
        .or_else(|| of::<ConsoleOutput>(value))
        .or_else(|| of::<ConsoleSession>(value));
    known.unwrap_or_else(|| format!("{value:?}"))
}

/// Returns the name of an enum's variant in words: `ResponseLost` is "response lost". The number, time or
/// string that the variant contains follows in parentheses.
pub(crate) fn in_words(variant: &impl fmt::Debug) -> String {
    let text = format!("{variant:?}");
    let end = text.find(|c: char| !c.is_alphanumeric());
    let (name, rest) = text.split_at(end.unwrap_or(text.len()));
    let mut words = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.extend(c.to_lowercase());
    }
    match rest.trim_matches(['(', ')', '"']) {
        "" => words,
        content => format!("{words} ({content})"),
    }
}

/// Shows a config. Tags and user data are left out.
pub(crate) fn shown_config(config: &InstanceConfig) -> String {
    let token = config
        .launch_token
        .as_ref()
        .map_or("none", LaunchToken::as_str);
    format!("type {}, token {token}", config.instance_type)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::WireFault;

    #[test]
    fn long_list_is_cut() {
        let id = |number: usize| InstanceId::new(format!("i-{number}")).unwrap();
        let ids: Vec<_> = (1..=10).map(id).collect();
        assert_eq!(
            ids.shown(),
            "i-1, i-2, i-3, i-4, i-5, i-6, i-7, i-8, 2 more"
        );
        assert_eq!(ids[..0].shown(), "nothing");
    }

    #[test]
    fn tags_are_shown_in_words() {
        let tags = Tags::new().with("kit-one", "1").unwrap();
        let tags = tags.with("kit-two", "a b").unwrap();
        assert_eq!(tags.shown(), "kit-one=1, kit-two=\"a b\"");
        assert_eq!(Tags::new().shown(), "nothing");
        let mut filter = InstanceFilter::new();
        filter.tags = tags;
        let shown = shown_filter(&filter);
        assert_eq!(
            shown,
            "kit-one=1, kit-two=\"a b\" in any state but terminated"
        );
    }

    #[test]
    fn variant_is_shown_in_words() {
        assert_eq!(in_words(&WireFault::ServerErrorAfter), "server error after");
        let throttled = WireFault::Throttled(Duration::from_secs(7));
        assert_eq!(in_words(&throttled), "throttled (7s)");
        let late = WireFault::FailsLate("NoMachine".to_owned());
        assert_eq!(in_words(&late), "fails late (NoMachine)");
    }

    #[test]
    fn value_of_another_type_is_shown_as_its_debug_output() {
        assert_eq!(shown_any(&()), "ok");
        assert_eq!(shown_any(&LaunchRecord::NotFound), "not found");
        assert_eq!(shown_any(&7), "7");
    }
}
