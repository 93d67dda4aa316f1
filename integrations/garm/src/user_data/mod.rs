//! What a machine runs at its first boot.
//!
//! Owns where the install script comes from, and the limits of the clouds. The document contains the instance token, so nothing of it is ever
//! in a message.

mod linux;
mod template;
mod windows;

use std::{fmt, io::Write as _};

use flate2::{Compression, GzBuilder};

use crate::{
    bootstrap::{BootstrapInstance, OsType},
    cloud::WindowsBy,
    failure::Failure,
    settings::{Install, LaunchSettings, decode_text},
};

/// The largest value of a metadata key on Compute Engine, in bytes ("About VM metadata").
const MAX_METADATA_BYTES: usize = 256 * 1024;

/// What a launch gets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FirstBoot {
    /// The user data.
    pub(crate) user_data: Option<Bytes>,
    /// The script of a Windows machine that gets it as a metadata key.
    pub(crate) windows_script: Option<WindowsScript>,
}

/// User data. `Debug` shows only its size.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Bytes(Vec<u8>);

/// A script of PowerShell. `Debug` shows only its size.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct WindowsScript(String);

impl Bytes {
    /// Returns the user data for a cloud that takes `limit` bytes: compressed if it does not fit otherwise, and cloud-init reads it.
    ///
    /// # Errors
    /// It is too large. The message has the sizes.
    pub(crate) fn within(self, limit: usize, os: OsType) -> Result<Vec<u8>, Failure> {
        let plain = self.0.len();
        if plain <= limit {
            return Ok(self.0);
        }
        if os == OsType::Windows {
            return Err(Failure::new(format!(
                "the user data has {plain} bytes, and the cloud takes {limit}; Windows cannot read it compressed: set install = \"metadata\", or \
                 put large scripts into the image"
            )));
        }
        let packed = gzip(&self.0)?;
        if packed.len() <= limit {
            return Ok(packed);
        }
        let packed = packed.len();
        Err(Failure::new(format!(
            "the user data has {plain} bytes, {packed} compressed, and the cloud takes {limit}: set install = \"metadata\", shorten \
             pre_install_scripts and the CA bundle, or put them into the image"
        )))
    }
}

#[cfg(feature = "gcp")]
impl WindowsScript {
    /// Returns the text, for the launch and nothing else.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bytes({} bytes)", self.0.len())
    }
}

impl fmt::Debug for WindowsScript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WindowsScript({} bytes)", self.0.len())
    }
}

/// Where the install script comes from.
struct Source {
    /// Whether GARM is asked for it.
    fetch: bool,
    /// What is run if GARM is not asked, or does not have it.
    fallback: Option<String>,
}

/// Returns what a machine gets.
///
/// # Errors
/// The cloud has no such machines, or there is no install script.
pub(crate) fn first_boot(
    document: &BootstrapInstance,
    settings: &LaunchSettings,
    windows: WindowsBy,
) -> Result<FirstBoot, Failure> {
    let source = source(document, settings)?;
    if document.os_type == OsType::Linux {
        let bytes = linux::cloud_config(document, settings, &source)?;
        return Ok(FirstBoot {
            user_data: Some(Bytes(bytes)),
            windows_script: None,
        });
    }
    if !settings.pre_install_scripts.is_empty() {
        let message =
            "pre_install_scripts are for Linux: put them into the image of a Windows pool";
        return Err(Failure::new(message));
    }
    let script = windows::script(document, settings, &source)?;
    match windows {
        WindowsBy::UserData => Ok(FirstBoot {
            user_data: Some(Bytes(windows::as_user_data(&script).into_bytes())),
            windows_script: None,
        }),
        WindowsBy::Metadata if script.len() <= MAX_METADATA_BYTES => Ok(FirstBoot {
            user_data: None,
            windows_script: Some(WindowsScript(script)),
        }),
        WindowsBy::Metadata => Err(Failure::new(format!(
            "the script of the machine has {} bytes, and the cloud takes {MAX_METADATA_BYTES}: set install = \"metadata\"",
            script.len()
        ))),
        WindowsBy::Nothing => Err(Failure::new(
            "this cloud's machines run Linux only: set os_type of the pool to linux",
        )),
    }
}

/// Decides where the install script comes from.
///
/// A GARM that has an install script for each machine sends a template that fetches it, unless the pool has a template of its own
/// (cloudbase/garm, `util.MaybeAddWrapperToExtraSpecs`). An older one has no such route, and answers with 404.
fn source(document: &BootstrapInstance, settings: &LaunchSettings) -> Result<Source, Failure> {
    let template = settings.runner_install_template.as_deref();
    let template = template.and_then(decode_text);
    let is_wrapper = |text: &String| text.contains("/install-script");
    let is_offered = template.as_ref().is_some_and(is_wrapper);
    let own = template.filter(|text| !is_wrapper(text));
    let (fetch, script) = match settings.install.unwrap_or_default() {
        Install::Metadata => (true, false),
        Install::Auto => (true, !is_offered),
        Install::Script => (false, true),
    };
    if fetch && (document.metadata_url.is_empty() || document.instance_token.reveal().is_empty()) {
        return Err(Failure::new(
            "GARM sent no metadata-url or no instance-token: set metadata_url of the controller (garm-cli controller update)",
        ));
    }
    if !script {
        return Ok(Source {
            fetch,
            fallback: None,
        });
    }
    let fallback = match (own, document.os_type) {
        (Some(own), _) => template::expand(&own, document, settings),
        (None, OsType::Linux) => linux::install_script(document, settings),
        (None, OsType::Windows) => windows::install_script(document),
    };
    match fallback {
        Err(failure) if !fetch => Err(failure),
        // GARM can render every template of its own, and has a script for every forge.
        Err(_) => Ok(Source {
            fetch,
            fallback: None,
        }),
        Ok(script) => Ok(Source {
            fetch,
            fallback: Some(script),
        }),
    }
}

/// Compresses, always to the same bytes.
fn gzip(bytes: &[u8]) -> Result<Vec<u8>, Failure> {
    let mut encoder = GzBuilder::new()
        .mtime(0)
        .write(Vec::new(), Compression::best());
    let written = encoder.write_all(bytes).and_then(|()| encoder.finish());
    written.map_err(|error| Failure::new(format!("the user data cannot be compressed: {error}")))
}

#[cfg(test)]
mod tests;
