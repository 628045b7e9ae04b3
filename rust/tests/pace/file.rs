// SPDX-License-Identifier: GPL-2.0

//! The pages of a file in the page cache, and where they lie on the drive.

use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub(crate) struct File {
    /// Dirty pages, and since when they are.
    pub(crate) dirty: BTreeMap<u64, u64>,
    /// Those that the drive has not written yet.
    pub(crate) under_way: BTreeSet<u64>,
    /// Where the flusher goes on.
    pub(crate) cursor: u64,
    /// Whether the flusher's lists have it.
    pub(crate) is_listed: bool,
    /// Its first block on the drive.
    pub(crate) place: Option<u64>,
}

impl File {
    /// The next dirty pages that may be written, `most` of them, in `from..to`.
    pub(crate) fn next(&self, from: u64, to: u64, most: usize) -> Vec<u64> {
        let pages = self.dirty.range(from..to).map(|(&page, _)| page);
        pages
            .filter(|page| !self.under_way.contains(page))
            .take(most)
            .collect()
    }
}

/// A write to the drive, page by page.
#[derive(Debug)]
pub(crate) struct Request {
    /// The first block.
    pub(crate) block: u64,
    /// File and page.
    pub(crate) pages: Vec<(usize, u64)>,
}

impl Request {
    /// The block behind it.
    pub(crate) fn end(&self) -> u64 {
        self.block + self.pages.len() as u64
    }
}
