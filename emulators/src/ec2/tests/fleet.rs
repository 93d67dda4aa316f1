//! Fifty thousand instances: what a call costs is counted in records records_read, not in seconds.

use super::{Lab, all, named};
use crate::ec2::engine::{
    ReadLag,
    operator::ExternalAction,
    page::{PageFault, PagePosition, PageRequest},
};

const FLEET: usize = 50_000;
const PAGE: usize = 1_000;

fn fleet() -> Lab {
    let mut lab = Lab::with(|knobs| {
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
        assert_eq!(lab.engine.perform(act).unwrap().len(), PAGE);
    }
    lab.pass(100);
    lab
}

/// What a call answers, and how many records it records_read.
fn cost(lab: &mut Lab, call: &str) -> (String, usize) {
    let before = lab.engine.core.records_read;
    let reply = lab.ok(call);
    let records_read = lab.engine.core.records_read - before;
    (reply, usize::try_from(records_read).unwrap())
}

#[test]
fn the_cost_of_a_call_does_not_grow_with_the_fleet() {
    let mut lab = fleet();
    each_page_reads_only_its_items(&mut lab);
    let (first, records_read) = cost(&mut lab, "DescribeInstances&MaxResults=500");
    assert_eq!(
        (all(&first, "amiLaunchIndex").len(), records_read),
        (500, 500)
    );
    let token = all(&first, "nextToken").remove(0);
    let next = format!("DescribeInstances&MaxResults=5&NextToken={token}");
    assert_eq!(cost(&mut lab, &next).1, 5);
    // A tag, a token and ids lead straight to what they name.
    let tag = "DescribeInstances&Filter.1.Name=tag:batch&Filter.1.Value.1=17&Filter.2.Name=instance-state-name&Filter.2.Value.1=running";
    let (reply, records_read) = cost(&mut lab, tag);
    let ids = all(&reply, "instanceId");
    assert_eq!((ids.len(), records_read), (PAGE, PAGE));
    let launched = lab.launch(2, "&ClientToken=t");
    let token = "DescribeInstances&Filter.1.Name=client-token&Filter.1.Value.1=t";
    let (reply, records_read) = cost(&mut lab, token);
    assert_eq!((all(&reply, "instanceId"), records_read), (launched, 2));
    let some = &ids[..5];
    assert_eq!(
        cost(&mut lab, &format!("DescribeInstances{}", named(some))).1,
        5
    );
    assert_eq!(
        cost(&mut lab, &format!("StopInstances{}", named(some))).1,
        5
    );
    let stopping = "DescribeInstances&Filter.1.Name=instance-state-name&Filter.1.Value.1=stopping";
    assert_eq!(cost(&mut lab, stopping).1, 5);
    let filter = format!(
        "&Filter.1.Name=attachment.instance-id&Filter.1.Value.1={}",
        ids[0]
    );
    assert_eq!(cost(&mut lab, &format!("DescribeVolumes{filter}")).1, 1);
    assert_eq!(
        cost(&mut lab, &format!("DescribeNetworkInterfaces{filter}")).1,
        1
    );
    assert_eq!(cost(&mut lab, "DescribeVolumes&MaxResults=500").1, 500);
    assert_eq!(cost(&mut lab, "DescribeTags&MaxResults=500").1, 500);
    let tags = format!(
        "DescribeTags&Filter.1.Name=resource-id&Filter.1.Value.1={}",
        ids[0]
    );
    assert_eq!(cost(&mut lab, &tags).1, 1);
}

/// Follows the whole list, without the documents: making those is work of another kind.
fn each_page_reads_only_its_items(lab: &mut Lab) {
    let (mut place, mut seen) = (PagePosition::default(), 0);
    loop {
        let paging = PageRequest {
            limit: PAGE,
            position: place,
            page_fault: PageFault::None,
        };
        let before = lab.engine.core.records_read;
        let page = lab.engine.instances_page(&[], &paging, ReadLag::Random);
        let page = page.unwrap();
        assert_eq!(lab.engine.core.records_read - before, PAGE as u64);
        seen += page.items.len();
        let Some(next) = page.next else { break };
        place = next;
    }
    assert_eq!(seen, FLEET);
}
