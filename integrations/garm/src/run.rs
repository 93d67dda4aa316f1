//! Runs one call: reads what it needs, and returns what is printed.

use std::io::Read;

use fleetwright::{
    ImageId, InstanceConfig, InstanceId, InstanceProvisioner, InstanceType, InvalidValue,
};
use serde::Deserialize;

use crate::{
    bootstrap::{BootstrapInstance, MAX_BYTES},
    call::{Call, Command, VERSIONS},
    cloud,
    config::ConfigFile,
    document,
    failure::Failure,
    fleet::{Fleet, NewInstance, Target},
    identity::{Controller, InstanceName, Pool, key},
    parent,
    settings::LaunchSettings,
    user_data::{FirstBoot, first_boot},
};

/// Runs the call that the environment describes, and returns what to print on standard output.
///
/// ```
/// let variable = |name: &str| (name == "GARM_COMMAND").then(|| "GetVersion".to_owned());
/// let answer = garm_provider_fleetwright::run(variable, std::io::empty())?;
/// assert!(answer.starts_with('v'));
/// # Ok::<(), garm_provider_fleetwright::Failure>(())
/// ```
///
/// # Errors
/// The failure, with its exit code.
pub fn run(variable: impl Fn(&str) -> Option<String>, input: impl Read) -> Result<String, Failure> {
    let call = Call::read(variable)?;
    match call.command {
        Command::GetVersion => Ok(format!("v{}", env!("CARGO_PKG_VERSION"))),
        Command::GetSupportedInterfaceVersions => json(&VERSIONS),
        Command::GetConfigJsonSchema => json(&document::schema::<ConfigFile>()),
        Command::GetExtraSpecsJsonSchema => json(&document::schema::<LaunchSettings>()),
        Command::ValidatePoolInfo => validate(&call, input).map(|()| String::new()),
        Command::CreateInstance => {
            let document = BootstrapInstance::parse(&read_all(input)?)?;
            block_on(create(&call, &document))
        }
        Command::DeleteInstance
        | Command::GetInstance
        | Command::ListInstances
        | Command::RemoveAllInstances
        | Command::StartInstance
        | Command::StopInstance => block_on(on_instances(&call)),
    }
}

/// Runs a call on one thread, until it is done or the process is asked to end.
fn block_on(work: impl Future<Output = Result<String, Failure>>) -> Result<String, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build();
    let runtime = runtime.map_err(|error| Failure::new(format!("the runtime: {error}")))?;
    let result = runtime.block_on(async {
        tokio::select! {
            result = work => result,
            failure = asked_to_end() => Err(failure),
        }
    });
    // A look-up of names may still block a thread.
    runtime.shutdown_background();
    result
}

async fn asked_to_end() -> Failure {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut terminate) => {
            terminate.recv().await;
            Failure::new(
                "the call was ended by SIGTERM; what it has begun is found again by the next call for the same instance",
            )
        }
        Err(_) => std::future::pending().await,
    }
}

async fn create(call: &Call, document: &BootstrapInstance) -> Result<String, Failure> {
    let controller = call.controller()?;
    let pool = call.pool(Some(&document.pool_id))?;
    let name = InstanceName::new(&document.name)?;
    let file = ConfigFile::load(&call.config_file()?)?;
    let settings = settings(&file, &document.extra_specs)?;
    let boot = first_boot(document, &settings, cloud::windows_by(&file))?;
    let script = boot.windows_script.clone();
    let cloud = cloud::open(&file, &settings, script.as_ref()).await?;
    let limit = cloud.capabilities().max_user_data_bytes;
    let config = launch_config(
        document,
        &settings,
        boot,
        limit,
        controller_tags(&controller, &name, &pool, document, &file),
    )?;
    let new = NewInstance { name, config };
    let fleet = Fleet::new(cloud.as_ref(), &controller);
    tokio::select! {
        created = fleet.create(&new) => json(&created?),
        () = parent::ended() => Err(Failure::new(
            "the GARM that started this creation has ended; the next one finds what it has begun by the name of the instance",
        )),
    }
}

/// Returns the settings of a launch: those of the file, and those of the pool over them.
fn settings(file: &ConfigFile, specs: &serde_json::Value) -> Result<LaunchSettings, Failure> {
    let pool = LaunchSettings::of_pool(specs);
    let pool =
        pool.map_err(|mistakes| Failure::new(format!("the extra specs of the pool: {mistakes}")))?;
    Ok(file.launch.overridden_by(pool))
}

fn controller_tags(
    controller: &Controller,
    name: &InstanceName,
    pool: &Pool,
    document: &BootstrapInstance,
    file: &ConfigFile,
) -> Result<fleetwright::Tags, InvalidValue> {
    let mut tags = controller.tags(name, pool)?;
    tags.insert(key::OS_TYPE, document.os_type.as_str())?;
    tags.insert(key::OS_ARCH, document.arch.as_str())?;
    if file.ec2.is_some() {
        // The console of EC2 shows it.
        tags.insert("Name", name.as_str())?;
    }
    Ok(tags)
}

