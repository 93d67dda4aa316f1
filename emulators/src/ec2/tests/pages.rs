//! Pages: their items, their tokens, and invalid page parameters.

use super::{Fixture, all};
use crate::{cloud::inject::CallContext, ec2::engine::page::PageFault};
use std::num::NonZeroU32;

/// Returns the ids on every page of a list, page by page.
fn pages(fixture: &mut Fixture, call: &str, name: &str) -> Vec<Vec<String>> {
    let (mut pages, mut token) = (Vec::new(), String::new());
    loop {
        let response = fixture.ok(&format!("{call}{token}"));
        pages.push(all(&response, name));
        match all(&response, "nextToken").first() {
            None => return pages,
            Some(next) => token = format!("&NextToken={next}"),
        }
    }
}

#[test]
fn pages_cover_every_list_once_and_in_order() {
    let mut fixture = Fixture::new();
    let tag = "&TagSpecification.1.ResourceType=instance&TagSpecification.1.Tag.1.Key=a&TagSpecification.2.ResourceType=volume\
               &TagSpecification.2.Tag.1.Key=a&TagSpecification.2.Tag.2.Key=b";
    let ids = fixture.launch(12, tag);
    fixture.advance(100);
    for (call, name, sizes) in [
        (
            "DescribeInstances&MaxResults=5",
            "instanceId",
            vec![5, 5, 2],
        ),
        ("DescribeInstances&MaxResults=6", "instanceId", vec![6, 6]),
        ("DescribeInstances&MaxResults=1000", "instanceId", vec![12]),
        (
            "DescribeInstances&MaxResults=100000",
            "instanceId",
            vec![12],
        ),
        ("DescribeInstances", "instanceId", vec![12]),
        (
            "DescribeInstances&MaxResults=5&Filter.1.Name=tag-key&Filter.1.Value.1=a",
            "instanceId",
            vec![5, 5, 2],
        ),
        (
            "DescribeInstanceStatus&MaxResults=7",
            "availabilityZone",
            vec![7, 5],
        ),
        ("DescribeVolumes&MaxResults=5", "createTime", vec![5, 5, 2]),
        (
            "DescribeNetworkInterfaces&MaxResults=10",
            "networkInterfaceId",
            vec![10, 2],
        ),
        ("DescribeTags&MaxResults=10", "key", vec![10, 10, 10, 6]),
        (
            "DescribeInstanceTypes&MaxResults=6",
            "instanceType",
            vec![6, 5],
        ),
        ("DescribeImages&MaxResults=5", "imageId", vec![3]),
        ("DescribeSubnets&MaxResults=5", "subnetId", vec![3]),
        ("DescribeSecurityGroups&MaxResults=5", "groupId", vec![1]),
    ] {
        let pages = pages(&mut fixture, call, name);
        assert_eq!(
            pages.iter().map(Vec::len).collect::<Vec<_>>(),
            sizes,
            "{call}"
        );
        if name == "instanceId" {
            assert_eq!(pages.concat(), ids, "{call}");
        }
    }
    let tags = pages(&mut fixture, "DescribeTags&MaxResults=5", "resourceId").concat();
    assert_eq!(tags[..12], ids);
}

#[test]
fn page_size_knob_can_be_smaller_than_the_api_minimum() {
    let mut fixture = Fixture::with(|knobs| knobs.page_size = NonZeroU32::MIN);
    let ids = fixture.launch(3, "");
    assert_eq!(
        pages(&mut fixture, "DescribeInstances", "instanceId"),
        ids.iter().map(|id| vec![id.clone()]).collect::<Vec<_>>()
    );
    // A call with ids returns all of them, whatever the page size.
    let id_parameters = format!("DescribeInstances{}", super::id_parameters(&ids));
    assert_eq!(all(&fixture.ok(&id_parameters), "instanceId"), ids);
    let volumes: Vec<String> = fixture
        .engine
        .volumes
        .values()
        .map(|volume| volume.id.clone())
        .collect();
    let id_parameters: String = volumes
        .iter()
        .enumerate()
        .map(|(n, id)| format!("&VolumeId.{}={id}", n + 1))
        .collect();
    assert_eq!(
        all(
            &fixture.ok(&format!("DescribeVolumes{id_parameters}")),
            "createTime"
        )
        .len(),
        3
    );
}

