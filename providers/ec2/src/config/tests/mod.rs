//! Valid and invalid launch configs.

use super::*;

#[test]
fn check_names_the_invalid_field() {
    let mut config = Ec2LaunchConfig::new();
    config.check().unwrap();
    config.extra_volumes = vec![
        ExtraVolume::new("/dev/sdf", 9),
        ExtraVolume::new("/dev/sdf", 9),
    ];
    assert_eq!(
        config.check().unwrap_err().field(),
        "extra_volumes[1].device"
    );
    config.extra_volumes[1] = ExtraVolume::new("/dev/sdg", 0);
    assert_eq!(
        config.check().unwrap_err().field(),
        "extra_volumes[1].size_gb"
    );
    config.extra_volumes.clear();
    config.metadata.hop_limit = 0;
    assert_eq!(config.check().unwrap_err().field(), "metadata.hop_limit");
    config.metadata.hop_limit = 1;
    config.key_pair = Some(" ".to_owned());
    assert_eq!(config.check().unwrap_err().field(), "key_pair");
}

#[test]
fn config_is_read_from_json_and_unknown_fields_are_refused() {
    let text = r#"{"subnets":{"us-east-1a":"subnet-1"},"metadata":{"tokens":"optional"},
        "extra_volumes":[{"device":"/dev/sdf","size_gb":100,"on_termination":"keep"}]}"#;
    let config: Ec2LaunchConfig = serde_json::from_str(text).unwrap();
    assert_eq!(config.metadata.tokens, MetadataTokens::Optional);
    assert_eq!(config.metadata.hop_limit, 2);
    assert_eq!(config.extra_volumes[0].on_termination, OnTermination::Keep);
    let text = serde_json::to_string(&config).unwrap();
    assert_eq!(
        serde_json::from_str::<Ec2LaunchConfig>(&text).unwrap(),
        config
    );
    assert!(serde_json::from_str::<Ec2LaunchConfig>(r#"{"subnet":"subnet-1"}"#).is_err());
}
