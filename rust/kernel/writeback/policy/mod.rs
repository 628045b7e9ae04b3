// SPDX-License-Identifier: GPL-2.0

//! What is done about the pages that a `RWF_DONTCACHE` write has dirtied.
//!
//! They are to be written soon, so that they can leave the page cache; who writes them, and when,
//! is the policy. Each has a file below this one that says its name and what it does, and a word in
//! the list in this file: that is all a new one needs.

use core::ffi::CStr;

macro_rules! policies {
    ($($policy:ident),+) => {
        $(mod $policy;)+

        /// All policies. The first is the default.
        pub static POLICIES: &[Policy] = &[$($policy::POLICY),+];
    };
}

policies![adaptive, kick, inline, rate_limited, none];

/// A policy.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// What it is chosen by.
    pub name: &'static CStr,
    /// Whether the flusher is asked, and so sees to what is left.
    pub has_flusher: bool,
    /// What it does after a write.
    pub after: fn(Written, &dyn PageCache) -> Action,
}

/// What a policy may ask of the page cache that was written to.
pub trait PageCache {
    /// Whether any of its pages is under writeback. May change at any time.
    fn is_under_writeback(&self) -> bool;
}

/// The bytes of a file that a write has filled: one at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    first: i64,
    last: i64,
}

impl Written {
    /// The `count` bytes in front of `end`. None if these are no bytes of a file.
    pub fn before(end: i64, count: isize) -> Option<Self> {
        let first = end.checked_sub(i64::try_from(count).ok()?)?;
        let last = end.checked_sub(1)?;
        (0 <= first && first <= last).then_some(Self { first, last })
    }

    /// The first byte.
    pub fn first(self) -> i64 {
        self.first
    }

    /// The last byte.
    pub fn last(self) -> i64 {
        self.last
    }

    /// How many pages of `1 << page_shift` bytes it takes to hold as many bytes. At least one, and
    /// one less than the bytes lie in where they do not begin with a page.
    pub fn pages(self, page_shift: u32) -> i64 {
        let more_than_one_byte = self.last.saturating_sub(self.first);
        let more_than_one_page = more_than_one_byte.checked_shr(page_shift).unwrap_or(0);
        more_than_one_page.saturating_add(1)
    }
}

/// What is to be done after a write. None of it waits for the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Ask the flusher, by [`ask`](super::kick::ask).
    Ask,
    /// Ask it for a round at once, by [`kick`](super::kick::kick).
    Kick,
    /// Write the dirty pages of these bytes, in the writer's context.
    Flush(Written),
    /// The same, but no more pages than it takes to hold the bytes: see [`Written::pages`].
    FlushAsMany(Written),
    /// Leave the pages to background writeback.
    Nothing,
}

/// The place in [`POLICIES`] of the policy that has this name.
pub fn find(name: &[u8]) -> Option<usize> {
    POLICIES
        .iter()
        .position(|policy| policy.name.to_bytes() == name)
}
