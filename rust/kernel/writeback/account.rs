// SPDX-License-Identifier: GPL-2.0

//! When a folio counts as dirty and dropbehind.
//!
//! Each `bdi_writeback` counts the pages of its dirty dropbehind folios. A folio counts while both
//! flags are set. Several contexts change the flags concurrently. The counter is correct if exactly
//! one context sees each change of "both": the context that made it. So
//!
//! - a context that changes one flag gets the old value of both flags from the **same** atomic
//!   operation ([`Flags`]), and adds the result of [`change`];
//! - it adds to the wb that the folio's inode has **then**: the inode keeps its wb between the
//!   change of the flag and the addition.
//!
//! | change | C counterpart | counter | under |
//! | --- | --- | --- | --- |
//! | a dropbehind folio becomes dirty | `__folio_mark_dirty()` | + pages | its cache's lock |
//! | a lookup clears dropbehind | `__filemap_get_folio()` | - pages if dirty | that lock |
//! | its owner sets dropbehind | none | + pages if dirty | that lock, the folio's |
//! | its data is cancelled | `__folio_cancel_dirty()` | - pages if dirty | that lock, the folio's |
//! | it is cut off, or removed dirty | `folio_account_cleaned()` | - pages | that lock |
//! | it is cleaned for I/O | `folio_clear_dirty_for_io()` | - pages if dropbehind | a wb section |
//! | its inode gets another wb | `inode_do_switch_wbs()` | - old, + new | that lock, no section |
//! | it moves in memory, or is split | `__folio_migrate_mapping()` | none | that lock, alone |
//!
//! A wb section is the code between `unlocked_inode_to_wb_begin()` and
//! `unlocked_inode_to_wb_end()`. "No section": all sections that began before have ended. "Alone":
//! no other context has a reference on the folio.
//!
//! C sets the dirty flag first and accounts the folio later, under the lock. A dropbehind folio is
//! made dirty under that lock, too: otherwise a lookup or a switch in between could not know
//! whether the counter includes the folio. Dropbehind is set when the folio is created, or later by
//! a context that has locked the folio. That lock excludes a writer that has read the folio as not
//! dropbehind and is about to make it dirty. A context that cancels data clears dropbehind first.

/// The flags of a folio that decide whether it counts, at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags {
    /// The folio has data that its device does not have (`PG_dirty`).
    pub dirty: bool,
    /// The folio leaves the page cache once it is clean (`PG_dropbehind`).
    pub dropbehind: bool,
}

impl Flags {
    /// Whether the counter includes the folio's pages.
    #[inline]
    pub fn counts(self) -> bool {
        self.dirty && self.dropbehind
    }

    /// The flags once dropbehind is set.
    #[inline]
    pub fn marked(self) -> Self {
        Self {
            dropbehind: true,
            ..self
        }
    }

    /// The flags once dropbehind is cleared because the folio has another user.
    #[inline]
    pub fn claimed(self) -> Self {
        Self {
            dropbehind: false,
            ..self
        }
    }
}

/// What a change of flags from `before` to `after` adds to the counter, in folios: 1, 0 or -1.
///
/// # Examples
///
/// ```
/// use kernel::writeback::account::{change, Flags};
///
/// let dirty = Flags { dirty: true, dropbehind: true };
/// let cleaned = Flags { dirty: false, ..dirty };
/// // The folio is cleaned and claimed: the first change takes it out of the counter.
/// assert_eq!(change(dirty, cleaned), -1);
/// assert_eq!(change(cleaned, cleaned.claimed()), 0);
/// ```
#[inline]
pub fn change(before: Flags, after: Flags) -> i64 {
    i64::from(after.counts()).wrapping_sub(i64::from(before.counts()))
}

/// How many dirty dropbehind pages of `1 << page_shift` bytes each of `cpus` CPUs may count locally
/// before the CPU adds them to the common count: 2 MiB for all CPUs together. So a writer that
/// compares the common count with 16 MiB finds it nearly exact with any number of CPUs. (C counts
/// the pages of an inode that moves to another wb, and of a dirty folio that is truncated. Of
/// these, a CPU may keep up to `WB_STAT_BATCH` pages.)
pub const fn cpu_batch(page_shift: u32, cpus: u32) -> i32 {
    match ((2_i32 << 20) >> page_shift).checked_div(cpus as i32) {
        Some(pages @ 1..) => pages,
        _ => 1,
    }
}