fn launch_config(
    document: &BootstrapInstance,
    settings: &LaunchSettings,
    boot: FirstBoot,
    limit: usize,
    tags: Result<fleetwright::Tags, InvalidValue>,
) -> Result<InstanceConfig, Failure> {
    let invalid = |invalid: InvalidValue| Failure::new(invalid.to_string());
    let mut config = image_and_type(&document.image, &document.flavor).map_err(invalid)?;
    for (key, value) in &settings.tags {
        config.tags.insert(key, value).map_err(invalid)?;
    }
    for (key, value) in &tags.map_err(invalid)? {
        config.tags.insert(key, value).map_err(invalid)?;
    }
    if let Some(user_data) = boot.user_data {
        let bytes = user_data.within(limit, document.os_type)?;
        config.user_data = Some(fleetwright::UserData::new(bytes).map_err(invalid)?);
    }
    config.disk_size_gb = settings.disk_size_gb.and_then(std::num::NonZeroU32::new);
    config.placement = settings.placement().map_err(invalid)?;
    Ok(config)
}

fn image_and_type(image: &str, flavor: &str) -> Result<InstanceConfig, InvalidValue> {
    Ok(InstanceConfig::new(
        ImageId::new(image)?,
        InstanceType::new(flavor)?,
    ))
}

async fn on_instances(call: &Call) -> Result<String, Failure> {
    let controller = call.controller()?;
    let file = ConfigFile::load(&call.config_file()?)?;
    let settings = LaunchSettings::default();
    let cloud = cloud::open(&file, &settings, None).await?;
    let fleet = Fleet::new(cloud.as_ref(), &controller);
    let done = || String::new();
    match call.command {
        Command::ListInstances => json(&fleet.list(&call.pool(None)?).await?),
        Command::RemoveAllInstances => fleet.delete_all().await.map(|()| done()),
        Command::GetInstance => json(&fleet.describe(&target(call, &file)?).await?),
        Command::DeleteInstance => fleet.delete(&target(call, &file)?).await.map(|()| done()),
        Command::StartInstance => fleet.start(&target(call, &file)?).await.map(|()| done()),
        Command::StopInstance => fleet.stop(&target(call, &file)?).await.map(|()| done()),
        Command::CreateInstance
        | Command::GetVersion
        | Command::GetSupportedInterfaceVersions
        | Command::ValidatePoolInfo
        | Command::GetConfigJsonSchema
        | Command::GetExtraSpecsJsonSchema => Ok(done()),
    }
}

fn target(call: &Call, file: &ConfigFile) -> Result<Target, Failure> {
    let text = call.instance()?;
    if cloud::is_id(file, text) {
        let id = InstanceId::new(text);
        return id
            .map(Target::Id)
            .map_err(|invalid| Failure::new(format!("GARM_INSTANCE_ID: {invalid}")));
    }
    InstanceName::new(text).map(Target::Name)
}

/// The part of the document that a check needs. GARM sends none for it, other callers may.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PoolInfo {
    image: String,
    flavor: String,
    extra_specs: serde_json::Value,
}

/// Checks the settings of a pool, and the config file.
fn validate(call: &Call, input: impl Read) -> Result<(), Failure> {
    let bytes = read_all(input)?;
    let info = if bytes.iter().all(u8::is_ascii_whitespace) {
        PoolInfo::default()
    } else {
        let message =
            "the document on standard input is not JSON with image, flavor and extra_specs";
        serde_json::from_slice(&bytes).map_err(|_| Failure::new(message))?
    };
    let file = ConfigFile::load(&call.config_file()?)?;
    let mut specs = call.extra_specs()?;
    if specs.is_null() {
        specs = info.extra_specs;
    }
    settings(&file, &specs)?;
    let (image, flavor) = (info.image, info.flavor);
    if !image.is_empty() || !flavor.is_empty() {
        let checked = image_and_type(&image, &flavor);
        checked.map_err(|invalid| Failure::new(invalid.to_string()))?;
    }
    if !cloud::built().contains(&file.cloud().unwrap_or_default()) {
        return Err(Failure::new(format!(
            "this build has no support for {}: it has {}",
            file.cloud().unwrap_or("no cloud"),
            cloud::built().join(", ")
        )));
    }
    Ok(())
}

/// Reads standard input, up to the largest document.
fn read_all(input: impl Read) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let most = u64::try_from(MAX_BYTES).unwrap_or(u64::MAX);
    let read = input.take(most.saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(|error| Failure::new(format!("standard input cannot be read: {error}")))?;
    if bytes.len() > MAX_BYTES {
        return Err(Failure::new(format!(
            "the document on standard input has more than {MAX_BYTES} bytes"
        )));
    }
    Ok(bytes)
}

fn json(value: &impl serde::Serialize) -> Result<String, Failure> {
    serde_json::to_string(value).map_err(|error| Failure::new(format!("the answer: {error}")))
}
