//! Catalog files with mistakes that people make.

use fleetwright_region::catalog::{Architecture, CatalogFile, GpuVendor, ImageState, Visibility};
use proptest::prelude::*;

const EXAMPLE: &str = include_str!("../catalog.example.toml");

/// A valid catalog of eighteen lines.
const GOOD: &str = r#"[[flavor]]
id = "small"
name = "Small"
cpus = 4
memory = "16 GiB"
disk = "100 GB"
architecture = "x86_64"
[flavor.gpu]
vendor = "AMD"
model = "M"
memory = "24 GiB"
physical-count = 2
[[image]]
id = "linux"
architecture = "x86_64"
size = "20 GiB"
virtualization = "any"
visibility = "global"
[image.os]
family = "debian"
distro = "debian"
version = "13"
"#;

fn problems(text: &str) -> Vec<String> {
    let problems = CatalogFile::parse(text).err();
    let each = problems.iter().flat_map(|problems| problems.iter());
    each.map(ToString::to_string).collect()
}

#[test]
fn example_catalog_has_the_documented_content() {
    let file = CatalogFile::parse(EXAMPLE).unwrap();
    let flavors: Vec<_> = file.flavors().collect();
    let ids: Vec<_> = flavors.iter().map(|flavor| flavor.id.as_str()).collect();
    assert_eq!(ids, ["arm-2", "gpu-l4-8", "metal-64", "standard-4"]);
    assert_eq!(flavors[0].name, "arm-2", "the id is the default");
    assert_eq!(flavors[0].architecture, Architecture::Aarch64);
    let gpu = flavors[1].gpu.as_ref().unwrap();
    assert_eq!(
        (gpu.vendor, gpu.memory.to_string()),
        (GpuVendor::Nvidia, "24 GiB".to_owned())
    );
    assert_eq!((flavors[1].gpus(), flavors[3].gpus()), (1, 0));
    assert!(flavors[2].baremetal && !flavors[3].baremetal);
    let images: Vec<_> = file.images().collect();
    assert_eq!(images.len(), 3);
    assert!(matches!(images[0].visibility, Visibility::Organization(_)));
    assert_eq!(images[1].visibility, Visibility::Global);
    assert!(
        images
            .iter()
            .all(|image| image.state == ImageState::Ready && !image.retired)
    );
    assert_eq!(problems(GOOD), [""; 0]);
}

#[test]
fn broken_catalog_reports_exact_problems_with_positions() {
    let blocks = include_str!("broken_catalogs.txt").split("\n\n").skip(1);
    let mut count = 0;
    for block in blocks {
        let lines = |mark: &str| -> Vec<&str> {
            block
                .lines()
                .filter_map(|line| line.strip_prefix(mark))
                .collect()
        };
        let (mut from, to) = (lines("- ").join("\n"), lines("+ ").join("\n"));
        if to.is_empty() {
            from.push('\n');
        }
        assert_eq!(GOOD.matches(&from).count(), 1, "{from} stands once");
        assert_eq!(
            problems(&GOOD.replacen(&from, &to, 1)),
            lines("! "),
            "{block}"
        );
        count += 1;
    }
    assert_eq!(count, 38, "every block was read");
}

#[test]
fn all_problems_are_reported_at_once() {
    let twice = format!(
        "{GOOD}{}",
        GOOD.replace("\"13\"", "13").replace("= 4", "= 0")
    );
    assert_eq!(
        problems(&twice),
        [
            "line 24, column 6: id of flavor small: the flavor in line 1 has the same id",
            "line 26, column 8: cpus of flavor small: 0 is out of range: expected a whole number from 1 to 4096",
            "line 36, column 6: id of image linux: the image in line 13 has the same id",
            "line 44, column 11: version of os of image linux: found a number: expected a string in quotes",
        ]
    );
    let names = format!(
        "{GOOD}{}",
        GOOD.replace("\"small\"", "\"other\"")
            .replace("\"linux\"", "\"unix\"")
    );
    assert_eq!(
        problems(&names),
        ["line 25, column 8: name of flavor other: the flavor in line 1 has the same name"]
    );
    // A line that is not TOML does not hide problems of other lines.
    let both = GOOD
        .replace("cpus = 4", "cpus = 4 4")
        .replace("\"any\"", "\"all\"");
    let found = problems(&both);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("line 4, "), "{found:?}");
    assert!(found[1].starts_with("line 17, "), "{found:?}");
}

#[test]
fn entries_below_an_invalid_header_do_not_belong_to_the_file() {
    assert_eq!(
        problems("[[flavor]\nid = \"small\"\ncpus = 4\n"),
        ["line 1, column 10: unclosed array table, expected `]`"]
    );
}

#[test]
fn truncated_file_retires_nothing() {
    let whole = [
        "line 1, column 1: flavor is missing: expected at least one [[flavor]]",
        "line 1, column 1: image is missing: expected at least one [[image]]",
    ];
    for empty in ["", "\n\n", "# nothing\n"] {
        assert_eq!(problems(empty), whole);
    }
    assert_eq!(
        problems("flavor = []\nimage = []"),
        [
            "line 1, column 10: flavor: it is empty: expected at least one [[flavor]]",
            "line 2, column 9: image: it is empty: expected at least one [[image]]",
        ]
    );
}

#[test]
fn wrong_file_reports_at_most_one_page_of_problems() {
    let problems = CatalogFile::parse(&"{\"json\": 1}\n".repeat(300)).unwrap_err();
    assert_eq!(problems.iter().count(), 100);
    assert!(problems.count() >= 300);
}

fn good_lines() -> Vec<&'static str> {
    EXAMPLE.lines().collect()
}

proptest! {
    #[test]
    fn arbitrary_text_does_not_panic(text in any::<String>()) {
        prop_assert!(CatalogFile::parse(&text).is_err());
    }

    #[test]
    fn arbitrary_toml_does_not_panic(
        text in r#"(\[{0,2}(flavor|image)(\.(gpu|os))?\]{0,2}\n|(id|cpus|memory|os|gpu|name) ?= ?("[a-z ]{0,5}"|[0-9.-]{0,6}|\{[a-z=1]{0,6}\}|\[\]|true)\n){0,12}"#,
    ) {
        prop_assert!(CatalogFile::parse(&text).is_err());
    }

    #[test]
    fn one_wrong_byte_is_reported_at_an_existing_line(
        place in 0_usize..EXAMPLE.len(), byte in prop::sample::select(b"\"[]=.x9 \n\0".to_vec()),
    ) {
        let mut bytes = EXAMPLE.as_bytes().to_vec();
        bytes[place] = byte;
        let text = String::from_utf8(bytes).unwrap();
        if let Err(problems) = CatalogFile::parse(&text) {
            for problem in problems.iter() {
                prop_assert!((1..=text.lines().count() + 1).contains(&problem.line), "{}", problem);
                prop_assert!(problem.column >= 1);
                prop_assert!(!problem.to_string().contains('\n'));
            }
        }
    }

    #[test]
    fn missing_lines_are_reported_or_optional(gone in prop::collection::btree_set(0_usize..83, 1..6)) {
        let kept = good_lines().into_iter().enumerate().filter(|(number, _)| !gone.contains(number));
        let text: Vec<_> = kept.map(|(_, line)| line).collect();
        if let Ok(file) = CatalogFile::parse(&text.join("\n")) {
            prop_assert!(file.flavors().all(|flavor| flavor.disk.bytes() > 0));
        }
    }
}
