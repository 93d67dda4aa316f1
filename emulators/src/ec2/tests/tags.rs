//! CreateTags, DeleteTags, DescribeTags.

use super::{Fixture, all};

fn keys(fixture: &mut Fixture, id: &str) -> Vec<String> {
    let call = format!("DescribeTags&Filter.1.Name=resource-id&Filter.1.Value.1={id}");
    all(&fixture.ok(&call), "key")
}

#[test]
fn tags_are_added_replaced_and_deleted() {
    let mut fixture = Fixture::new();
    let id = fixture.launch_running("");
    let on = |text: &str| format!("{}&ResourceId.1={id}{}", &text[..10], &text[10..]);
    assert_eq!(
        all(
            &fixture.ok(&on("CreateTags&Tag.1.Key=a&Tag.1.Value=1&Tag.2.Key=b")),
            "return"
        ),
        ["true"]
    );
    fixture.ok(&on("CreateTags&Tag.1.Key=a&Tag.1.Value=2"));
    let response = fixture.ok("DescribeTags");
    assert_eq!(
        (all(&response, "key"), all(&response, "value")),
        (vec!["a".into(), "b".into()], vec!["2".into()])
    );
    assert_eq!(all(&response, "resourceType"), ["instance", "instance"]);
    // With a value, a tag is deleted only if it has this value; without one, always.
    fixture.ok(&on("DeleteTags&Tag.1.Key=a&Tag.1.Value=1"));
    assert_eq!(keys(&mut fixture, &id), ["a", "b"]);
    fixture.ok(&on("DeleteTags&Tag.1.Key=b&Tag.1.Value="));
    assert_eq!(keys(&mut fixture, &id), ["a"]);
    fixture.ok(&on("CreateTags&Tag.1.Key=c"));
    fixture.ok(&on("DeleteTags&Tag.1.Key=a"));
    assert_eq!(keys(&mut fixture, &id), ["c"]);
    fixture.ok(&on("DeleteTags"));
    assert_eq!(keys(&mut fixture, &id), [""; 0]);
}

#[test]
fn every_resource_can_be_tagged_and_one_invalid_id_changes_none() {
    let mut fixture = Fixture::new();
    let id = fixture.launch_running("");
    let volume = all(&fixture.ok("DescribeVolumes"), "volumeId").remove(0);
    let nic = all(
        &fixture.ok("DescribeNetworkInterfaces"),
        "networkInterfaceId",
    )
    .remove(0);
    let image = "ami-00000000000000001";
    let ids =
        format!("&ResourceId.1={id}&ResourceId.2={volume}&ResourceId.3={nic}&ResourceId.4={image}");
    for (invalid, code) in [
        ("i-00000000000000bad", "InvalidInstanceID.NotFound"),
        ("vol-00000000000000bad", "InvalidVolume.NotFound"),
        (
            "eni-00000000000000bad",
            "InvalidNetworkInterfaceID.NotFound",
        ),
        ("ami-00000000000000bad", "InvalidAMIID.NotFound"),
        ("vol-x", "InvalidVolumeID.Malformed"),
        ("web", "InvalidID"),
    ] {
        let call = format!("CreateTags{ids}&ResourceId.5={invalid}&Tag.1.Key=a");
        assert_eq!(fixture.refusal_code(&call), code, "{invalid}");
    }
    assert_eq!(all(&fixture.ok("DescribeTags"), "key"), [""; 0]);
    fixture.ok(&format!("CreateTags{ids}&Tag.1.Key=a"));
    let response = fixture.ok("DescribeTags&Filter.1.Name=key&Filter.1.Value.1=a");
    assert_eq!(
        all(&response, "resourceId"),
        [id.as_str(), &volume, &nic, image]
    );
    assert_eq!(
        all(&response, "resourceType"),
        ["instance", "volume", "network-interface", "image"]
    );
    let images = fixture.ok("DescribeTags&Filter.1.Name=resource-type&Filter.1.Value.1=image");
    assert_eq!(all(&images, "resourceId"), [image]);
    fixture.ok(&format!("DeleteTags{ids}&Tag.1.Key=a"));
    assert_eq!(all(&fixture.ok("DescribeTags"), "key"), [""; 0]);
}

#[test]
fn limits_hold_for_the_whole_resource() {
    let mut fixture = Fixture::new();
    let id = fixture.launch_running("");
    let tags = |from: u32, to: u32| {
        (from..=to)
            .map(|n| format!("&Tag.{n}.Key=k{n}"))
            .collect::<String>()
    };
    fixture.ok(&format!("CreateTags&ResourceId.1={id}{}", tags(1, 50)));
    assert_eq!(
        fixture.refusal_code(&format!("CreateTags&ResourceId.1={id}{}", tags(51, 51))),
        "TagLimitExceeded"
    );
    fixture.ok(&format!(
        "CreateTags&ResourceId.1={id}&Tag.1.Key=k1&Tag.1.Value=new"
    ));
    assert_eq!(
        fixture.refusal_code(&format!("CreateTags&ResourceId.1={id}")),
        "MissingParameter"
    );
    assert_eq!(
        fixture.refusal_code("CreateTags&Tag.1.Key=a"),
        "MissingParameter"
    );
    assert_eq!(
        fixture.refusal_code(&format!("CreateTags&ResourceId.1={id}&Tag.1.Key=AWS:x")),
        "InvalidParameterValue"
    );
    assert_eq!(
        fixture.refusal_code(&format!(
            "CreateTags&ResourceId.1={id}&Tag.1.Key=k2&DryRun=true"
        )),
        "DryRunOperation"
    );
    assert_eq!(keys(&mut fixture, &id).len(), 50);
}
