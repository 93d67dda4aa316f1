//! CreateTags, DeleteTags, DescribeTags.

use super::{Lab, all};

fn keys(lab: &mut Lab, id: &str) -> Vec<String> {
    let call = format!("DescribeTags&Filter.1.Name=resource-id&Filter.1.Value.1={id}");
    all(&lab.ok(&call), "key")
}

#[test]
fn tags_are_added_replaced_and_deleted_as_asked() {
    let mut lab = Lab::new();
    let id = lab.running("");
    let on = |text: &str| format!("{}&ResourceId.1={id}{}", &text[..10], &text[10..]);
    assert_eq!(
        all(
            &lab.ok(&on("CreateTags&Tag.1.Key=a&Tag.1.Value=1&Tag.2.Key=b")),
            "return"
        ),
        ["true"]
    );
    lab.ok(&on("CreateTags&Tag.1.Key=a&Tag.1.Value=2"));
    let reply = lab.ok("DescribeTags");
    assert_eq!(
        (all(&reply, "key"), all(&reply, "value")),
        (vec!["a".into(), "b".into()], vec!["2".into()])
    );
    assert_eq!(all(&reply, "resourceType"), ["instance", "instance"]);
    // With a value, only that value goes; without, whatever it is.
    lab.ok(&on("DeleteTags&Tag.1.Key=a&Tag.1.Value=1"));
    assert_eq!(keys(&mut lab, &id), ["a", "b"]);
    lab.ok(&on("DeleteTags&Tag.1.Key=b&Tag.1.Value="));
    assert_eq!(keys(&mut lab, &id), ["a"]);
    lab.ok(&on("CreateTags&Tag.1.Key=c"));
    lab.ok(&on("DeleteTags&Tag.1.Key=a"));
    assert_eq!(keys(&mut lab, &id), ["c"]);
    lab.ok(&on("DeleteTags"));
    assert_eq!(keys(&mut lab, &id), [""; 0]);
}

#[test]
fn everything_can_be_tagged_and_one_bad_id_spares_all() {
    let mut lab = Lab::new();
    let id = lab.running("");
    let volume = all(&lab.ok("DescribeVolumes"), "volumeId").remove(0);
    let nic = all(&lab.ok("DescribeNetworkInterfaces"), "networkInterfaceId").remove(0);
    let image = "ami-00000000000000001";
    let ids =
        format!("&ResourceId.1={id}&ResourceId.2={volume}&ResourceId.3={nic}&ResourceId.4={image}");
    for (bad, code) in [
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
        let call = format!("CreateTags{ids}&ResourceId.5={bad}&Tag.1.Key=a");
        assert_eq!(lab.code(&call), code, "{bad}");
    }
    assert_eq!(all(&lab.ok("DescribeTags"), "key"), [""; 0]);
    lab.ok(&format!("CreateTags{ids}&Tag.1.Key=a"));
    let reply = lab.ok("DescribeTags&Filter.1.Name=key&Filter.1.Value.1=a");
    assert_eq!(
        all(&reply, "resourceId"),
        [id.as_str(), &volume, &nic, image]
    );
    assert_eq!(
        all(&reply, "resourceType"),
        ["instance", "volume", "network-interface", "image"]
    );
    let images = lab.ok("DescribeTags&Filter.1.Name=resource-type&Filter.1.Value.1=image");
    assert_eq!(all(&images, "resourceId"), [image]);
    lab.ok(&format!("DeleteTags{ids}&Tag.1.Key=a"));
    assert_eq!(all(&lab.ok("DescribeTags"), "key"), [""; 0]);
}

#[test]
fn limits_hold_for_the_whole_resource() {
    let mut lab = Lab::new();
    let id = lab.running("");
    let tags = |from: u32, to: u32| {
        (from..=to)
            .map(|n| format!("&Tag.{n}.Key=k{n}"))
            .collect::<String>()
    };
    lab.ok(&format!("CreateTags&ResourceId.1={id}{}", tags(1, 50)));
    assert_eq!(
        lab.code(&format!("CreateTags&ResourceId.1={id}{}", tags(51, 51))),
        "TagLimitExceeded"
    );
    lab.ok(&format!(
        "CreateTags&ResourceId.1={id}&Tag.1.Key=k1&Tag.1.Value=new"
    ));
    assert_eq!(
        lab.code(&format!("CreateTags&ResourceId.1={id}")),
        "MissingParameter"
    );
    assert_eq!(lab.code("CreateTags&Tag.1.Key=a"), "MissingParameter");
    assert_eq!(
        lab.code(&format!("CreateTags&ResourceId.1={id}&Tag.1.Key=AWS:x")),
        "InvalidParameterValue"
    );
    assert_eq!(
        lab.code(&format!(
            "CreateTags&ResourceId.1={id}&Tag.1.Key=k2&DryRun=true"
        )),
        "DryRunOperation"
    );
    assert_eq!(keys(&mut lab, &id).len(), 50);
}
