//! Invalid input: the error names field and limit, and nothing is created.

use fleetwright::{
    Effect, ErrorKind, ImageId, InstanceConfig, InstanceId, InstanceProvisioner as _, InstanceType,
    InvalidValue, Problem, RetryAdvice, SnapshotRequest, TagChange, Tags, UserData,
};
use fleetwright_memory::WireCall;

use crate::{
    calls::{self, send, snapshot_state},
    support::{blue, brisk, builder, many, open, plain, running},
};

fn tags(count: usize) -> Tags {
    (0..count).fold(Tags::new(), |tags, number| {
        tags.with(format!("k{number}"), "").unwrap()
    })
}

/// Launches `config`, alone and in a batch, and returns the validation error.
pub(crate) async fn refused(config: &InstanceConfig) -> InvalidValue {
    let (cloud, provisioner) = open(
        builder()
            .offer_image(ImageId::new("image-1").unwrap())
            .offer_image(ImageId::new("image-2").unwrap())
            .offer_type(InstanceType::new("small").unwrap())
            .offer_type(InstanceType::new("large").unwrap()),
    );
    let one = provisioner.launch_instance(config).await.unwrap_err();
    let batch = provisioner
        .launch_instances(config, many(3))
        .await
        .unwrap_err();
    for error in [&one, &batch] {
        assert_eq!(
            (error.kind(), error.effect(), error.retry()),
            (ErrorKind::Invalid, Effect::None, RetryAdvice::Never)
        );
        assert_eq!(error.native_code(), Some("InvalidParameter"));
    }
    assert!(cloud.oracle().leftovers().is_empty());
    assert!(cloud.oracle().instances().is_empty());
    one.invalid_value().unwrap().clone()
}

#[tokio::test(start_paused = true)]
async fn invalid_configs_cannot_be_built() {
    let cases = [
        (InstanceConfig::builder("", "small").build(), "image"),
        (
            InstanceConfig::builder("image-1", "").build(),
            "instance type",
        ),
        (blue().disk_size_gb(0).build(), "disk size"),
        (blue().user_data("").build(), "user data"),
        (blue().tag("", "x").build(), "tags"),
        (
            blue().tag("fleetwright:x", "y").build(),
            "tags[\"fleetwright:x\"]",
        ),
        (blue().launch_token("").build(), "launch token"),
    ];
    for (config, field) in cases {
        assert_eq!(config.unwrap_err().field(), field);
    }
}

#[tokio::test(start_paused = true)]
async fn error_for_oversized_user_data_names_the_limit() {
    let mut config = plain();
    config.user_data = Some(UserData::new(vec![7; 16 * 1024 + 1]).unwrap());
    let wrong = refused(&config).await;
    assert_eq!(wrong.field(), "user data");
    let (actual, limit, unit) = (16_385, 16_384, "bytes");
    assert_eq!(
        *wrong.problem(),
        Problem::TooLong {
            actual,
            limit,
            unit
        }
    );
    config.user_data = Some(UserData::new(vec![7; 16 * 1024]).unwrap());
    open(builder()).1.launch_instance(&config).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn error_for_invalid_tags_names_tag_and_limit() {
    let long = |actual, limit| Problem::TooLong {
        actual,
        limit,
        unit: "characters",
    };
    let cases = [
        (
            tags(51),
            "tags".to_owned(),
            Problem::TooMany {
                actual: 51,
                limit: 50,
            },
        ),
        (
            Tags::new().with("k".repeat(129), "").unwrap(),
            format!("tags[\"{}…\"]", "k".repeat(40)),
            long(129, 128),
        ),
        (
            Tags::new().with("k", "ä".repeat(257)).unwrap(),
            "tags[\"k\"]".to_owned(),
            long(257, 256),
        ),
        (
            Tags::new().with("Memory:x", "").unwrap(),
            "tags[\"Memory:x\"]".to_owned(),
            Problem::Reserved {
                prefix: "memory:".into(),
            },
        ),
    ];
    for (tags, field, problem) in cases {
        let mut config = plain();
        config.tags = tags.clone();
        let wrong = refused(&config).await;
        assert_eq!((wrong.field(), wrong.problem()), (field.as_str(), &problem));
        // Tag changes and the tags of a snapshot have the same limits.
        let (cloud, provisioner) = open(brisk());
        let id = running(&provisioner).await.id;
        let before = snapshot_state(&cloud);
        let mut change = TagChange::new();
        change.set = tags.clone();
        change.remove = ["fleet".to_owned()].into();
        let mut request = SnapshotRequest::new("s").unwrap();
        request.tags = tags;
        let results = [
            provisioner.update_tags(&id, &change).await,
            provisioner.snapshot_image(&id, &request).await.map(drop),
        ];
        for result in results {
            let error = result.unwrap_err();
            assert_eq!(
                (error.kind(), error.effect()),
                (ErrorKind::Invalid, Effect::None)
            );
            assert_eq!(error.invalid_value(), Some(&wrong));
        }
        assert_eq!(snapshot_state(&cloud), before);
    }
    let mut config = plain();
    config.tags = tags(48)
        .with("k".repeat(128), "ä".repeat(256))
        .and_then(|tags| tags.with("memory", ""))
        .unwrap();
    let (cloud, provisioner) = open(builder());
    let info = provisioner.launch_instance(&config).await.unwrap();
    assert_eq!(
        cloud.oracle().instance(&info.id).unwrap().info.tags,
        config.tags
    );
}

#[tokio::test(start_paused = true)]
async fn calls_with_an_unknown_id_are_refused() {
    let unknown = InstanceId::new("i-0123456789abcdef").unwrap();
    for call in calls::ALL {
        let (cloud, provisioner) = open(brisk());
        running(&provisioner).await;
        let before = snapshot_state(&cloud);
        let result = send(call, &provisioner, &unknown).await;
        if matches!(
            call,
            WireCall::Launch | WireCall::ListPage | WireCall::FindLaunch
        ) {
            result.unwrap();
            continue;
        }
        let error = result.unwrap_err();
        assert_eq!(
            (error.kind(), error.effect()),
            (ErrorKind::NotFound, Effect::None),
            "{call}"
        );
        assert!(error.message().contains(unknown.as_str()), "{error}");
        assert_eq!(snapshot_state(&cloud), before, "{call}");
    }
}

#[tokio::test(start_paused = true)]
async fn snapshot_name_is_checked_when_set_through_the_field() {
    let (cloud, provisioner) = open(brisk());
    let id = running(&provisioner).await.id;
    for name in [String::new(), "a b".into(), "x".repeat(129)] {
        let mut request = SnapshotRequest::new("fine").unwrap();
        request.name = name;
        let error = provisioner.snapshot_image(&id, &request).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.effect()),
            (ErrorKind::Invalid, Effect::None)
        );
        assert_eq!(error.invalid_value().unwrap().field(), "snapshot name");
    }
    assert_eq!(cloud.oracle().images(), []);
}