#[test]
fn reservation_can_be_split_between_pages_of_a_growing_list() {
    let mut fixture = Fixture::new();
    let first = fixture.launch(7, "");
    let response = fixture.ok("DescribeInstances&MaxResults=5");
    let later = fixture.launch(1, "");
    let token = all(&response, "nextToken").remove(0);
    let rest = fixture.ok(&format!("DescribeInstances&MaxResults=5&NextToken={token}"));
    assert_eq!(all(&rest, "instanceId"), [&first[5..], &later[..]].concat());
    assert_eq!(all(&rest, "reservationId").len(), 2);
}

#[test]
fn page_parameters_are_checked() {
    let mut fixture = Fixture::new();
    let id = fixture.launch_running("");
    for (call, code) in [
        (
            format!("DescribeInstances&MaxResults=5&InstanceId.1={id}"),
            "InvalidParameterCombination",
        ),
        (
            "DescribeInstances&MaxResults=4".to_owned(),
            "InvalidParameterValue",
        ),
        (
            "DescribeInstances&MaxResults=-1".to_owned(),
            "InvalidParameterValue",
        ),
        (
            "DescribeInstances&NextToken=zzz".to_owned(),
            "InvalidPaginationToken",
        ),
        (
            "DescribeImages&MaxResults=5&ImageId.1=ami-00000000000000001".to_owned(),
            "InvalidParameterCombination",
        ),
        (
            "DescribeInstanceTypes&MaxResults=5&InstanceType.1=m5.large".to_owned(),
            "InvalidParameterCombination",
        ),
    ] {
        assert_eq!(fixture.refusal_code(&call), code, "{call}");
    }
    let volume = fixture
        .engine
        .volumes
        .values()
        .next()
        .map(|volume| volume.id.clone())
        .unwrap();
    assert_eq!(
        fixture.refusal_code(&format!("DescribeVolumes&MaxResults=5&VolumeId.1={volume}")),
        "InvalidParameterCombination"
    );
}

#[test]
fn page_faults_apply() {
    let mut fixture = Fixture::new();
    let ids = fixture.launch(7, "");
    let with_page_fault = |page_fault| CallContext {
        page_fault,
        ..CallContext::default()
    };
    let response = fixture
        .call_with_context(
            "DescribeInstances&MaxResults=5",
            &with_page_fault(PageFault::Empty),
        )
        .unwrap();
    assert_eq!(all(&response, "instanceId"), [""; 0]);
    let token = all(&response, "nextToken").remove(0);
    let next = format!("DescribeInstances&MaxResults=5&NextToken={token}");
    let response = fixture.ok(&next);
    assert_eq!(all(&response, "instanceId"), ids[..5]);
    let second = all(&response, "nextToken").remove(0);
    let next = format!("DescribeInstances&MaxResults=5&NextToken={second}");
    let response = fixture
        .call_with_context(&next, &with_page_fault(PageFault::Repeated))
        .unwrap();
    assert_eq!(all(&response, "instanceId"), ids[5..]);
    assert_eq!(all(&response, "nextToken"), [second]);
}

#[test]
fn page_after_the_end_is_empty() {
    use crate::ec2::{engine::page::PagePosition, wire::action::Action};
    let mut fixture = Fixture::new();
    fixture.launch_running("");
    for action in Action::ALL.map(Action::name) {
        for after in [1 << 40, 1 << 62] {
            let token = PagePosition { after, page: 1 }.token(action);
            // Actions without pages refuse the parameter.
            if let Ok(response) = fixture.call(&format!("{action}&NextToken={token}")) {
                assert!(!response.contains("<item>"), "{response}");
            }
        }
    }
}
