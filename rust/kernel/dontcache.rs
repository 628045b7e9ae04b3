// SPDX-License-Identifier: GPL-2.0

//! The folios that DONTCACHE writes have made dirty: their counter, and the flags of a page cache
//! that say whether its inode belongs into a wb's `b_dontcache`:
//!
//! | flag | meaning |
//! | --- | --- |
//! | `AS_DONTCACHE_DIRTY` | it may have dirty dropbehind folios |
//! | `AS_DONTCACHE_LISTED` | ... and its inode is in `b_dontcache`, or will be |
//!
//! The first flag is set with the first such folio and cleared by a search that finds none. If the
//! second flag is set, the inode is in the list or queued, or the context that works on it will put
//! it there.
//!
//! [`crate::writeback::account`] decides which folios count. The flusher owns the list: see
//! [`crate::flusher`].

use crate::{
    backing_dev::{
        BdiWriteback,
        WbStat, //
    },
    bindings,
    cpu::nr_cpu_ids,
    ffi::c_ulong,
    folio::{
        Folio,
        LockedFolio,
        DIRTY,
        DROPBEHIND, //
    },
    fs::{
        AddressSpace,
        PagesGuard, //
    },
    page::PAGE_SHIFT,
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
    writeback::account, //
};
use core::mem::MaybeUninit;

const DONTCACHE_DIRTY: c_ulong = 1 << bindings::mapping_flags_AS_DONTCACHE_DIRTY;
const DONTCACHE_LISTED: c_ulong = 1 << bindings::mapping_flags_AS_DONTCACHE_LISTED;

/// Dirty dropbehind pages that a CPU counts locally. Set with the first wb, then constant.
static CPU_BATCH: Atomic<i32> = Atomic::new(1);

/// Sets how many pages a CPU counts locally, by the number of CPUs.
pub fn init_cpu_batch() {
    CPU_BATCH.store(account::cpu_batch(PAGE_SHIFT as u32, nr_cpu_ids()), Relaxed);
}

impl BdiWriteback {
    /// Adds `pages` to the count of dirty dropbehind pages.
    ///
    /// The change stays local to this CPU up to the limit of [`account::cpu_batch`].
    ///
    /// Context: any.
    ///
    /// C counterpart: `wb_stat_mod(wb, WB_DONTCACHE_DIRTY, pages)`.
    #[inline]
    pub fn add_dontcache_dirty(&self, pages: i64) {
        let (counter, batch) = (self.stat(WbStat::DontcacheDirty), CPU_BATCH.load(Relaxed));
        // SAFETY: The wb is live by the type invariants, and so is its counter.
        unsafe { bindings::percpu_counter_add_batch(counter, pages, batch) };
    }
}

/// The flags of a folio that decide whether it counts.
#[inline]
fn account_flags(flags: usize) -> account::Flags {
    account::Flags {
        dirty: flags & DIRTY != 0,
        dropbehind: flags & DROPBEHIND != 0,
    }
}

impl Folio {
    /// Claims the folio for a user other than DONTCACHE: clears dropbehind and uncounts dirty
    /// pages. Does nothing if the folio is not in this page cache. Otherwise a full barrier.
    ///
    /// Requires the lock of the folio's page cache, under which dropbehind folios are made dirty.
    ///
    /// C counterpart: `folio_test_clear_dropbehind()`, and the uncounting in
    /// `__filemap_get_folio_mpol()`.
    pub fn claim(&self, pages: &PagesGuard<'_>) {
        if self.is_in(pages) {
            // SAFETY: The folio is live by the type invariants; the flag is cleared atomically.
            let before = unsafe { bindings::folio_fetch_clear_dropbehind(self.as_raw()) };
            let before = account_flags(before);
            pages.account(self, before, before.claimed());
        }
    }

    /// Whether the folio counts as dirty and dropbehind, by both flags at one moment. Unordered.
    #[inline]
    pub fn is_dontcache_dirty(&self) -> bool {
        account_flags(self.flags()).counts()
    }
}

impl LockedFolio {
    /// Marks the folio dropbehind, and counts its pages if it is dirty. Returns false, without a
    /// change, if the folio is mapped or not in this page cache. Otherwise a full barrier.
    ///
    /// Requires the lock of the folio's page cache, under which dropbehind folios are made dirty.
    /// The lock of the folio excludes contexts that make an ordinary folio dirty.
    pub fn mark_dropbehind(&self, pages: &PagesGuard<'_>) -> bool {
        if !self.is_in(pages) || self.is_mapped() {
            return false;
        }
        // SAFETY: The folio is live by the type invariants; the flag is set atomically.
        let before = unsafe { bindings::folio_fetch_set_dropbehind(self.as_raw()) };
        let (before, after) = (account_flags(before), account_flags(before).marked());
        if after.counts() {
            pages.mapping().mark_dontcache_dirty();
        }
        pages.account(self, before, after);
        true
    }
}

