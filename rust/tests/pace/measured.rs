// SPDX-License-Identifier: GPL-2.0

//! What a guest has made of the loads: the pages of results, as the benchmark writes them.

use super::drive::{Drive, CLOUD, STREAM};

/// The loads here, what the benchmark calls them, and the drive that it has for them.
pub(crate) const LOADS: [(&str, &str, Drive); 7] = [
    ("4 KiB", "small-4k", CLOUD),
    ("64 KiB", "small-64k", CLOUD),
    ("append", "append", CLOUD),
    ("paced", "paced", CLOUD),
    ("random", "random", CLOUD),
    ("32 writers", "writers-32", STREAM),
    ("new files", "tree", CLOUD),
];

/// The page that was measured longest, of which only the guest with drives like these counts, and the
/// one that has all loads.
const PAGES: [(&str, &str); 2] = [
    (
        include_str!("../../../tools/results/load.md"),
        "## make run",
    ),
    (
        include_str!("../../../tools/results/xfs.md"),
        "## make bench",
    ),
];

/// DONTCACHE beside buffered on the Rust core.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ratios {
    pub(crate) to_durable: f64,
    pub(crate) each_write: f64,
}

/// Those of a scenario on a drive.
pub(crate) fn ratios(scenario: &str, drive: &str) -> Ratios {
    PAGES
        .iter()
        .find_map(|(page, heading)| find(section(page, heading), scenario, drive))
        .unwrap_or_else(|| panic!("no page of results has {scenario} on {drive}"))
}

fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let from = page.find(heading).expect("a heading") + heading.len();
    let rest = &page[from..];
    &rest[..rest.find("\n## ").unwrap_or(rest.len())]
}

/// A page with one drive has no column for it.
fn find(section: &str, scenario: &str, drive: &str) -> Option<Ratios> {
    let mut names = Vec::new();
    for line in section.lines().filter(|line| line.starts_with('|')) {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        if cells[1] == "scenario" {
            names = cells;
            continue;
        }
        let cell = |name| Some(cells[names.iter().position(|&is| is == name)?]);
        let is = |name, what| cell(name).is_none_or(|cell| cell == what);
        if cells[1] == scenario && cell("core") == Some("Rust") && is("drive", drive) {
            let number = |name| cell(name)?.split(' ').next()?.parse().ok();
            return Some(Ratios {
                to_durable: number("ratio to durable")?,
                each_write: number("ratio of write of device")?,
            });
        }
    }
    None
}
