// SPDX-License-Identifier: GPL-2.0

//! The folios that DONTCACHE writes have made dirty.
//!
//! Which ones count is decided in [`crate::writeback::account`].

use crate::{
    backing_dev::{
        BdiWriteback,
        WbStat, //
    },
    bindings,
    ffi::c_ulong,
    folio::{
        Folio,
        FolioFlags, //
    },
    fs::{
        AddressSpace,
        PagesGuard, //
    },
    page::PAGE_SHIFT,
    writeback::account, //
};

/// `AS_DONTCACHE_DIRTY`: there may be dirty dropbehind folios. Set with the first.
pub(crate) const DONTCACHE_DIRTY: c_ulong = 1 << bindings::mapping_flags_AS_DONTCACHE_DIRTY;

/// Dirty dropbehind pages that a CPU counts by itself, 2 MiB: half of those that begin a round at
/// least, for it is by the common count that a writer finds them to be enough. What a CPU has kept
/// is known when the round begins: see `wb_pace`.
const DONTCACHE_BATCH: i32 = (2 << 20) >> PAGE_SHIFT;

impl BdiWriteback {
    /// Adds `pages` to the count of dirty dropbehind pages.
    ///
    /// The change stays with this CPU until there are `DONTCACHE_BATCH` of them.
    ///
    /// Context: any.
    ///
    /// C counterpart: `wb_stat_mod(wb, WB_DONTCACHE_DIRTY, pages)`.
    #[inline]
    pub fn add_dontcache_dirty(&self, pages: i64) {
        self.stat(WbStat::DontcacheDirty)
            .add_batch(pages, DONTCACHE_BATCH);
    }
}

/// What of a folio's flags decides whether it counts.
#[inline(always)]
fn account_flags(flags: FolioFlags) -> account::Flags {
    account::Flags {
        dirty: flags.dirty(),
        dropbehind: flags.dropbehind(),
    }
}

impl Folio {
    /// Takes dropbehind away from the folio, and says what its flags were at that moment. A full
    /// barrier.
    ///
    /// Under the lock of the page cache that the folio is in: so do those who make a dropbehind
    /// folio dirty. Of a folio that is in another one nothing is changed.
    ///
    /// C counterpart: `folio_test_clear_dropbehind()`, which says less.
    #[inline]
    pub fn claim(&self, pages: &PagesGuard<'_>) -> Option<account::Flags> {
        if !self.is_in(pages) {
            return None;
        }
        // SAFETY: The folio is live by the type invariants; the flag is cleared atomically.
        let before = unsafe { bindings::folio_fetch_clear_dropbehind(self.as_raw()) };
        Some(account_flags(FolioFlags::from_raw(before)))
    }

    /// Whether the folio counts as dirty and dropbehind, by both flags at one moment. Unordered.
    #[inline]
    pub fn is_dontcache_dirty(&self) -> bool {
        account_flags(self.flags()).counts()
    }
}

impl AddressSpace {
    /// Notes that there may be dirty dropbehind folios (`AS_DONTCACHE_DIRTY`).
    ///
    /// Context: any.
    #[inline]
    pub fn mark_dontcache_dirty(&self) {
        self.set_flag(DONTCACHE_DIRTY);
    }

    /// Whether that is noted.
    #[inline]
    pub fn may_have_dontcache_dirty(&self) -> bool {
        self.raw_flags() & DONTCACHE_DIRTY != 0
    }

    #[inline(always)]
    pub(crate) fn raw_flags(&self) -> c_ulong {
        // SAFETY: The page cache is live by the type invariants; its flags are read in one load.
        unsafe { (&raw const (*self.as_raw()).flags).read_volatile() }
    }

    /// The test keeps the cache line shared where the flag is set already.
    #[inline(always)]
    pub(crate) fn set_flag(&self, flag: c_ulong) {
        if self.raw_flags() & flag == 0 {
            // SAFETY: The page cache is live by the type invariants; its flags are changed
            // atomically.
            unsafe {
                bindings::test_and_set_bit(
                    flag.trailing_zeros() as usize,
                    &raw mut (*self.as_raw()).flags,
                )
            };
        }
    }
}