impl AddressSpace {
    /// Records that there may be dirty dropbehind folios (`AS_DONTCACHE_DIRTY`).
    ///
    /// Context: any; under the lock of the page cache, which the search holds when it clears the
    /// flag.
    #[inline]
    pub fn mark_dontcache_dirty(&self) {
        self.set_flag(DONTCACHE_DIRTY);
    }

    /// Whether there may be dirty dropbehind folios.
    #[inline]
    pub fn may_have_dontcache_dirty(&self) -> bool {
        self.raw_flags() & DONTCACHE_DIRTY != 0
    }

    /// Records that the flusher finds the dirty dropbehind folios (`AS_DONTCACHE_LISTED`): see
    /// [`crate::flusher`]. Requires the lock of the wb's lists.
    #[inline]
    pub fn mark_dontcache_listed(&self) {
        self.set_flag(DONTCACHE_LISTED);
    }

    /// Whether there may be dirty dropbehind folios that the flusher would not find.
    #[inline]
    pub fn is_dontcache_unlisted(&self) -> bool {
        self.raw_flags() & (DONTCACHE_DIRTY | DONTCACHE_LISTED) == DONTCACHE_DIRTY
    }

    /// Searches at most `looks` dirty folios for a dirty dropbehind folio. Returns whether there is
    /// one or there may be one. Otherwise clears both flags.
    ///
    /// Context: any; under the lock of the wb's lists. Takes the lock of the page cache.
    pub fn look_for_dontcache_dirty(&self, looks: usize) -> bool {
        if !self.may_have_dontcache_dirty() {
            return false;
        }
        let pages = self.lock_pages();
        let may_have = pages.find_dontcache_dirty(looks);
        if !may_have {
            // A writer that makes such a folio dirty sets the flag again, under the lock held here.
            for flag in [DONTCACHE_DIRTY, DONTCACHE_LISTED] {
                let (nr, raw) = (flag.trailing_zeros() as usize, self.as_raw());
                // SAFETY: The page cache is live by the type invariants; its flags are changed
                // atomically.
                unsafe { bindings::test_and_clear_bit(nr, &raw mut (*raw).flags) };
            }
        }
        may_have
    }

    #[inline]
    fn raw_flags(&self) -> c_ulong {
        // SAFETY: The page cache is live by the type invariants; its flags are read in one load.
        unsafe { (&raw const (*self.as_raw()).flags).read_volatile() }
    }

    /// Sets `flag`. Tests it first, so that the cache line stays shared if the flag is set already.
    #[inline]
    fn set_flag(&self, flag: c_ulong) {
        if self.raw_flags() & flag == 0 {
            let (nr, raw) = (flag.trailing_zeros() as usize, self.as_raw());
            // SAFETY: The page cache is live by the type invariants; its flags are changed
            // atomically.
            unsafe { bindings::test_and_set_bit(nr, &raw mut (*raw).flags) };
        }
    }
}

impl PagesGuard<'_> {
    /// Updates the counter after a change of the flags of `folio`, which is in this page cache.
    /// Folios of a page cache without writeback are not counted.
    fn account(&self, folio: &Folio, before: account::Flags, after: account::Flags) {
        let folios = account::change(before, after);
        if folios != 0 && self.mapping().can_writeback() {
            if let Some(wb) = self.wb() {
                wb.add_dontcache_dirty(folios.wrapping_mul(folio.nr_pages() as i64));
            }
        }
    }

    /// Whether one of the first `looks` dirty folios is dropbehind, or there are `looks` of them.
    fn find_dontcache_dirty(&self, looks: usize) -> bool {
        let mut cursor = MaybeUninit::uninit();
        // SAFETY: The page cache is live by its type invariants. C fills the cursor.
        let cursor = unsafe {
            bindings::mapping_xas_init(self.mapping().as_raw(), cursor.as_mut_ptr());
            cursor.assume_init_mut()
        };
        for _ in 0..looks {
            let dirty = bindings::PAGECACHE_TAG_DIRTY;
            // SAFETY: The lock is held, so the index does not change during the walk.
            let entry = unsafe { bindings::xas_find_marked(cursor, c_ulong::MAX, dirty) };
            if entry.is_null() {
                return false;
            }
            // SAFETY: Any entry may be tested. A DAX entry is a value, not a folio. The page cache
            // has a reference on the folio, and keeps it while the lock is held.
            let is_dirty = unsafe {
                !bindings::xa_is_value(entry) && Folio::from_raw(entry.cast()).is_dontcache_dirty()
            };
            if is_dirty {
                return true;
            }
        }
        true
    }
}
