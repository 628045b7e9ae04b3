// SPDX-License-Identifier: GPL-2.0

//! Accounting of the folios that DONTCACHE writes have made dirty.
//!
//! [`crate::writeback::account`] decides which folios count.

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
        FolioFlags,
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

/// `AS_DONTCACHE_DIRTY`: there may be dirty dropbehind folios. Set with the first of them.
pub(crate) const DONTCACHE_DIRTY: c_ulong = 1 << bindings::mapping_flags_AS_DONTCACHE_DIRTY;

/// Dirty dropbehind pages that a CPU counts locally. Set with the first wb, then constant.
static CPU_BATCH: Atomic<i32> = Atomic::new(1);

/// Sets how many pages a CPU counts locally, by the number of CPUs.
pub(crate) fn init_cpu_batch() {
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
#[inline(always)]
fn account_flags(flags: FolioFlags) -> account::Flags {
    account::Flags {
        dirty: flags.has(DIRTY),
        dropbehind: flags.has(DROPBEHIND),
    }
}

impl Folio {
    /// Clears dropbehind because the folio has another user, and returns the flags before that.
    /// None, without a change, if the folio is not in this page cache. A full barrier.
    ///
    /// Requires the lock of the folio's page cache, under which dropbehind folios are made dirty.
    ///
    /// C counterpart: `folio_test_clear_dropbehind()`, which does not return the dirty flag.
    #[inline]
    pub fn claim(&self, pages: &PagesGuard<'_>) -> Option<account::Flags> {
        if !self.is_in(pages) {
            return None;
        }
        // SAFETY: The folio is live by the type invariants; the flag is cleared atomically.
        let before = unsafe { bindings::folio_fetch_clear_dropbehind(self.as_raw()) };
        Some(account_flags(FolioFlags(before)))
    }

    /// Whether the folio counts as dirty and dropbehind, by both flags at one moment. Unordered.
    #[inline]
    pub fn is_dontcache_dirty(&self) -> bool {
        account_flags(self.flags()).counts()
    }
}

impl LockedFolio {
    /// Sets dropbehind, and returns the flags before that. None, without a change, if the folio is
    /// mapped or not in this page cache. A full barrier.
    ///
    /// Requires the lock of the folio's page cache, under which dropbehind folios are made dirty.
    /// The lock of the folio excludes contexts that make other folios dirty.
    #[inline]
    pub fn mark_dropbehind(&self, pages: &PagesGuard<'_>) -> Option<account::Flags> {
        if !self.is_in(pages) || self.is_mapped() {
            return None;
        }
        // SAFETY: The folio is live by the type invariants; the flag is set atomically.
        let before = unsafe { bindings::folio_fetch_set_dropbehind(self.as_raw()) };
        Some(account_flags(FolioFlags(before)))
    }
}

impl AddressSpace {
    /// Records that there may be dirty dropbehind folios (`AS_DONTCACHE_DIRTY`).
    ///
    /// Context: any.
    #[inline]
    pub fn mark_dontcache_dirty(&self) {
        self.set_flag(DONTCACHE_DIRTY);
    }

    /// Whether there may be dirty dropbehind folios.
    #[inline]
    pub fn may_have_dontcache_dirty(&self) -> bool {
        self.raw_flags() & DONTCACHE_DIRTY != 0
    }

    #[inline(always)]
    pub(crate) fn raw_flags(&self) -> c_ulong {
        // SAFETY: The page cache is live by the type invariants; its flags are read in one load.
        unsafe { (&raw const (*self.as_raw()).flags).read_volatile() }
    }

    /// Sets `flag`. Tests it first, so that the cache line stays shared if the flag is set already.
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
