//! Fifty thousand instances: the cost of a call is the number of records that it reads.

use super::{Fixture, all, id_parameters};
use crate::ec2::engine::{
    ReadLag,
    external_action::ExternalAction,
    page::{PageFault, PagePosition, PageRequest},
};

const FLEET: usize = 50_000;
const PAGE: usize = 1_000;

fn fleet() -> Fixture {
    let mut fixture = Fixture::with(|knobs| {
        knobs.subnets[0].cidr = "10.0.0.0/12".parse().unwrap();
        knobs.subnets.truncate(1);
    });
    for number in 0..FLEET / PAGE {
        let act = ExternalAction::LaunchExternal {
            image: None,
            instance_type: None,
            zone: None,
            count: PAGE as u32,
            tags: [("batch".to_owned(), number.to_string())].into(),
        };
        assert_eq!(fixture.engine.perform(act).unwrap().len(), PAGE);
    }
    fixture.advance(100);
    fixture
}

/// Returns the response of a call, and how many records it read.
fn cost(fixture: &mut Fixture, call: &str) -> (String, usize) {
    let before = fixture.engine.core.records_read;
    let response = fixture.ok(call);
    let records_read = fixture.engine.core.records_read - before;
    (response, usize::try_from(records_read).unwrap())
}

#[test]
fn cost_of_a_call_does_not_grow_with_the_fleet() {
    let mut fixture = fleet();
    each_page_reads_only_its_items(&mut fixture);
    let (first, records_read) = cost(&mut fixture, "DescribeInstances&MaxResults=500");
    assert_eq!(
        (all(&first, "amiLaunchIndex").len(), records_read),
        (500, 500)
    );
    let token = all(&first, "nextToken").remove(0);
    let next = format!("DescribeInstances&MaxResults=5&NextToken={token}");
    assert_eq!(cost(&mut fixture, &next).1, 5);
    // Filters of a tag, a token or ids read only what they name.
    let tag = "DescribeInstances&Filter.1.Name=tag:batch&Filter.1.Value.1=17&Filter.2.Name=instance-state-name&Filter.2.Value.1=running";
    let (response, records_read) = cost(&mut fixture, tag);
    let ids = all(&response, "instanceId");
    assert_eq!((ids.len(), records_read), (PAGE, PAGE));
    let launched = fixture.launch(2, "&ClientToken=t");
    let token = "DescribeInstances&Filter.1.Name=client-token&Filter.1.Value.1=t";
    let (response, records_read) = cost(&mut fixture, token);
    assert_eq!((all(&response, "instanceId"), records_read), (launched, 2));
    let some = &ids[..5];
    assert_eq!(
        cost(
            &mut fixture,
            &format!("DescribeInstances{}", id_parameters(some))
        )
        .1,
        5
    );
    assert_eq!(
        cost(
            &mut fixture,
            &format!("StopInstances{}", id_parameters(some))
        )
        .1,
        5
    );
    let stopping = "DescribeInstances&Filter.1.Name=instance-state-name&Filter.1.Value.1=stopping";
    assert_eq!(cost(&mut fixture, stopping).1, 5);
    let filter = format!(
        "&Filter.1.Name=attachment.instance-id&Filter.1.Value.1={}",
        ids[0]
    );
    assert_eq!(cost(&mut fixture, &format!("DescribeVolumes{filter}")).1, 1);
    assert_eq!(
        cost(&mut fixture, &format!("DescribeNetworkInterfaces{filter}")).1,
        1
    );
    assert_eq!(cost(&mut fixture, "DescribeVolumes&MaxResults=500").1, 500);
    assert_eq!(cost(&mut fixture, "DescribeTags&MaxResults=500").1, 500);
    let tags = format!(
        "DescribeTags&Filter.1.Name=resource-id&Filter.1.Value.1={}",
        ids[0]
    );
    assert_eq!(cost(&mut fixture, &tags).1, 1);
}

/// Reads every page of the list without encoding the documents, which is not measured.
fn each_page_reads_only_its_items(fixture: &mut Fixture) {
    let (mut place, mut found) = (PagePosition::default(), 0);
    loop {
        let paging = PageRequest {
            limit: PAGE,
            position: place,
            page_fault: PageFault::None,
        };
        let before = fixture.engine.core.records_read;
        let page = fixture.engine.instances_page(&[], &paging, ReadLag::Random);
        let page = page.unwrap();
        assert_eq!(fixture.engine.core.records_read - before, PAGE as u64);
        found += page.items.len();
        let Some(next) = page.next else { break };
        place = next;
    }
    assert_eq!(found, FLEET);
}
